"""How far rows spread: a covariance in a subspace, and one variance in all directions outside of it.

A few rows in many dimensions lie in a subspace. There their covariance is a small matrix.
"""

from dataclasses import dataclass
from typing import Self

from torch import Tensor


@dataclass(frozen=True)
class Spread:
    """A covariance: that of a subspace, and one variance in every direction outside of it."""

    inside: Tensor  # (r, r)
    outside: float = 0.0
    n_outside: int = 0

    def total(self) -> float:
        """The sum of the variances in all directions, the trace."""
        return float(self.inside.trace()) + self.n_outside * self.outside

    def squares(self) -> float:
        """The sum of all squared entries."""
        return float(self.inside.square().sum()) + self.n_outside * self.outside**2

    def rounder(self, share: float) -> Self:
        """Pulled toward a round one with the same total variance, by a share from 0 to 1."""
        variance = share * self.total() / (len(self.inside) + self.n_outside)
        inside = (1 - share) * self.inside
        inside.diagonal().add_(variance)
        return type(self)(inside, (1 - share) * self.outside + variance, self.n_outside)

    def times(self, factor: float) -> Self:
        """So many times as large."""
        return type(self)(factor * self.inside, factor * self.outside, self.n_outside)

    def plus(self, other: Self) -> Self:
        """The sum of both, entry by entry."""
        return type(self)(self.inside + other.inside, self.outside + other.outside, self.n_outside)

    def toward(self, other: Self, weight: float) -> Self:
        """The other with this weight, and this with the rest."""
        return self.times(1 - weight).plus(other.times(weight))


def noise_share(measured: Spread, target: Spread, n_free: int) -> float:
    """The weight of a target that brings a covariance measured with so many degrees of freedom closest to the true one.

    It is the share of their squared difference that is noise (Ledoit and Wolf, 2003): of Gaussian rows a covariance S
    is off by ((tr Σ)² + tr Σ²) / n_free in the mean, with S for the unknown Σ. -> 0 to 1.

    >>> import torch
    >>> measured, target = (Spread(torch.diag(torch.tensor(values))) for values in ([2.0, 2.0], [4.0, 0.0]))
    >>> noise_share(measured, target, 12)
    0.25
    """
    noise = (measured.total() ** 2 + measured.squares()) / max(n_free, 1)
    return min(1.0, noise / max(measured.plus(target.times(-1.0)).squares(), 1e-300))
