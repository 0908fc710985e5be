"""The upper bound: a network trained on all images of all stages so far, with their true labels.

It is handed the stages of `igcd.streams.revealed.RevealedStream`, in which everything is labeled; the appendix of the
paper describes its losses. Each stage starts from the pretrained network again, so that nothing depends on the order in
which images came.
"""

from torch import Tensor

from igcd.functional import losses
from igcd.methods.method import Context
from igcd.methods.novel_count import CountNovel
from igcd.methods.parametric import ParametricMethod, TwoViews
from igcd.training import Batch, Optimization
from igcd.types import Stage


class Supervised(ParametricMethod):
    """SupCon, SelfCon and cross entropy on labeled images alone. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        first_stage: Optimization,
        later_stages: Optimization,
        count_novel: CountNovel,
        labeled_weight: float = 0.35,
        tau: float = 0.1,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
    ) -> None:
        super().__init__(context, first_stage=first_stage, later_stages=later_stages, count_novel=count_novel, tau=tau)
        self._labeled_weight, self._tau_u, self._tau_c = labeled_weight, tau_u, tau_c

    def learn(self, stage: Stage) -> None:
        """Trains anew on the labeled images; the unlabeled ones have no part."""
        self._model = self._new_model()
        labeled = self._open_labeled(stage)
        self._train(stage, self._loss, labeled, None, optimization=self._first_stage)

    def _loss(self, views: TwoViews, _batch: Batch, _epoch: int) -> Tensor:
        """L = λ SupCon + (1 − λ) SelfCon + cross entropy."""
        supervised = losses.supervised_contrastive(*views.z_labeled, views.targets, tau=self._tau_c)
        self_supervised = losses.self_supervised_contrastive(*views.z, tau=self._tau_u)
        l_rep = losses.representation_loss(supervised, self_supervised, supervised_weight=self._labeled_weight)
        log_probs = (views.labeled_cosines / self._tau).log_softmax(dim=1)
        return losses.total_loss(l_rep, losses.labeled_loss(log_probs, views.targets.repeat(2)))
