"""A memory of images chosen by herding (iCaRL), for parametric methods that replay it among the labeled images."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from igcd.encoders.trunk_views import TrunkViews
from igcd.methods.kept_images import ImageBuffer
from igcd.methods.method import Context, Kept
from igcd.methods.parametric import ParametricMethod
from igcd.methods.stage_views import LabeledViews, labeled_and_replayed
from igcd.methods.states import State, part_of
from igcd.types import Stage


class ReplayedMemory(ParametricMethod):
    """Up to `n_replay` images of each cluster, replayed; the method says which, and when they are chosen."""

    def __init__(self, context: Context, *, n_replay: int = 8, **options: Any) -> None:  # noqa: ANN401 - the method's
        super().__init__(context, **options)
        self._memory = ImageBuffer(n_per_cluster=n_replay, size=self._encoder.transform.canvas)

    def _labeled_views(self, stage: Stage) -> LabeledViews:
        """The labeled images and the memory."""
        return labeled_and_replayed(self._encoder, stage.labeled, self._book.of(stage.labels), self._memory)

    def _forget(self, clusters: Iterable[int]) -> None:
        super()._forget(clusters)
        self._memory.remove(clusters)

    def kept(self) -> Kept:
        """The images of the memory."""
        return self._memory.kept()

    def _state_parts(self) -> dict[str, State]:
        return super()._state_parts() | {"memory": self._memory.state_dict()}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._memory = ImageBuffer.from_state_dict(part_of(tensors, "memory"), part_of(metadata, "memory"))


class HerdedMemory(ReplayedMemory):
    """iCaRL's choice. The head says under which cluster an unlabeled image joins the memory."""

    def _keep(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews) -> None:
        """The herds of labeled images, and behind them, where there is room, those of unlabeled ones as predicted."""
        self._correct_guesses(stage)
        rows = labeled.is_of_stage.nonzero()[:, 0]
        chosen = rows[self._memory.herd(self._h(labeled.views)[rows], labeled.clusters[rows])]
        clusters = labeled.clusters[chosen]
        # Herds of the feature as it is now replace older ones; a category with few labels now keeps its exemplars.
        is_full = torch.bincount(clusters) == self._memory.entries.n_per_category
        self._memory.remove(is_full.nonzero()[:, 0].tolist())
        self._memory.add(labeled.images, labeled.views.usable_idx[chosen.numpy()], clusters, pseudo_labeled=False)
        if len(unlabeled.usable_idx):
            h = self._h(unlabeled)
            predicted, _ = self._by_head(h)
            chosen = self._memory.herd(h, predicted)
            idx = unlabeled.usable_idx[chosen.numpy()]
            self._memory.add(stage.unlabeled, idx, predicted[chosen], pseudo_labeled=True)

    def _correct_guesses(self, stage: Stage) -> None:
        """Images in the memory whose label has arrived move to its cluster."""
        in_memory = set(self._memory.entries.image_ids)
        idx = np.array([i for i, image_id in enumerate(stage.labeled.ids) if image_id in in_memory], dtype=np.int64)
        self._memory.add(stage.labeled, idx, self._book.of(stage.labels[idx]), pseudo_labeled=False)
