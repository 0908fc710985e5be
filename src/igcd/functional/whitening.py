"""Whitening by the covariance inside categories: directions in which one category spreads out count for less.

Labels show that spread directly. Where labels are few, differences between nearest neighbors stand in for it, because
two neighbors are mostly of one category.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.gaussian import ScatterStatistics, shrink, whitening_of
from igcd.functional.mapped_tables import half_table
from igcd.functional.neighbor_lists import is_another
from igcd.functional.neighbors import nearest_neighbors

N_NEAREST = 3
"""Neighbors of each sampled row whose differences are taken."""
SAMPLE = 4096
"""Rows whose neighbors are looked up; their differences describe a covariance well enough."""
SHRINKAGE = 0.1
"""Least weight of a round covariance, which keeps the rest invertible."""
MIN_FREEDOM = 0.25
"""Labels set the scale of the neighbors' differences if they have this many degrees of freedom per dimension."""
NEIGHBOR_SCALE = 1.3
"""Without labels: neighbors are closer than two rows of a category are; only its share in a mixture depends on this."""
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Whitening:
    """Features to a space where every category spreads out alike; rows have length 1 there."""

    matrix: Tensor  # (d, d)

    def __call__(self, features: Tensor) -> Tensor:
        """(n, d) -> (n, d), rows of length 1; in half precision where the features are, part by part."""
        if features.dtype != torch.float16:
            return normalize(features.to(self.matrix.dtype) @ self.matrix, dim=1)
        whitened = half_table(len(features), self.matrix.shape[1], features.device)
        parts = torch.split(whitened, _ROWS_AT_A_TIME), torch.split(features, _ROWS_AT_A_TIME)
        for part, rows in zip(*parts, strict=True):
            part.copy_(normalize(rows.to(self.matrix.dtype) @ self.matrix, dim=1))
        return whitened


def fit_whitening(features: Tensor, known: ScatterStatistics, *, generator: torch.Generator) -> Whitening:
    """The whitening for features like these, of which some categories are known. (n, d).

    `known` may hold no category at all; its scatter then is zero. Of n rows in d dimensions, a round covariance has the
    weight d / (d + n) or more: few rows lie closer together in a space made for them than later ones do.
    """
    freedom = int((known.counts - 1).clamp(min=0).sum())
    n, width = features.shape
    between = neighbor_covariance(features, generator=generator)
    spread = float(known.scatter.trace()) / max(freedom, 1)
    ratio = spread / max(float(between.trace()), 1e-30)
    is_measured = freedom >= MIN_FREEDOM * width and ratio > 1e-6  # labeled rows may all be copies of each other
    scale = ratio if is_measured else NEIGHBOR_SCALE
    covariance = (known.scatter.cpu() + width * scale * between) / (freedom + width)
    matrix = whitening_of(shrink(covariance, max(SHRINKAGE, width / (width + n))))
    if matrix is None:
        raise IgcdError("the spread of the features cannot be measured; check that they are finite and not all equal")
    return Whitening(matrix.to(features.device, torch.promote_types(features.dtype, torch.float32)))


def neighbor_covariance(features: Tensor, *, generator: torch.Generator) -> Tensor:
    """Half of the mean outer product of differences to the nearest neighbors. (n, d) -> (d, d) float64.

    Half, because the difference of two rows varies twice as much as a row. A row without a neighbor adds nothing.
    """
    n, width = features.shape
    if n < 2:
        return torch.eye(width, dtype=torch.float64)
    sample = torch.randperm(n, generator=generator)[:SAMPLE].sort().values.to(features.device)
    k = min(N_NEAREST, n - 1)
    found = nearest_neighbors(features[sample], features, k + 1).idx
    others = found[is_another(found, sample)].reshape(len(sample), k)
    dtype = torch.promote_types(features.dtype, torch.float32)
    apart = (features[others].to(dtype) - features[sample, None].to(dtype)).reshape(-1, width).double()
    covariance = (apart.T @ apart).cpu() / (2 * len(apart))
    return covariance if covariance.trace() > 0 else torch.eye(width, dtype=torch.float64)
