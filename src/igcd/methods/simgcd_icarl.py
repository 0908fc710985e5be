"""SimGCD with iCaRL's memory: images chosen by herding, and the nearest mean of exemplars instead of the head.

The head still learns, and says under which cluster an unlabeled image joins the memory; predictions come from the
memory alone.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from igcd.errors import IgcdError
from igcd.functional.grouping import distinct
from igcd.functional.herding import category_means
from igcd.methods.herded_memory import HerdedMemory
from igcd.methods.method import Context
from igcd.methods.simgcd import SimGcd
from igcd.methods.states import State
from igcd.types import Stage


class SimGcdIcarl(HerdedMemory, SimGcd):
    """SimGCD that replays a herded memory and predicts by it. Implements `igcd.methods.method.Method`."""

    def __init__(self, context: Context, **options: Any) -> None:  # noqa: ANN401 - SimGCD's and the memory's
        super().__init__(context, **options)
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

    def _classify(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """The cluster with the nearest mean of exemplars and its probability, (n, d) -> (n,), (n,)."""
        if len(self._means) == 0:
            raise IgcdError("the method has learned nothing yet; let it learn a stage before it predicts")
        best = (h @ self._means.to(h).T / self._tau).softmax(dim=1).max(dim=1)
        return self._mean_clusters[best.indices.cpu()], best.values.cpu()

    def _state_parts(self) -> dict[str, State]:
        means = {"means": self._means, "clusters": self._mean_clusters}
        return super()._state_parts() | {"exemplars": (means, {})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._means, self._mean_clusters = tensors["exemplars.means"], tensors["exemplars.clusters"]
