"""FRoST: new categories by rank statistics with a head of their own, old ones by feature replay and distillation.

Read top to bottom: `learn` is a stage, the second phase of FRoST repeated; `_loss` its objective. FRoST takes every
unlabeled image for one of a new category. Of the past it keeps statistics, no image.
"""

from functools import partial
from typing import Unpack

import torch
from torch import Tensor, nn

from igcd.functional.distillation import feature_distillation
from igcd.functional.losses import labeled_loss
from igcd.functional.novel_start import NovelStart
from igcd.functional.prototypes import draw_features, mean_variance
from igcd.functional.rank_statistics import Ranked, pair_cross_entropy, ramp_up, same_ranks, view_consistency
from igcd.methods.base import StageOptions
from igcd.methods.cosine_head import CosineHead, HeadedModel
from igcd.methods.kept_statistics import StatisticsMethod
from igcd.methods.method import Context
from igcd.methods.predecessor import Predecessor
from igcd.methods.projector import Projector
from igcd.methods.two_views import TwoViews, cross_entropy_of_labels, supervised_loss
from igcd.training import Batch
from igcd.types import Stage


class TwoHeadedModel(HeadedModel):
    """Head 1 over all clusters, as every parametric method has it, and head 2 over those opened at the last stage."""

    def __init__(self, tail: nn.Module, projector: Projector, head: CosineHead, novel_head: CosineHead) -> None:
        super().__init__(tail, projector, head)
        self.novel_head = novel_head


class Frost(StatisticsMethod):
    """FRoST, its second phase repeated per stage. Implements `igcd.methods.method.Method`."""

    _model: TwoHeadedModel

    def __init__(
        self,
        context: Context,
        *,
        labeled_weight: float = 0.35,
        tau: float = 0.1,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
        ranked: Ranked = "known",
        n_ranked: int = 2,
        n_drawn: int = 2,
        consistency_weight: float = 25.0,
        pseudo_label_weight: float = 0.01,
        distillation_weight: float = 10.0,
        novel_start: NovelStart = "split",
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, tau=tau, novel_start=novel_start, **stages)
        self._labeled_weight, self._tau_u, self._tau_c = labeled_weight, tau_u, tau_c
        self._ranked, self._n_ranked, self._n_drawn = ranked, n_ranked, n_drawn
        self._consistency_weight = consistency_weight
        self._pseudo_label_weight, self._distillation_weight = pseudo_label_weight, distillation_weight
        model = self._model
        self._model = TwoHeadedModel(model.tail, model.projector, model.head, CosineHead(self._n_features))

    # One stage -----------------------------------------------------------------------------------------------------

    def learn(self, stage: Stage) -> None:
        """Phase one where nothing is known yet, supervised; then phase two: both heads open the novel categories."""
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        novel = self._open_novel(stage, labeled, unlabeled)
        self._model.novel_head = CosineHead(self._n_features)
        self._model.novel_head.grow(self._prototypes[novel])
        if len(self._statistics):
            with Predecessor(self._model.tail) as before:
                self._train(stage, partial(self._loss, before), labeled, unlabeled)
        else:
            self._train(stage, self._first_loss, labeled, unlabeled)
        self._remember(labeled, unlabeled, novel)
        self._record_opened(stage, unlabeled, novel)

    def _first_loss(self, views: TwoViews, _batch: Batch, _epoch: int) -> Tensor:
        return supervised_loss(
            views, labeled_weight=self._labeled_weight, tau=self._tau, tau_u=self._tau_u, tau_c=self._tau_c
        )

    # The objective of phase two ------------------------------------------------------------------------------------

    def _loss(self, before: Predecessor, views: TwoViews, batch: Batch, epoch: int) -> Tensor:
        """Discovery on the unlabeled images, cross entropy of the labeled ones, replay and distillation."""
        l_labeled = cross_entropy_of_labels(views, tau=self._tau)
        distillation = feature_distillation(torch.cat(views.h), views.whole(before.h), distance="length")
        ramp = ramp_up((epoch + 1) / self._later_stages.n_epochs)
        return (
            self._discover(views, ramp)
            + l_labeled
            + self._replay(batch.generator)
            + self._distillation_weight * distillation
        )

    def _discover(self, views: TwoViews, ramp: float) -> Tensor:
        """Head 2 learns from pairs and from both views agreeing, head 1 from head 2. -> ()."""
        first, second = (h[len(views.targets) :] for h in views.h)
        n_novel = len(self._model.novel_head)
        if len(first) == 0 or n_novel == 0:
            return first.new_zeros(())
        log_probs_1, log_probs_2 = ((self._model.novel_head(h) / self._tau).log_softmax(dim=1) for h in (first, second))
        # Clusters are numbered as they are opened, so those of head 2 are the last columns of head 1.
        cosines = views.cosines[0][len(views.targets) :]
        is_same = same_ranks(first, cosines[:, :-n_novel], ranked=self._ranked, k=self._n_ranked)
        pairs = pair_cross_entropy(log_probs_1, log_probs_2, is_same)
        consistency = view_consistency(log_probs_1, log_probs_2)
        by_head_1 = (cosines / self._tau).log_softmax(dim=1)
        pseudo_labels = by_head_1.shape[1] - n_novel + log_probs_1.argmax(dim=1)
        self_training = labeled_loss(by_head_1, pseudo_labels)
        return pairs + ramp * (self._consistency_weight * consistency + self._pseudo_label_weight * self_training)

    def _replay(self, generator: torch.Generator) -> Tensor:
        """Cross entropy of head 1 on features drawn from N(μ_c, σ̄²), as many of each old category. -> ()."""
        statistics = self._statistics.of
        rows = torch.arange(len(self._statistics)).repeat(self._n_drawn)
        drawn = draw_features(statistics.means, mean_variance(statistics.variances), rows, generator=generator)
        return self._replay_loss(drawn, rows)
