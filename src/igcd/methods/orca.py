"""ORCA: an uncertainty-adaptive margin holds known categories back, pairs of neighbors find the novel ones.

ORCA knows one stage, and needs labels in it. In a stream a few images of each category, replayed with their labels, are
what it has of them later.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from igcd.functional.orca_margin import (
    adaptive_margin,
    another_of_its_category,
    margin_cross_entropy,
    nearest_other,
    pair_attraction,
)
from igcd.functional.self_distillation import mean_entropy_gap
from igcd.methods.herded_memory import HerdedMemory
from igcd.methods.method import Context
from igcd.methods.two_views import Partners, TwoViews
from igcd.training import Batch, Optimization
from igcd.types import Stage


class Orca(HerdedMemory):
    """A cosine head with logits of `scale` · cosine. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        first_stage: Optimization,
        later_stages: Optimization,
        scale: float = 10.0,
        max_margin: float = 0.5,
        entropy_weight: float = 1.0,
        weight_decay: float = 5e-4,
        **options: Any,  # noqa: ANN401 - those of HerdedMemory
    ) -> None:
        super().__init__(
            context,
            first_stage=replace(first_stage, weight_decay=weight_decay, schedule="steps"),
            later_stages=replace(later_stages, weight_decay=weight_decay, schedule="steps"),
            tau=1 / scale,
            **options,
        )
        self._scale, self._max_margin, self._entropy_weight = scale, max_margin, entropy_weight
        self._model.projector.requires_grad_(False)  # there is no contrastive loss to train it

    def learn(self, stage: Stage) -> None:
        """Opens a prototype for every category of the stage that has none yet, and trains on its images and R."""
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        novel = self._open_novel(stage, labeled, unlabeled)
        margin, nearest = 0.0, torch.empty(0, dtype=torch.int64)

        def look(_epoch: int) -> None:
            nonlocal margin, nearest
            h = self._h(unlabeled)
            margin, nearest = self._margin(h), nearest_other(h).cpu()

        def partners(batch: Batch) -> Partners:
            of_labeled = another_of_its_category(labeled.clusters, generator=batch.generator)
            return of_labeled.numpy()[batch.labeled_rows], nearest.numpy()[batch.unlabeled_rows]

        self._train(
            stage,
            lambda views, _batch, _epoch: self._loss(views, margin),
            labeled,
            unlabeled,
            before_epoch=look,
            partners=partners,
        )
        self._keep(stage, labeled, unlabeled)
        self._record_opened(stage, unlabeled, novel)

    def _margin(self, h: Tensor) -> float:
        """The mean of 1 − max p over the unlabeled images after the last epoch, within bounds. (n, d)."""
        if len(h) == 0:
            return 0.0
        _, probability = self._by_head(h)
        return adaptive_margin(float((1 - probability).mean()), largest=self._max_margin)

    def _loss(self, views: TwoViews, margin: float) -> Tensor:
        """L = CE with margin + pairs − entropy of the mean prediction; the second view is the partner's."""
        logits, partner_logits = (self._scale * cosines for cosines in views.cosines)
        log_probs = logits.log_softmax(dim=1)
        known = margin_cross_entropy(logits[: len(views.targets)], views.targets, margin=margin, scale=self._scale)
        pairs = pair_attraction(log_probs, partner_logits.log_softmax(dim=1))
        return known + pairs + self._entropy_weight * mean_entropy_gap(log_probs)
