"""MIB, or PIM: centers on a frozen feature that share as much information with the images as possible.

It begins where `gcd` ends, with the centers of semi-supervised k-means, and keeps what that keeps.
"""

from typing import Any

import torch
from torch import Tensor

from igcd.functional.information import choose_conditional_weight, maximise_information
from igcd.functional.kmeans import kmeans
from igcd.methods.centers import Known
from igcd.methods.feature_space import Features
from igcd.methods.gcd import Gcd
from igcd.methods.method import Context
from igcd.training import numbered_generator
from igcd.types import UNLABELED, Stage


class Mib(Gcd):
    """Mutual information maximised over centers. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        features: Features = "frozen",
        n_steps: int = 300,
        scale: float = 25.0,
        **options: Any,  # noqa: ANN401 - GCD's
    ) -> None:
        super().__init__(context, features=features, **options)
        self._n_steps, self._scale = n_steps, scale

    def _cluster(self, stage: Stage, clamped: Known, known: Known, x: Tensor) -> Tensor:
        """Semi-supervised k-means opens clusters; then all centers move. The clusters of the unlabeled, (n,)."""
        super()._cluster(stage, clamped, known, x)
        rows = torch.cat([known.x, x])
        row_of = {cluster: row for row, cluster in enumerate(self._clusters.tolist())}
        labels = [row_of[cluster] for cluster in known.clusters.tolist()]
        categories = torch.tensor([*labels, *[UNLABELED] * len(x)], dtype=torch.int64)
        generator = numbered_generator(self._context.seed, stage.index)
        blind = kmeans(rows, n_clusters=min(len(self._centers), len(rows)), generator=generator).centers
        n_steps, scale = self._n_steps, self._scale
        weight = choose_conditional_weight(rows, categories, blind, n_steps=n_steps, scale=scale)
        self._centers = maximise_information(
            rows, categories, self._centers, conditional_weight=weight, n_steps=n_steps, scale=scale
        )
        return self._nearest(x)[0]

    def _nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        best = (self._scale * x @ self._centers.T).softmax(dim=1).max(dim=1)
        return self._clusters[best.indices], best.values
