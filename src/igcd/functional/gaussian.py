"""One Gaussian per category with a covariance they share: a classifier from statistics, with no image kept.

The mean of a category, the scatter inside all of them, a shrinkage that makes it invertible, and the nearest category
by Mahalanobis distance (linear discriminant analysis; the idea of VB-CGCD).
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from igcd.errors import IgcdError

FOUND = 1 / 3
"""How much of the correction for noise the mean of a found category gets. With none new categories lose images to known
ones, with all of it known ones to what is no category; a quarter to a half do as well (docs/results/tried.md)."""
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class ScatterStatistics:
    """What remains of the images of c categories, enough to add categories later."""

    means: Tensor  # (c, d)
    counts: Tensor  # (c,) labeled images, those of the scatter
    sizes: Tensor  # (c,) images that each mean is of, labeled ones or such as were found together; 0 where not known
    scatter: Tensor  # (d, d) float64: Σ over labeled images of (x − μ)(x − μ)ᵀ, μ the mean of the image's category


@dataclass(frozen=True)
class SharedGaussians:
    """Category means in the space where the shared covariance is the identity."""

    whitening: Tensor  # (d, d): distances of x @ whitening are Mahalanobis distances of x
    means: Tensor  # (c, d) whitened
    surplus: Tensor  # (c,) by how much the squared distance to each mean is too large, see `shared_gaussians`
    log_priors: Tensor  # (c,)

    def log_posteriors(self, queries: Tensor) -> Tensor:
        """Log of p(category | x), where p(x | category) = N(μ_c, Σ). (n, d) -> (n, c)."""
        white = queries.to(self.whitening.dtype) @ self.whitening
        # −‖x − μ‖²/2 without ‖x‖²/2, which is the same for every category.
        length = self.means.square().sum(dim=1) - self.surplus
        return (white @ self.means.T - length / 2 + self.log_priors).log_softmax(dim=1)

    def predict(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """The most probable category of each query and its probability, in bounded memory. (n, d) -> (n,), (n,)."""
        rows = torch.empty(len(queries), dtype=torch.int64, device=queries.device)
        probs = torch.empty(len(queries), dtype=self.means.dtype, device=queries.device)
        for start in range(0, len(queries), _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            best = self.log_posteriors(queries[part]).max(dim=1)
            probs[part], rows[part] = best.values.exp(), best.indices
        return rows, probs


def scatter_statistics(features: Tensor, rows: Tensor, *, n_categories: int) -> ScatterStatistics:
    """Mean of each category and scatter about the means, all categories together. (n, d), (n,) -> (c, d), (d, d)."""
    counts = torch.bincount(rows, minlength=n_categories)
    if len(counts) != n_categories or not counts.all():
        raise IgcdError(
            f"each of the {n_categories} categories needs an image, got {int((counts > 0).sum())} categories with one "
            f"and ids up to {len(counts) - 1}; number the categories from 0 without gaps"
        )
    width = features.shape[1]
    sums = torch.zeros(n_categories, width, dtype=torch.float64, device=features.device)
    for part in _parts(len(features)):
        sums.index_add_(0, rows[part], features[part].double())
    means = sums / counts[:, None]
    scatter = torch.zeros(width, width, dtype=torch.float64, device=features.device)
    for part in _parts(len(features)):
        apart = features[part].double() - means[rows[part]]
        scatter += apart.T @ apart
    return ScatterStatistics(means.to(torch.promote_types(features.dtype, torch.float32)), counts, counts, scatter)


def pooled_covariance(statistics: ScatterStatistics) -> Tensor:
    """The covariance inside categories, scatter / number of images. -> (d, d)."""
    return statistics.scatter / statistics.counts.sum()


def shrink(covariance: Tensor, shrinkage: float) -> Tensor:
    """(1 − s) Σ + s (tr Σ / d) I: pulled toward a round one with the same total variance. (d, d) -> (d, d).

    >>> shrink(torch.tensor([[3.0, 1.0], [1.0, 1.0]]), 0.5)
    tensor([[2.5000, 0.5000],
            [0.5000, 1.5000]])
    """
    if not 0.0 <= shrinkage <= 1.0:
        raise IgcdError(f"shrinkage must be between 0 and 1, got {shrinkage}; change it")
    width = len(covariance)
    round_one = torch.eye(width, dtype=covariance.dtype, device=covariance.device) * covariance.trace() / width
    return (1 - shrinkage) * covariance + shrinkage * round_one


def oas_shrinkage(covariance: Tensor, n_images: int) -> float:
    """The shrinkage best for Gaussian data estimated from the covariance itself (Chen et al., 2010). (d, d) -> [0, 1].

    It needs no image, so it can follow statistics that grow.
    """
    width = len(covariance)
    mean_square, squared_mean = float(covariance.square().mean()), float(covariance.trace() / width) ** 2
    denominator = (n_images + 1) * (mean_square - squared_mean / width)
    return 1.0 if denominator <= 0 else min(1.0, (mean_square + squared_mean) / denominator)


def shared_gaussians(
    statistics: ScatterStatistics,
    *,
    shrinkage: float | Literal["oas"] = "oas",
    prior: Literal["uniform", "counts"] = "uniform",
) -> SharedGaussians:
    """The classifier that statistics describe. Priors are equal, or in proportion to the images of each category.

    `shrinkage` is a number, such as `left_out_shrinkage` gives, or `oas` for what the statistics alone tell.

    The mean of n images is off by the covariance inside categories divided by n, so an image is farther from it than
    from the true mean: by tr(Σ) / n in squared distance, on average. Without a correction, categories with fewer images
    than others lose images to them (Moran and Murphy, 1979). A mean of images that were found together is corrected by
    a share of that, `FOUND`: not all of them are of one category, and some are of a known one.
    """
    covariance = pooled_covariance(statistics)
    if shrinkage == "oas":
        shrinkage = oas_shrinkage(covariance, int(statistics.counts.sum()))
    whitening = whitening_of(shrink(covariance, shrinkage))
    if whitening is None:
        raise IgcdError(
            f"the covariance inside categories cannot be inverted with a shrinkage of {shrinkage:g}; "
            "raise it, or give categories more than one image each"
        )
    weights = torch.ones_like(statistics.counts) if prior == "uniform" else statistics.counts
    dtype = statistics.means.dtype
    whitened_means = (statistics.means.double() @ whitening).to(dtype)
    n_free = (statistics.counts - 1).clamp(min=0).sum().clamp(min=1)
    spread = (whitening.T @ statistics.scatter @ whitening).trace() / n_free
    share = torch.where(statistics.counts > 0, 1.0, FOUND)
    surplus = torch.where(statistics.sizes > 0, share * spread / statistics.sizes.clamp(min=1), 0.0).to(dtype)
    return SharedGaussians(whitening.to(dtype), whitened_means, surplus, weights.to(dtype).log().log_softmax(dim=0))


def whitening_of(covariance: Tensor) -> Tensor | None:
    """The matrix that makes a covariance the identity; None where it cannot be inverted. (d, d) -> (d, d).

    Σ = L Lᵀ, so x ↦ x L⁻ᵀ has the identity as its covariance.
    """
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if failed:
        return None
    identity = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
    inverse: Tensor = torch.linalg.solve_triangular(factor, identity, upper=False)
    return inverse.T


def _parts(n: int) -> list[slice]:
    return [slice(start, start + _ROWS_AT_A_TIME) for start in range(0, n, _ROWS_AT_A_TIME)]
