"""SimGCD: a parametric classifier that teaches itself across views, rerun on the data of each stage.

Nothing of the past is kept but the network and its prototypes, so what a stage does not show is forgotten.
"""

from functools import partial
from typing import Unpack

from torch import Tensor

from igcd.functional import losses
from igcd.functional.novel_start import NovelStart
from igcd.methods.base import StageOptions
from igcd.methods.method import Context
from igcd.methods.parametric import Loss, ParametricMethod
from igcd.methods.two_views import TwoViews, self_training_loss
from igcd.training import Batch
from igcd.types import Stage


class SimGcd(ParametricMethod):
    """Contrastive learning and self-distillation with a head of prototypes. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        labeled_weight: float = 0.35,
        epsilon: float = 1.0,
        tau: float = 0.1,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
        target_tau_start: float = 0.07,
        target_tau_end: float = 0.04,
        warmup_share: float = losses.WARMUP_SHARE,
        novel_start: NovelStart = "split",
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, tau=tau, novel_start=novel_start, **stages)
        self._labeled_weight, self._epsilon = labeled_weight, epsilon
        self._tau_u, self._tau_c = tau_u, tau_c
        self._target_tau_start, self._target_tau_end = target_tau_start, target_tau_end
        self._warmup_share = warmup_share

    def learn(self, stage: Stage) -> None:
        """Opens a prototype for every category of the stage that has none yet, and trains on the stage's images."""
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        novel = self._open_novel(stage, labeled, unlabeled)
        self._train(stage, self._loss_of(stage), labeled, unlabeled)
        self._record_opened(stage, unlabeled, novel)

    def _loss_of(self, stage: Stage) -> Loss:
        """The loss of a stage, whose length says how fast the target's temperature falls."""
        return partial(self._loss, n_epochs=self._optimization_of(stage.index).n_epochs)

    def _loss(self, views: TwoViews, _batch: Batch, epoch: int, *, n_epochs: int) -> Tensor:
        target_tau = losses.target_temperature(
            epoch / n_epochs, start=self._target_tau_start, end=self._target_tau_end, warmup_share=self._warmup_share
        )
        return self_training_loss(
            views,
            labeled_weight=self._labeled_weight,
            epsilon=self._epsilon,
            tau=self._tau,
            target_tau=target_tau,
            tau_u=self._tau_u,
            tau_c=self._tau_c,
        )
