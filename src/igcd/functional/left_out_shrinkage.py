"""How far to shrink the shared covariance: as far as images that were left out are recognised best."""

import torch
from torch import Tensor

from igcd.functional.gaussian import scatter_statistics
from igcd.functional.grouping import distinct, rank_within_group

N_FOLDS = 5
CHOICES = tuple(step / 20 for step in range(1, 20))
"""Shrinkages that are tried: 0.05, 0.1, ..., 0.95."""
_ROWS_AT_A_TIME = 4096


def left_out_shrinkage(features: Tensor, rows: Tensor, *, seed: int = 0) -> float | None:
    """The shrinkage at which the categories of left-out images are most probable. (n, d), (n,) -> (0, 1).

    Five times a fifth of each category's images is left out, and their category is asked of the Gaussians of the
    others. The best shrinkage has the largest sum of the logarithms of the probabilities of the true categories. None
    where there is nothing to choose by: no category has two images, or all choices are equally good.
    """
    ids, owners = distinct(rows)
    n_images = torch.bincount(owners, minlength=len(ids))
    order = torch.randperm(len(owners), generator=torch.Generator().manual_seed(seed))
    fold = torch.empty_like(owners)
    fold[order] = rank_within_group(owners[order]) % N_FOLDS
    fold[n_images[owners] < 2] = -1  # never left out
    sums = torch.zeros(len(CHOICES), dtype=torch.float64)
    for left_out in range(N_FOLDS):
        is_asked = fold == left_out
        if is_asked.any():
            sums += _log_probabilities(features, owners, is_asked)
    return CHOICES[int(sums.argmax())] if sums.isfinite().all() and sums.max() > sums.min() else None


def _log_probabilities(features: Tensor, owners: Tensor, is_asked: Tensor) -> Tensor:
    """For each choice the sum over the images asked, by Gaussians of the others. (n, d), (n,), (n,) -> (choices,).

    Shrinking toward a round covariance changes eigenvalues and no eigenvector: one decomposition is enough.
    """
    known = scatter_statistics(features[~is_asked], owners[~is_asked], n_categories=int(owners.max()) + 1)
    n_free = max(int(known.counts.sum()) - len(known.counts), 1)
    variances, directions = torch.linalg.eigh(known.scatter / n_free)
    means = known.means.double() @ directions
    sums = torch.zeros(len(CHOICES), dtype=torch.float64)
    for asked in torch.split(is_asked.nonzero()[:, 0], _ROWS_AT_A_TIME):
        x, truth = features[asked].double() @ directions, owners[asked, None]
        for number, share in enumerate(CHOICES):
            precision = 1 / ((1 - share) * variances + share * variances.mean())
            scores = (x * precision) @ means.T - (means.square() * precision).sum(dim=1) / 2
            sums[number] += scores.log_softmax(dim=1).gather(1, truth).sum()
    return sums
