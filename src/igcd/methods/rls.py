"""A closed-form head on a feature that stands still: recursive least squares, novel categories by the discovery core.

The idea of DYDM's frozen branch. It is `density_gaussian` with another classifier: the same space, the same discovery.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from igcd.functional.grouping import distinct
from igcd.functional.least_squares import (
    LeastSquares,
    add_categories,
    add_rows,
    choose_ridge,
    expand,
    no_rows,
    random_expansion,
    take_categories,
)
from igcd.methods.density_gaussian import DensityGaussian
from igcd.methods.method import Context, Kept
from igcd.methods.states import State, part_of
from igcd.types import Images


class RecursiveLeastSquares(DensityGaussian):
    """Least squares over all images so far, none of them kept. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        n_expanded: int = 1024,
        score_tau: float = 0.1,
        **options: Any,  # noqa: ANN401 - DensityGaussian's
    ) -> None:
        super().__init__(context, **options)
        self._n_expanded, self._score_tau = n_expanded, score_tau
        self._fitted = no_rows(0, ridge=1.0)  # columns in the order of the clusters

    # Known categories ----------------------------------------------------------------------------------------------

    def _begin(self, x: Tensor, clusters: Tensor) -> None:
        super()._begin(x, clusters)
        rows = self._expanded(x)
        self._fitted = no_rows(rows.shape[1], ridge=choose_ridge(rows, distinct(clusters)[1]))

    def _add_labeled(self, images: Images, x: Tensor, clusters: Tensor) -> None:
        learned_before = self._last_labeled
        super()._add_labeled(images, x, clusters)
        if self._last_labeled != learned_before:
            row_of = {cluster: row for row, cluster in enumerate(self._clusters.tolist())}
            self._add(x, torch.tensor([row_of[cluster] for cluster in clusters.tolist()], dtype=torch.int64))

    # Novel categories ----------------------------------------------------------------------------------------------

    def _take_novel(self, x: Tensor, rows: Tensor) -> None:
        """Images that the Gaussians give to a novel category are learned as its own, the others are not learned."""
        is_novel = rows >= self._fitted.weights.shape[1]  # those have no column yet
        self._add(x[is_novel], rows[is_novel])

    def _add(self, x: Tensor, columns: Tensor) -> None:
        wider = add_categories(self._fitted, len(self._clusters) - self._fitted.weights.shape[1])
        self._fitted = add_rows(wider, self._expanded(x), columns)

    def _expanded(self, x: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(self._context.seed)
        return expand(x, random_expansion(x.shape[1], self._n_expanded, generator=generator).to(x))

    # What others ask -----------------------------------------------------------------------------------------------

    def _nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The cluster with the highest score, and its probability."""
        best = (self._fitted.scores(self._expanded(x)) / self._score_tau).softmax(dim=1).max(dim=1)
        return self._clusters[best.indices], best.values.float()

    def kept(self) -> Kept:
        """No image; the bytes are those of the statistics and of the head."""
        n_bytes = super().kept().bytes + sum(tensor.nbytes for tensor in vars(self._fitted).values())
        return Kept(replay_images=0, support_images=0, images=0, pseudo_labeled=0, bytes=n_bytes)

    def _forget(self, clusters: Iterable[int]) -> None:
        clusters = set(clusters)
        gone = torch.isin(self._clusters, torch.tensor(sorted(clusters), dtype=torch.int64))
        self._fitted = take_categories(self._fitted, (~gone).nonzero()[:, 0])
        super()._forget(clusters)

    def _state_parts(self) -> dict[str, State]:
        return super()._state_parts() | {"least_squares": (dict(vars(self._fitted)), {})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._fitted = LeastSquares(**part_of(tensors, "least_squares"))
