"""The upper bound: a network trained on all images of all stages so far, with their true labels.

It is handed the stages of `igcd.streams.revealed.RevealedStream`, in which everything is labeled; the appendix of the
paper describes its losses. Each stage starts from the pretrained network again, so that nothing depends on the order in
which images came.
"""

from typing import Unpack

from torch import Tensor

from igcd.functional.losses import total_loss
from igcd.methods.base import StageOptions
from igcd.methods.method import Context
from igcd.methods.parametric import ParametricMethod
from igcd.methods.two_views import TwoViews, contrastive_loss, cross_entropy_of_labels
from igcd.training import Batch
from igcd.types import Stage


class Supervised(ParametricMethod):
    """SupCon, SelfCon and cross entropy on labeled images alone. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        labeled_weight: float = 0.35,
        tau: float = 0.1,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, tau=tau, **stages)
        self._labeled_weight, self._tau_u, self._tau_c = labeled_weight, tau_u, tau_c

    def learn(self, stage: Stage) -> None:
        """Trains again on the labeled images; the unlabeled ones have no part."""
        self._model = self._new_model()
        labeled = self._open_labeled(stage)
        self._train(stage, self._loss, labeled, None, optimization=self._first_stage)

    def _loss(self, views: TwoViews, _batch: Batch, _epoch: int) -> Tensor:
        """L = λ SupCon + (1 − λ) SelfCon + cross entropy."""
        l_rep = contrastive_loss(views, labeled_weight=self._labeled_weight, tau_u=self._tau_u, tau_c=self._tau_c)
        return total_loss(l_rep, cross_entropy_of_labels(views, tau=self._tau))
