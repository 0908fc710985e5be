"""SimGCD with iCaRL's memory: images chosen by herding, and the nearest mean of exemplars instead of the head.

The head still learns, and says under which cluster an unlabeled image joins the memory; predictions come from the
memory alone.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from igcd.encoders.trunk_cache import TrunkViews
from igcd.errors import IgcdError
from igcd.functional.grouping import distinct
from igcd.functional.herding import category_means, herding
from igcd.functional.selection import select_per_category
from igcd.methods.kept_images import ImageBuffer
from igcd.methods.method import Context, Kept
from igcd.methods.simgcd import SimGcd
from igcd.methods.stage_views import LabeledViews, labeled_and_replayed
from igcd.methods.states import State, part_of
from igcd.types import Stage


class SimGcdIcarl(SimGcd):
    """SimGCD that replays a herded memory and predicts by it. Implements `igcd.methods.method.Method`."""

    def __init__(self, context: Context, *, n_replay: int = 8, **options: Any) -> None:  # noqa: ANN401 - SimGCD's
        super().__init__(context, **options)
        self._memory = ImageBuffer(n_per_cluster=n_replay, size=self._encoder.transform.canvas)
        self._means = torch.empty(0, self._n_features)  # (c, d), of the exemplars of each cluster in the memory
        self._mean_clusters = torch.empty(0, dtype=torch.int64)  # (c,)

    def learn(self, stage: Stage) -> None:
        """A stage of SimGCD with the memory among the labeled images; then the memory takes in this stage's images."""
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        novel = self._open_novel(stage, labeled, unlabeled)
        self._train(stage, self._loss_of(stage), labeled, unlabeled)
        self._keep(stage, labeled, unlabeled)
        self._mean_clusters, rows = distinct(self._memory.clusters)
        h = self._h(self._encoder.plain_views(self._memory.images()))
        self._means = category_means(h, rows.to(h.device), n_categories=len(self._mean_clusters))
        self._record_opened(stage, unlabeled, novel)

    def _labeled_views(self, stage: Stage) -> LabeledViews:
        return labeled_and_replayed(self._encoder, stage.labeled, self._book.of(stage.labels), self._memory)

    def _keep(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews) -> None:
        """The herds of labeled images, and behind them, where there is room, those of unlabeled ones as predicted."""
        self._correct_guesses(stage)
        rows = labeled.is_of_stage.nonzero()[:, 0]
        chosen, clusters = self._herd(self._h(labeled.views)[rows], labeled.clusters[rows])
        # Herds of the feature as it is now replace older ones; a category with few labels now keeps its exemplars.
        is_full = torch.bincount(clusters) == self._memory.entries.n_per_category
        self._memory.remove(is_full.nonzero()[:, 0].tolist())
        idx = labeled.views.usable_idx[rows[chosen].numpy()]
        self._memory.add(labeled.images, idx, clusters, pseudo_labeled=False)
        if len(unlabeled.usable_idx):
            h = self._h(unlabeled)
            chosen, clusters = self._herd(h, self._by_head(h)[0])
            self._memory.add(stage.unlabeled, unlabeled.usable_idx[chosen.numpy()], clusters, pseudo_labeled=True)

    def _herd(self, h: Tensor, clusters: Tensor) -> tuple[Tensor, Tensor]:
        """Up to n images of each cluster, best first, (m, d), (m,) -> positions and their clusters."""
        n = self._memory.entries.n_per_category
        chosen = select_per_category(h, clusters.to(h.device), n, select=herding).cpu()
        return chosen, clusters[chosen]

    def _correct_guesses(self, stage: Stage) -> None:
        """Images in the memory whose label has arrived move to its cluster."""
        in_memory = set(self._memory.entries.image_ids)
        idx = np.array([i for i, image_id in enumerate(stage.labeled.ids) if image_id in in_memory], dtype=np.int64)
        self._memory.add(stage.labeled, idx, self._book.of(stage.labels[idx]), pseudo_labeled=False)

    def _classify(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """The cluster with the nearest mean of exemplars and its probability, (n, d) -> (n,), (n,)."""
        if len(self._means) == 0:
            raise IgcdError("the method has learned nothing yet; let it learn a stage before it predicts")
        best = (h @ self._means.to(h).T / self._tau).softmax(dim=1).max(dim=1)
        return self._mean_clusters[best.indices.cpu()], best.values.cpu()

    def _forget(self, clusters: Iterable[int]) -> None:
        super()._forget(clusters)
        self._memory.remove(clusters)

    def kept(self) -> Kept:
        """The images of the memory."""
        return self._memory.kept()

    def _state_parts(self) -> dict[str, State]:
        means = {"means": self._means, "clusters": self._mean_clusters}
        return super()._state_parts() | {"memory": self._memory.state_dict(), "exemplars": (means, {})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._memory = ImageBuffer.from_state_dict(part_of(tensors, "memory"), part_of(metadata, "memory"))
        self._means, self._mean_clusters = tensors["exemplars.means"], tensors["exemplars.clusters"]
