"""MSc-iNCD: a frozen encoder, a cosine head per stage by self-training with Sinkhorn targets, all heads joined.

Read top to bottom: `learn` is a stage, `_loss` the objective. Heads of earlier stages stand still; features drawn from
Gaussians of earlier categories keep the new head from claiming them. Of the past it keeps statistics, no image.
"""

from typing import Unpack

import torch
from torch import Tensor
from torch.nn.functional import pad

from igcd.functional.prototypes import draw_features
from igcd.functional.sinkhorn import sinkhorn, soft_cross_entropy
from igcd.methods.base import StageOptions
from igcd.methods.kept_statistics import StatisticsMethod
from igcd.methods.method import Context
from igcd.methods.two_views import TwoViews, cross_entropy_of_labels
from igcd.training import Batch
from igcd.types import Stage


class MscIncd(StatisticsMethod):
    """Heads of their own on a frozen feature. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        tau: float = 0.1,
        epsilon: float = 0.05,
        n_rounds: int = 3,
        replay_weight: float = 1.0,
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, tau=tau, **stages)
        self._epsilon, self._n_rounds, self._replay_weight = epsilon, n_rounds, replay_weight
        self._n_frozen = 0  # columns of open clusters that were there before the stage
        for part in (self._model.tail, self._model.projector):
            part.requires_grad_(False)

    # One stage -----------------------------------------------------------------------------------------------------

    def learn(self, stage: Stage) -> None:
        """Opens prototypes for what is labeled now and for the novel categories, and trains those alone."""
        n_before = len(self._model.head)
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        self._n_frozen = int(self._model.head.is_open[:n_before].sum())
        novel = self._open_novel(stage, labeled, unlabeled)
        if len(self._model.head) > n_before:
            self._train(stage, self._loss, labeled, unlabeled)
        self._remember(labeled, unlabeled, novel)
        self._record_opened(stage, unlabeled, novel)

    # The objective -------------------------------------------------------------------------------------------------

    def _loss(self, views: TwoViews, batch: Batch, _epoch: int) -> Tensor:
        """Labels, targets of equal size for what the joined heads give to the new one, and replayed features. -> ()."""
        first, second = (self._joined(cosines) for cosines in views.cosines)
        still = TwoViews(views.h, views.z, (first, second), views.targets)
        loss = cross_entropy_of_labels(still, tau=self._tau)
        n_labeled = len(views.targets)
        loss = loss + self._self_training(first[n_labeled:], second[n_labeled:])
        if len(self._statistics):
            loss = loss + self._replay_weight * self._replay(len(views.h[0]), batch.generator)
        return loss

    def _joined(self, cosines: Tensor) -> Tensor:
        """The cosines with all open clusters, those of earlier heads without a gradient. (n, c) -> (n, c)."""
        return torch.cat([cosines[:, : self._n_frozen].detach(), cosines[:, self._n_frozen :]], dim=1)

    def _self_training(self, first: Tensor, second: Tensor) -> Tensor:
        """Cross entropy of each view with the Sinkhorn targets of the other, of images given to the new head. -> ()."""
        with torch.no_grad():
            is_new = (first + second).argmax(dim=1) >= self._n_frozen
            targets = [
                pad(sinkhorn(other[is_new][:, self._n_frozen :], epsilon=self._epsilon, n_rounds=self._n_rounds), at)
                for other, at in ((second, (self._n_frozen, 0)), (first, (self._n_frozen, 0)))
            ]
        return (
            soft_cross_entropy(first[is_new] / self._tau, targets[0])
            + soft_cross_entropy(second[is_new] / self._tau, targets[1])
        ) / 2

    def _replay(self, n: int, generator: torch.Generator) -> Tensor:
        """Cross entropy of n features drawn from N(μ_c, σ_c²) of earlier categories, all equally often. -> ()."""
        statistics = self._statistics.of
        rows = torch.randint(len(self._statistics), (n,), generator=generator)
        return self._replay_loss(draw_features(statistics.means, statistics.variances, rows, generator=generator), rows)
