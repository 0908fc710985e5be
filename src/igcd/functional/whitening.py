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


@dataclass(frozen=True)
class _Spread:
    """A covariance: that of a subspace, and one variance in every direction outside of it."""

    inside: Tensor  # (r, r)
    outside: float = 0.0
    n_outside: int = 0

    def trace(self) -> float:
        """The total variance."""
        return float(self.inside.trace()) + self.n_outside * self.outside

    def rounder(self, share: float) -> "_Spread":
        """Pulled toward a round one with the same total variance, by a share from 0 to 1."""
        variance = share * self.trace() / (len(self.inside) + self.n_outside)
        inside = (1 - share) * self.inside
        inside.diagonal().add_(variance)
        return _Spread(inside, (1 - share) * self.outside + variance, self.n_outside)

    def times(self, factor: float) -> "_Spread":
        """As large as this."""
        return _Spread(factor * self.inside, factor * self.outside, self.n_outside)

    def toward(self, other: "_Spread", weight: float) -> "_Spread":
        """The other with this weight, and this with the rest."""
        both = self.times(1 - weight), other.times(weight)
        return _Spread(both[0].inside + both[1].inside, both[0].outside + both[1].outside, self.n_outside)

    def noise_share(self, target: "_Spread", n_free: int) -> float:
        """The weight of a target that brings this covariance, of so many degrees of freedom, closest to the true one.

        It is the share of their squared difference that is noise (Ledoit and Wolf, 2003): of Gaussian rows a covariance
        S is off by ((tr Σ)² + tr Σ²) / n_free in the mean, with S for the unknown Σ.

        >>> _Spread(torch.diag(torch.tensor([2.0, 2.0]))).noise_share(_Spread(torch.diag(torch.tensor([4.0, 0.0]))), 12)
        0.25
        """
        noise = (self.trace() ** 2 + self._squares()) / max(n_free, 1)
        apart = _Spread(self.inside - target.inside, self.outside - target.outside, self.n_outside)
        return min(1.0, noise / max(apart._squares(), 1e-300))

    def _squares(self) -> float:
        """The sum of all squared entries."""
        return float(self.inside.square().sum()) + self.n_outside * self.outside**2


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
    n_categories, labeled = (
        int(owners.max()) + 1 if len(owners) else 0,
        features[: len(owners)].to(_dtype_for(features)),
    )
    basis = None if len(features) >= features.shape[1] else torch.linalg.qr(features.T.double()).Q  # (d, n)
    if basis is not None:
        labeled = (labeled.double() @ basis).to(labeled.dtype)
    known = (
        scatter_statistics(labeled, owners, n_categories=n_categories)
        if n_categories
        else no_statistics(labeled.shape[1])
    )
    if basis is None:
        return fit_whitening(features, known, generator=generator)
    spread = _spread_inside(features, known, basis, generator=generator)
    outside = spread.outside**-0.5
    inside = _whitening_of(spread)
    inside.diagonal().sub_(outside)
    matrix = basis @ inside.to(basis) @ basis.T
    matrix.diagonal().add_(outside)
    return Whitening(matrix.to(_dtype_for(features)))


def _spread_inside(
    features: Tensor, known: ScatterStatistics, basis: Tensor | None, *, generator: torch.Generator
) -> _Spread:
    """The covariance inside categories, in a basis of the subspace that rows and `known` lie in. (n, d), (d, r)."""
    n_outside = 0 if basis is None else basis.shape[0] - basis.shape[1]
    freedom = int((known.counts - 1).clamp(min=0).sum())
    covariance = neighbor_covariance(features, basis, generator=generator)
    if covariance is None:  # nothing is known about the spread: every direction counts alike
        width = features.shape[1] - n_outside
        spread = _Spread(torch.eye(width, dtype=torch.float64), 1.0, n_outside)
    else:
        spread = _Spread(covariance, n_outside=n_outside)
    n_pairs = min(len(features), SAMPLE) * N_NEAREST // 2  # two rows that are near each other are one pair
    spread = spread.rounder(max(SHRINKAGE, spread.noise_share(spread.rounder(1.0), n_pairs)))
    labeled = _Spread(known.scatter.cpu() / max(freedom, 1), n_outside=n_outside)
    ratio = labeled.trace() / spread.trace()
    if ratio <= MIN_RATIO:
        return spread
    by_neighbors = spread.times(ratio)
    return labeled.rounder(SHRINKAGE).toward(by_neighbors, labeled.noise_share(by_neighbors, freedom))


def _whitening_of(spread: _Spread) -> Tensor:
    matrix = whitening_of(spread.inside)
    if matrix is None:
        raise IgcdError("the spread of the features cannot be measured; check that they are finite and not all equal")
    return matrix


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
