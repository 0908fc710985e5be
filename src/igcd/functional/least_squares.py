"""A linear classifier in closed form that takes in rows without the earlier ones: recursive least squares.

The weights W minimise ‖Y − X W‖² + γ ‖W‖² over all rows so far, Y being one-hot. Of the rows only (XᵀX + γ I)⁻¹ and W
are kept, so nothing that was learned is forgotten: the order of the rows, and how they were cut into stages, changes
nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from igcd.errors import IgcdError

RIDGES = tuple(10.0**power for power in range(-4, 4))
"""Values of γ that `choose_ridge` tries."""
_ROWS_AT_A_TIME = 1024


@dataclass(frozen=True)
class LeastSquares:
    """What is kept of all rows so far, float64."""

    inverse: Tensor  # (d, d): (XᵀX + γ I)⁻¹
    weights: Tensor  # (d, c)

    def scores(self, rows: Tensor) -> Tensor:
        """About 1 for the category of a row and 0 for the others. (n, d) -> (n, c)."""
        return rows.double() @ self.weights


def no_rows(width: int, *, ridge: float) -> LeastSquares:
    """The classifier of no row and no category."""
    if ridge <= 0:
        raise IgcdError(f"the ridge must be above 0, got {ridge}; raise it")
    return LeastSquares(torch.eye(width, dtype=torch.float64) / ridge, torch.zeros(width, 0, dtype=torch.float64))


def add_categories(fitted: LeastSquares, n: int) -> LeastSquares:
    """More categories that no row is of so far: their weights are 0, as they would be if all rows were seen again."""
    return LeastSquares(
        fitted.inverse, torch.cat([fitted.weights, fitted.weights.new_zeros(len(fitted.weights), n)], 1)
    )


def take_categories(fitted: LeastSquares, columns: Tensor) -> LeastSquares:
    """Some of the categories, (k,). Rows of the others stay, as examples of none."""
    return LeastSquares(fitted.inverse, fitted.weights[:, columns])


def add_rows(fitted: LeastSquares, rows: Tensor, categories: Tensor) -> LeastSquares:
    """The classifier of the rows so far and these. (n, d), (n,) with categories 0 to c − 1.

    With R the inverse, K = R Xᵀ (I + X R Xᵀ)⁻¹: R becomes R − K X R, and W becomes W + K (Y − X W).
    """
    inverse, weights = fitted.inverse, fitted.weights
    targets = one_hot(categories, weights.shape[1]).double()
    for start in range(0, len(rows), _ROWS_AT_A_TIME):
        x, y = (part[start : start + _ROWS_AT_A_TIME].double() for part in (rows, targets))
        x_inverse = x @ inverse
        inner = torch.eye(len(x), dtype=torch.float64) + x_inverse @ x.T
        gain = torch.linalg.solve(inner, x_inverse).T
        inverse, weights = inverse - gain @ x_inverse, weights + gain @ (y - x @ weights)
        inverse = (inverse + inverse.T) / 2  # rounding would let it drift away from symmetry
    return LeastSquares(inverse, weights)


def choose_ridge(rows: Tensor, categories: Tensor, *, ridges: tuple[float, ...] = RIDGES) -> float:
    """The γ with the least squared error on rows left out one at a time, in closed form. (n, d), (n,)."""
    x, targets = rows.double(), one_hot(categories).double()
    values, vectors = torch.linalg.eigh(x.T @ x)
    turned = x @ vectors
    errors = []
    for ridge in ridges:
        share = 1 / (values.clamp(min=0) + ridge)
        fitted = (turned * share) @ (turned.T @ targets)
        own = (turned.square() * share).sum(dim=1)  # how much a row fits itself
        errors.append(float(((targets - fitted) / (1 - own)[:, None]).square().mean()))
    return ridges[errors.index(min(errors))]


def random_expansion(width: int, n_expanded: int, *, generator: torch.Generator) -> Tensor:
    """Directions drawn at random, one per column. -> (d, m)."""
    return normalize(torch.randn(width, n_expanded, generator=generator), dim=0)


def expand(rows: Tensor, directions: Tensor) -> Tensor:
    """Rows, their parts along each direction where positive, of length 1 together, and a constant 1.

    (n, d), (d, m) -> (n, d + m + 1). A linear classifier of this can follow borders that are not straight.
    """
    positive = normalize((rows @ directions).relu(), dim=1)
    return torch.cat([rows, positive, torch.ones(len(rows), 1, dtype=rows.dtype)], dim=1)
