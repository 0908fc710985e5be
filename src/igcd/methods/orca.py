"""ORCA: an uncertainty-adaptive margin holds known categories back, pairs of neighbors find the novel ones."""

from dataclasses import replace

from torch import Tensor

from igcd.encoders.trunk_cache import TrunkViews
from igcd.functional.novel_start import NovelStart
from igcd.functional.orca_margin import adaptive_margin, margin_cross_entropy, pair_attraction, pair_partners
from igcd.functional.self_distillation import mean_entropy_gap
from igcd.methods.method import Context
from igcd.methods.novel_count import CountNovel
from igcd.methods.parametric import ParametricMethod
from igcd.methods.two_views import TwoViews
from igcd.training import Batch, Optimization
from igcd.types import Stage


class Orca(ParametricMethod):
    """A cosine head with logits of `scale` · cosine. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        first_stage: Optimization,
        later_stages: Optimization,
        count_novel: CountNovel,
        scale: float = 10.0,
        max_margin: float = 0.5,
        entropy_weight: float = 1.0,
        weight_decay: float = 5e-4,
        novel_start: NovelStart = "split",
    ) -> None:
        super().__init__(
            context,
            first_stage=replace(first_stage, weight_decay=weight_decay, schedule="steps"),
            later_stages=replace(later_stages, weight_decay=weight_decay, schedule="steps"),
            count_novel=count_novel,
            tau=1 / scale,
            novel_start=novel_start,
        )
        self._scale, self._max_margin, self._entropy_weight = scale, max_margin, entropy_weight
        self._model.projector.requires_grad_(False)  # there is no contrastive loss to train it

    def learn(self, stage: Stage) -> None:
        """Opens a prototype for every category of the stage that has none yet, and trains on the stage's images."""
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        novel = self._open_novel(stage, labeled, unlabeled)
        margin = 0.0

        def measure(_epoch: int) -> None:
            nonlocal margin
            margin = self._margin(unlabeled)

        self._train(
            stage,
            lambda views, batch, _epoch: self._loss(views, batch, margin),
            labeled,
            unlabeled,
            before_epoch=measure,
        )
        self._record_opened(stage, unlabeled, novel)

    def _margin(self, unlabeled: TrunkViews) -> float:
        """The mean of 1 − max p over the unlabeled images after the last epoch, within bounds."""
        if len(unlabeled.usable_idx) == 0:
            return 0.0
        _, probability = self._by_head(self._h(unlabeled))
        return adaptive_margin(float((1 - probability).mean()), largest=self._max_margin)

    def _loss(self, views: TwoViews, batch: Batch, margin: float) -> Tensor:
        """L = CE with margin + pairs − entropy of the mean prediction; the second view is the partner's."""
        logits, other_logits = (self._scale * cosines for cosines in views.cosines)
        log_probs, other_log_probs = logits.log_softmax(dim=1), other_logits.log_softmax(dim=1)
        known = margin_cross_entropy(logits[: len(views.targets)], views.targets, margin=margin, scale=self._scale)
        partners = pair_partners(views.h[0], views.targets, generator=batch.generator)
        pairs = pair_attraction(log_probs, other_log_probs, partners)
        return known + pairs + self._entropy_weight * mean_entropy_gap(log_probs)
