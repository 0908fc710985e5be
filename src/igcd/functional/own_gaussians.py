"""One Gaussian per category with a covariance of its own, learned from the identity in small steps (VB-CGCD).

A step of natural gradient on the expected log likelihood moves a covariance by a share of its distance to that of the
rows: Σ ← Σ + ρ (S − Σ). After t steps from the identity Σ = I + w (S − I) with w = 1 − (1 − ρ)^t, so no loop is needed,
and the determinant after any step follows from the eigenvalues of S.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from igcd.functional.gaussian import scatter_statistics

_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class OwnGaussians:
    """Means and covariances of c categories."""

    means: Tensor  # (c, d)
    covariances: Tensor  # (c, d, d)

    def log_likelihoods(self, rows: Tensor) -> Tensor:
        """The log of N(x; μ_c, Σ_c) but for a constant: −(Mahalanobis distance² + log det) / 2. (n, d) -> (n, c)."""
        columns = []
        for mean, covariance in zip(self.means, self.covariances, strict=True):
            factor = torch.linalg.cholesky(covariance)
            white = torch.linalg.solve_triangular(factor, (rows - mean).T, upper=False)
            columns.append(-white.square().sum(dim=0) / 2 - factor.diagonal().log().sum())
        return torch.stack(columns, dim=1) if columns else rows.new_empty(len(rows), 0)

    def predict(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The most probable category of each row, all equally probable beforehand. (n, d) -> (n,), (n,)."""
        parts = [self.log_likelihoods(part).softmax(dim=1).max(dim=1) for part in torch.split(rows, _ROWS_AT_A_TIME)]
        return torch.cat([best.indices for best in parts]), torch.cat([best.values for best in parts])


def sample_covariances(rows: Tensor, categories: Tensor, *, n_categories: int) -> tuple[Tensor, Tensor]:
    """Mean and covariance of the rows of each category. (n, d), (n,) -> (c, d), (c, d, d).

    Categories are 0 to c − 1, each with a row; one row alone has the identity as its covariance.
    """
    means, covariances = [], []
    for category in range(n_categories):
        own = rows[categories == category]
        statistics = scatter_statistics(own, torch.zeros(len(own), dtype=torch.int64), n_categories=1)
        covariance = (statistics.scatter / len(own)).to(rows.dtype)
        means.append(statistics.means[0])
        covariances.append(covariance if len(own) > 1 else torch.eye(rows.shape[1], dtype=rows.dtype))
    width = rows.shape[1]
    if not means:
        return rows.new_empty(0, width), rows.new_empty(0, width, width)
    return torch.stack(means), torch.stack(covariances)


def learned_covariances(samples: Tensor, *, step: float, n_steps: int) -> Tensor:
    """I + w (S − I), w = 1 − (1 − step)^n: what n steps from the identity make of them. (c, d, d) -> (c, d, d).

    >>> learned_covariances(torch.tensor([[[4.0]]]), step=0.5, n_steps=2)
    tensor([[[3.2500]]])
    """
    weight = 1 - (1 - step) ** n_steps
    return torch.eye(samples.shape[-1], dtype=samples.dtype) * (1 - weight) + weight * samples


def log_determinants(covariances: Tensor) -> Tensor:
    """(c, d, d) -> (c,)."""
    diagonals: Tensor = torch.linalg.cholesky(covariances).diagonal(dim1=1, dim2=2)
    return 2 * diagonals.log().sum(dim=1)


def steps_before_passing(samples: Tensor, known: Tensor, *, step: float, n_steps: int) -> int:
    """Steps that novel covariances may take before their determinants pass those of the known. (c, d, d), (k,).

    VB-CGCD's early stop: a covariance starts at the identity and moves to that of its rows. After half of the steps,
    learning ends before the mean log determinant of the novel ones falls below that of the `known` ones, so that none
    of both sides is favored for being tighter.
    """
    if len(samples) == 0 or len(known) == 0:
        return n_steps
    eigenvalues = torch.linalg.eigvalsh(samples.double()).clamp(min=0)
    threshold = float(known.double().mean())
    for t in range(n_steps // 2 + 1, n_steps + 1):
        weight = 1 - (1 - step) ** t
        if float((1 + weight * (eigenvalues - 1)).log().sum(dim=1).mean()) < threshold:
            return t - 1
    return n_steps
