"""Where rows are compared: brought to one scale, centered, reduced to principal components, of length 1."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.linalg import eigh
from torch import Tensor
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.mapped_tables import half_table
from igcd.functional.neighbors import EXACT_UP_TO
from igcd.types import IntArray

N_COMPONENTS = 256
"""Principal components that the discovery core looks at."""
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Projection:
    """Scales, centers, keeps principal components and normalises: cosines then tell more than they did."""

    mean: Tensor  # (d,), of scaled features
    components: Tensor  # (c, d), orthonormal rows, most variance first
    exponent: int = 0  # of the power of two that brings features near 1, because scale is not information

    def __call__(self, features: Tensor) -> Tensor:
        """(n, d) -> (n, c), rows of length 1; in half precision where the features are, part by part."""
        if features.dtype != torch.float16:
            return normalize(self.coordinates(features), dim=1)
        projected = half_table(len(features), len(self.components), features.device)
        for start in range(0, len(features), _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            projected[part] = normalize(self.coordinates(features[part]), dim=1)
        return projected

    def of_array(
        self,
        X: npt.NDArray[Any],  # noqa: N803 - as scikit-learn calls it
        rows: IntArray | None = None,
    ) -> Tensor:
        """The same for an array, which may be a mapped file: of all or of some rows. (n, d) -> (n, c).

        Of more rows than a graph is exact for they are kept in half precision, in a file that is mapped.

        >>> Projection(torch.zeros(2), torch.eye(2)).of_array(np.array([[3.0, 4.0]], dtype=np.float32))
        tensor([[0.6000, 0.8000]])
        """
        n, width, dtype = len(X) if rows is None else len(rows), len(self.components), self.mean.dtype
        compared = half_table(n, width) if n > EXACT_UP_TO else torch.empty(n, width, dtype=dtype)
        for start in range(0, n, _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            taken = np.array(X[part] if rows is None else X[rows[part]], dtype=self.mean.numpy().dtype)
            compared[part] = normalize(self.coordinates(torch.from_numpy(taken)), dim=1)
        return compared

    def coordinates(self, features: Tensor) -> Tensor:
        """Before they are normalised. (n, d) -> (n, c).

        Rows far larger than those of the fit are divided by more, or their squares would overflow.
        """
        features, mean = features.to(self.mean.dtype), self.mean
        sizes = torch.frexp(features.abs().amax(dim=1, keepdim=True))[1]
        excess = (sizes + self.exponent).clamp(min=0)  # (n, 1)
        if excess.any():
            mean = _ldexp(mean, -excess)
        elif self.exponent == 0:
            return (features - mean) @ self.components.T
        return (_ldexp(features, self.exponent - excess) - mean) @ self.components.T

    def state_dict(self) -> dict[str, Tensor]:
        """What `from_state_dict` makes again."""
        return {"mean": self.mean, "components": self.components, "exponent": torch.tensor(self.exponent)}

    @classmethod
    def from_state_dict(cls, tensors: Mapping[str, Tensor]) -> Self:
        """The inverse of `state_dict`; what earlier versions stored has no exponent."""
        return cls(tensors["mean"], tensors["components"], int(tensors.get("exponent", 0)))


def fit_projection(features: Tensor | npt.NDArray[Any], *, n_components: int = 128) -> Projection:
    """The mean and the principal components of features, (n, d); fewer than asked where n or d allows no more.

    Components come from the eigenvectors of the covariance, in float64 on the CPU, each turned so that its largest
    entry is positive: the same features give the same projection.
    """
    n_rows, width = features.shape
    if n_rows < 2 or n_components < 1:
        raise IgcdError(
            f"a projection needs two images and one component at least, got {n_rows} and {n_components}; "
            "give more images or ask for more components"
        )
    exponent = _exponent_of(features)
    mean = _mean_of(features, exponent)
    covariance = torch.zeros(width, width, dtype=torch.float64)
    for part in _scaled_parts(features, exponent):
        centered = part - mean
        covariance += (centered.T @ centered).cpu().double()
    n_kept = min(n_components, n_rows - 1, width)
    # Only those that are kept: for 128 of 1,280 that takes a third of the time of all.
    _, columns = eigh(covariance.numpy(), subset_by_index=[width - n_kept, width - 1], check_finite=False)
    directions = torch.from_numpy(columns).flip(1).T
    largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    return Projection(mean, (directions * largest.sign()).to(mean), exponent)


def fit_projection_of_all(features: Tensor | npt.NDArray[Any], *, n_components: int | None) -> Projection:
    """The same for any number of rows, and for later ones: with no more rows than components all directions are kept.

    None keeps all directions as well, and rows are not centered then.
    """
    n_rows, width = features.shape
    if n_components is not None and min(n_components, width) < n_rows and n_rows > 1:
        return fit_projection(features, n_components=n_components)
    exponent = _exponent_of(features)
    mean = _mean_of(features, exponent)
    is_centered = n_components is not None and n_rows > 1
    return Projection(mean if is_centered else torch.zeros_like(mean), torch.eye(width).to(mean), exponent)


def project_together(*features: Tensor, n_components: int = N_COMPONENTS) -> list[Tensor]:
    """Sets of features in the space of one projection, fitted to all of them: what the discovery core looks at."""
    project = fit_projection_of_all(torch.cat(features), n_components=n_components)
    return [project(part) for part in features]


def project_distinct(
    X: npt.NDArray[Any],  # noqa: N803 - as scikit-learn calls it
    first_rows: IntArray,
    *,
    n_components: int | None = N_COMPONENTS,
) -> tuple[Projection, Tensor]:
    """The projection of a table that may be a mapped file, and each content of it once. (n, d), (u,) -> (u, c).

    `first_rows` are where each content stands first, and it counts once; but copies of rows move the principal
    components of very many rows by little, so that those are fitted to the table as it is.
    """
    once = X if len(first_rows) > EXACT_UP_TO else X[first_rows]
    projection = fit_projection_of_all(once, n_components=n_components)
    return projection, projection.of_array(X, first_rows)


def _exponent_of(features: Tensor | npt.NDArray[Any]) -> int:
    """Of the power of two that the largest entry is brought below 1 by; 0 where all are 0."""
    largest = max(float(features.max()), -float(features.min())) if len(features) else 0.0
    return -math.frexp(largest)[1]


def _mean_of(features: Tensor | npt.NDArray[Any], exponent: int) -> Tensor:
    sums = [part.sum(dim=0, dtype=torch.float64) for part in _scaled_parts(features, exponent)]
    return torch.stack(sums).sum(dim=0).div(len(features)).to(next(_scaled_parts(features[:1], exponent)))


def _scaled_parts(features: Tensor | npt.NDArray[Any], exponent: int) -> Iterator[Tensor]:
    """The features part by part, scaled, half precision as single: one of a mapped file is in memory at a time."""
    for start in range(0, len(features), _ROWS_AT_A_TIME):
        part = features[start : start + _ROWS_AT_A_TIME]
        rows = part if isinstance(part, Tensor) else torch.from_numpy(np.array(part))
        yield _ldexp(rows.to(torch.promote_types(rows.dtype, torch.float32)), torch.tensor(exponent))


def _ldexp(numbers: Tensor, exponents: Tensor) -> Tensor:
    """Numbers times powers of two, in two steps: neither factor overflows."""
    half, one = exponents.div(2, rounding_mode="floor"), torch.ones_like(exponents, dtype=numbers.dtype)
    return numbers * one.ldexp(half) * one.ldexp(exponents - half)
