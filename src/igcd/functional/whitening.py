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
from igcd.functional.gaussian import ScatterStatistics, scatter_statistics, whitening_of
from igcd.functional.growing_scatter import no_statistics
from igcd.functional.mapped_tables import half_table
from igcd.functional.neighbor_lists import is_another
from igcd.functional.neighbors import nearest_neighbors
from igcd.functional.spread import Spread, noise_share

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
    spread = _spread_inside(features, known, None, generator=generator)
    return Whitening(_whitening_of(spread).to(features.device, _dtype_for(features)))


def fit_whitening_of_rows(features: Tensor, owners: Tensor, *, generator: torch.Generator) -> Whitening:
    """The same for rows of which the first are labeled, with categories numbered from 0. (n, d), (m,).

    Fewer rows than dimensions lie in a subspace: there the covariance is a small matrix, and outside of it round.
    """
    labeled = features[: len(owners)].to(_dtype_for(features))
    if len(features) >= features.shape[1]:
        return fit_whitening(features, _statistics(labeled, owners), generator=generator)
    basis = torch.linalg.qr(features.T.double()).Q  # (d, n)
    known = _statistics((labeled.double() @ basis).to(labeled.dtype), owners)
    spread = _spread_inside(features, known, basis, generator=generator)
    outside = spread.outside**-0.5
    inside = _whitening_of(spread)
    inside.diagonal().sub_(outside)
    matrix = basis @ inside.to(basis) @ basis.T
    matrix.diagonal().add_(outside)
    return Whitening(matrix.to(_dtype_for(features)))


def _spread_inside(
    features: Tensor, known: ScatterStatistics, basis: Tensor | None, *, generator: torch.Generator
) -> Spread:
    """The covariance inside categories, in a basis of the subspace that rows and `known` lie in. (n, d), (d, r)."""
    n_outside = 0 if basis is None else basis.shape[0] - basis.shape[1]
    freedom = int((known.counts - 1).clamp(min=0).sum())
    covariance = neighbor_covariance(features, basis, generator=generator)
    if covariance is None:  # nothing is known about the spread: every direction counts alike
        width = features.shape[1] - n_outside
        spread = Spread(torch.eye(width, dtype=torch.float64), 1.0, n_outside)
    else:
        spread = Spread(covariance, n_outside=n_outside)
    n_pairs = min(len(features), SAMPLE) * N_NEAREST // 2  # two rows that are near each other are one pair
    spread = spread.rounder(max(SHRINKAGE, noise_share(spread, spread.rounder(1.0), n_pairs)))
    labeled = Spread(known.scatter.cpu() / max(freedom, 1), n_outside=n_outside)
    ratio = labeled.total() / spread.total()
    if ratio <= MIN_RATIO:
        return spread
    by_neighbors = spread.times(ratio)
    return labeled.rounder(SHRINKAGE).toward(by_neighbors, noise_share(labeled, by_neighbors, freedom))


def _whitening_of(spread: Spread) -> Tensor:
    matrix = whitening_of(spread.inside)
    if matrix is None:
        raise IgcdError("the spread of the features cannot be measured; check that they are finite and not all equal")
    return matrix


def _statistics(labeled: Tensor, owners: Tensor) -> ScatterStatistics:
    """Of labeled rows with categories numbered from 0, or of none. (m, d), (m,)."""
    if not len(owners):
        return no_statistics(labeled.shape[1])
    return scatter_statistics(labeled, owners, n_categories=int(owners.max()) + 1)


def _dtype_for(features: Tensor) -> torch.dtype:
    return torch.promote_types(features.dtype, torch.float32)


def neighbor_covariance(features: Tensor, basis: Tensor | None = None, *, generator: torch.Generator) -> Tensor | None:
    """Half of the mean outer product of differences to the nearest neighbors. (n, d) -> (d, d) float64.

    Half, because the difference of two rows varies twice as much as a row. A row without a neighbor adds nothing. None
    where nothing differs from its neighbors. With a basis, (d, r), differences are taken in it: (r, r).
    """
    n, width = features.shape
    if n < 2:
        return None
    sample = torch.randperm(n, generator=generator)[:SAMPLE].sort().values.to(features.device)
    k = min(N_NEAREST, n - 1)
    found = nearest_neighbors(features[sample], features, k + 1).idx
    others = found[is_another(found, sample)].reshape(len(sample), k)
    dtype = _dtype_for(features)
    apart = (features[others].to(dtype) - features[sample, None].to(dtype)).reshape(-1, width).double()
    apart = apart if basis is None else apart @ basis  # and not the rows: copies differ by nothing at all
    covariance = (apart.T @ apart).cpu() / (2 * len(apart))
    return covariance if covariance.trace() > 0 else None
