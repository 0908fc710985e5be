"""Happy: entropy over (old, new) groups against the bias to old categories, feature replay by hardness to keep them.

Read top to bottom: `learn` is a stage, `_loss` the objective. Of the past it keeps statistics, no image.
"""

from functools import partial
from typing import Unpack

import torch
from torch import Tensor

from igcd.functional.distillation import feature_distillation
from igcd.functional.novel_start import NovelStart
from igcd.functional.prototypes import draw_categories, draw_features, grouped_entropy, hardness, radius
from igcd.functional.self_distillation import mutual_distillation
from igcd.methods.base import StageOptions
from igcd.methods.kept_statistics import StatisticsMethod
from igcd.methods.method import Context
from igcd.methods.predecessor import Predecessor
from igcd.methods.two_views import TwoViews, self_training_loss, supervised_loss
from igcd.training import Batch
from igcd.types import Stage


class Happy(StatisticsMethod):
    """Grouped entropy and hardness-aware replay of features. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        labeled_weight: float = 0.35,
        tau: float = 0.1,
        target_tau: float = 0.05,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
        entropy_weight: float = 1.0,
        replay_weight: float = 1.0,
        distillation_weight: float = 1.0,
        hardness_tau: float = 0.1,
        novel_start: NovelStart = "split",
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, tau=tau, novel_start=novel_start, **stages)
        self._labeled_weight, self._target_tau, self._tau_u, self._tau_c = labeled_weight, target_tau, tau_u, tau_c
        self._entropy_weight, self._replay_weight = entropy_weight, replay_weight
        self._distillation_weight, self._hardness_tau = distillation_weight, hardness_tau

    # One stage -----------------------------------------------------------------------------------------------------

    def learn(self, stage: Stage) -> None:
        """Opens prototypes for what is labeled now and for the novel categories, trains, and keeps statistics."""
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        novel = self._open_novel(stage, labeled, unlabeled)
        if len(self._statistics) == 0 and not novel:
            self._train(stage, self._first_loss, labeled, unlabeled)
        else:
            n_old = int(self._model.head.is_open.sum()) - len(novel)  # columns of open clusters, the novel ones behind
            with Predecessor(self._model.tail) as before:
                self._train(stage, partial(self._loss, before, n_old), labeled, unlabeled)
        self._remember(labeled, unlabeled, novel)
        self._record_opened(stage, unlabeled, novel)

    # The objective -------------------------------------------------------------------------------------------------

    def _first_loss(self, views: TwoViews, _batch: Batch, _epoch: int) -> Tensor:
        """Before there is anything to discover: all of SimGCD, on labeled images alone."""
        return self_training_loss(
            views,
            labeled_weight=self._labeled_weight,
            epsilon=self._entropy_weight,
            tau=self._tau,
            target_tau=self._target_tau,
            tau_u=self._tau_u,
            tau_c=self._tau_c,
        )

    def _loss(self, before: Predecessor, n_old: int, views: TwoViews, batch: Batch, _epoch: int) -> Tensor:
        """Supervised part, self-training with grouped entropy, and once there is a past, replay and distillation.

        Without labels, as Happy has it, λ is 0 and every term has the weight 1.
        """
        weight = self._labeled_weight if len(views.targets) else 0.0
        loss = supervised_loss(views, labeled_weight=weight, tau=self._tau, tau_u=self._tau_u, tau_c=self._tau_c)
        cosines = [part[len(views.targets) :] for part in views.cosines]
        if len(cosines[0]):
            self_training = mutual_distillation(cosines[0], cosines[1], tau=self._tau, target_tau=self._target_tau)
            entropy = grouped_entropy((torch.cat(cosines) / self._tau).log_softmax(dim=1), n_old=n_old)
            loss = loss + (1 - weight) * (self_training - self._entropy_weight * entropy)
        if len(self._statistics):
            loss = loss + self._replay_weight * self._replay(len(views.h[0]), batch.generator)
            distillation = feature_distillation(torch.cat(views.h), views.whole(before.h), distance="squared")
            loss = loss + self._distillation_weight * distillation
        return loss

    def _replay(self, n: int, generator: torch.Generator) -> Tensor:
        """Cross entropy of n features drawn from N(μ_c, r² I), of hard categories more often. -> ()."""
        statistics = self._statistics.of
        rows = draw_categories(hardness(statistics.means, tau=self._hardness_tau), n, generator=generator)
        drawn = draw_features(statistics.means, radius(statistics.variances) ** 2, rows, generator=generator)
        return self._replay_loss(drawn, rows)
