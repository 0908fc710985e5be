"""Whitening by the covariance inside categories: directions in which one category spreads out count for less.

Labels show that spread directly, the better the more they are. Differences between nearest neighbors show it roughly,
because two neighbors are mostly of one category, and show it everywhere. So what labels show is pulled toward what
neighbors show, by as much as it is noise.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.gaussian import ScatterStatistics, noise_share, shrink, whitening_of
from igcd.functional.mapped_tables import half_table
from igcd.functional.neighbor_lists import is_another
from igcd.functional.neighbors import nearest_neighbors

N_NEAREST = 3
"""Neighbors of each sampled row whose differences are taken."""
SAMPLE = 4096
"""Rows whose neighbors are looked up; their differences describe a covariance well enough."""
SHRINKAGE = 0.1
"""Least weight of a round covariance, which keeps the rest invertible."""
MIN_RATIO = 1e-6
"""Of the spread of labeled rows to that of neighbors: with less, they are copies of each other and show nothing."""
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

    `known` may hold no category at all; its scatter then is zero, and neighbors alone show the spread. What they show
    is pulled toward a round covariance by as much as it is noise, too: nearly all of it where categories are round.
    """
    freedom = int((known.counts - 1).clamp(min=0).sum())
    covariance = neighbor_covariance(features, generator=generator)
    n_pairs = min(len(features), SAMPLE) * N_NEAREST // 2  # two rows that are near each other are one pair
    covariance = shrink(covariance, max(SHRINKAGE, noise_share(covariance, shrink(covariance, 1.0), n_pairs)))
    labeled = known.scatter.cpu() / max(freedom, 1)
    ratio = float(labeled.trace() / covariance.trace())
    if ratio > MIN_RATIO:
        by_neighbors = ratio * covariance
        weight = noise_share(labeled, by_neighbors, freedom)
        covariance = (1 - weight) * shrink(labeled, SHRINKAGE) + weight * by_neighbors
    matrix = whitening_of(covariance)
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
