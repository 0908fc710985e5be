"""Means and scatter that take in more images without the earlier ones: what a classifier of Gaussians grows by."""

import torch
from torch import Tensor

from igcd.functional.gaussian import ScatterStatistics


def no_statistics(width: int) -> ScatterStatistics:
    """Those of no category at all."""
    return ScatterStatistics(
        torch.empty(0, width),
        torch.empty(0, dtype=torch.int64),
        torch.empty(0, dtype=torch.int64),
        torch.zeros(width, width, dtype=torch.float64),
    )


def add_means(statistics: ScatterStatistics, means: Tensor, sizes: Tensor) -> ScatterStatistics:
    """More categories, means of unlabeled images: none of these counts for the covariance. (m, d), (m,)."""
    return ScatterStatistics(
        torch.cat([statistics.means, means]),
        torch.cat([statistics.counts, torch.zeros_like(sizes)]),
        torch.cat([statistics.sizes, sizes]),
        statistics.scatter,
    )


def add_images(statistics: ScatterStatistics, features: Tensor, rows: Tensor) -> ScatterStatistics:
    """The statistics with more images of their c categories. (n, d), (n,) with rows 0 to c - 1.

    They become what `scatter_statistics` of all images together would be (Chan, Golub and LeVeque, 1979): for a
    category with a images of mean μ before and b new ones of mean ν, the mean is (a μ + b ν) / (a + b), and the scatter
    grows by that of the new ones and by a b / (a + b) (ν − μ)(ν − μ)ᵀ. Where a is 0, the mean of unlabeled images is
    forgotten.

    >>> nine = add_means(no_statistics(1), torch.tensor([[9.0]]), torch.tensor([4]))
    >>> grown = add_images(nine, torch.tensor([[1.0], [3.0]]), torch.tensor([0, 0]))
    >>> grown.means, grown.counts, grown.sizes, grown.scatter
    (tensor([[2.]]), tensor([2]), tensor([2]), tensor([[2.]], dtype=torch.float64))
    """
    features = features.double()
    n_new = torch.bincount(rows, minlength=len(statistics.counts)).double()[:, None]
    n_before = statistics.counts.double()[:, None]
    before = statistics.means.double()
    new = torch.zeros_like(before).index_add(0, rows, features) / n_new.clamp(min=1)
    apart = features - new[rows]
    shift = new - before
    between = shift * (n_before * n_new / (n_before + n_new).clamp(min=1))
    scatter = statistics.scatter + apart.T @ apart + shift.T @ between
    means = torch.where(n_new > 0, before + shift * n_new / (n_before + n_new).clamp(min=1), before)
    counts = statistics.counts + n_new[:, 0].long()
    sizes = torch.where(counts > 0, counts, statistics.sizes)
    return ScatterStatistics(means.to(statistics.means.dtype), counts, sizes, scatter)


def take_rows(statistics: ScatterStatistics, rows: Tensor) -> ScatterStatistics:
    """Some of the categories, (m,). The scatter stays: it is shared, and no category has a part of its own."""
    return ScatterStatistics(
        statistics.means[rows], statistics.counts[rows], statistics.sizes[rows], statistics.scatter
    )
