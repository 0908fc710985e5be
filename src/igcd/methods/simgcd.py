"""SimGCD: a parametric classifier that teaches itself across views, rerun on the data of each stage.

Nothing of the past is kept but the network and its prototypes, so what a stage does not show is forgotten.
"""

import torch
from torch import Tensor

from igcd.functional import losses
from igcd.functional.self_distillation import mean_entropy_gap, mutual_distillation
from igcd.methods.method import Context
from igcd.methods.novel_count import CountNovel
from igcd.methods.parametric import ParametricMethod
from igcd.methods.two_views import TwoViews, contrastive_loss, cross_entropy_of_labels
from igcd.training import Batch, Optimization
from igcd.types import Stage


class SimGcd(ParametricMethod):
    """Contrastive learning and self-distillation with a head of prototypes. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        first_stage: Optimization,
        later_stages: Optimization,
        count_novel: CountNovel,
        labeled_weight: float = 0.35,
        epsilon: float = 1.0,
        tau: float = 0.1,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
        target_tau_start: float = 0.07,
        target_tau_end: float = 0.04,
        n_warmup_epochs: int = 30,
    ) -> None:
        super().__init__(
            context,
            first_stage=first_stage,
            later_stages=later_stages,
            count_novel=count_novel,
            tau=tau,
        )
        self._labeled_weight, self._epsilon = labeled_weight, epsilon
        self._tau_u, self._tau_c = tau_u, tau_c
        self._target_tau_start, self._target_tau_end = target_tau_start, target_tau_end
        self._n_warmup_epochs = n_warmup_epochs

    def learn(self, stage: Stage) -> None:
        """Opens a prototype for every category of the stage that has none yet, and trains on the stage's images."""
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        novel = self._open_novel(stage, labeled, unlabeled)
        self._train(stage, self._loss, labeled, unlabeled)
        self._record_opened(stage, unlabeled, novel)

    def _loss(self, views: TwoViews, _batch: Batch, epoch: int) -> Tensor:
        """L = L_rep + L_cls: λ of each is supervised, 1 − λ is not and takes in the labeled images, too."""
        weight = self._labeled_weight
        l_rep = contrastive_loss(views, labeled_weight=weight, tau_u=self._tau_u, tau_c=self._tau_c)
        l_labeled = cross_entropy_of_labels(views, tau=self._tau)
        target_tau = losses.target_temperature(
            epoch, start=self._target_tau_start, end=self._target_tau_end, n_warmup_epochs=self._n_warmup_epochs
        )
        distillation = mutual_distillation(*views.cosines, tau=self._tau, target_tau=target_tau)
        evenness = mean_entropy_gap((torch.cat(views.cosines) / self._tau).log_softmax(dim=1))
        l_unlabeled = distillation + self._epsilon * evenness
        l_cls = losses.classifier_loss(l_labeled, l_unlabeled, labeled_weight=weight)
        return losses.total_loss(l_rep, l_cls)
