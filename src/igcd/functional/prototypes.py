"""Statistics kept instead of images: the mean and the variance of each category, and features drawn from them.

FRoST and Happy replay such features. The nearest mean of kept images as a classifier (iCaRL) is in `herding`.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.errors import IgcdError


@dataclass(frozen=True)
class CategoryStatistics:
    """What remains of the images of c categories."""

    means: Tensor  # (c, d) μ_c
    variances: Tensor  # (c, d) σ_c², of each dimension, with n in the denominator
    counts: Tensor  # (c,) images of each


def category_statistics(features: Tensor, rows: Tensor, *, n_categories: int) -> CategoryStatistics:
    """Mean and variance of the features of each category. (n, d), (n,) -> (c, d), (c, d), (c,).

    `rows` are 0 to c − 1, and each of them needs an image. Features are taken as they come: normalise them before
    for statistics of normalised features.

    >>> category_statistics(torch.tensor([[1.0], [3.0], [7.0]]), torch.tensor([0, 0, 1]), n_categories=2)
    CategoryStatistics(means=tensor([[2.],
            [7.]]), variances=tensor([[1.],
            [0.]]), counts=tensor([2, 1]))
    """
    counts = torch.bincount(rows, minlength=n_categories)
    if len(counts) != n_categories or not counts.all():
        raise IgcdError(
            f"each of the {n_categories} categories needs an image, got {int((counts > 0).sum())} categories with one "
            f"and ids up to {len(counts) - 1}; number the categories from 0 without gaps"
        )
    means = features.new_zeros(n_categories, features.shape[1]).index_add(0, rows, features) / counts[:, None]
    squares = torch.zeros_like(means).index_add(0, rows, (features - means[rows]).square())
    return CategoryStatistics(means, squares / counts[:, None], counts)


def join_categories(first: CategoryStatistics, second: CategoryStatistics) -> CategoryStatistics:
    """The categories of both, those of the second behind those of the first."""
    return CategoryStatistics(
        torch.cat([first.means, second.means]),
        torch.cat([first.variances, second.variances]),
        torch.cat([first.counts, second.counts]),
    )


def mean_variance(variances: Tensor) -> Tensor:
    """FRoST's σ̄²: the variance of each dimension, averaged over the categories. (c, d) -> (d,)."""
    return variances.mean(dim=0)


def radius(variances: Tensor) -> float:
    """Happy's r: the root of the variance averaged over categories and dimensions. (c, d) -> a number.

    >>> radius(torch.tensor([[1.0, 3.0], [2.0, 10.0]]))
    2.0
    """
    return math.sqrt(float(variances.mean()))


def draw_features(means: Tensor, variances: Tensor | float, rows: Tensor, *, generator: torch.Generator) -> Tensor:
    """One feature of each wanted category, from N(μ_c, σ²). (c, d), variances, (n,) -> (n, d).

    `variances` is (c, d) for a Gaussian of each category's own, (d,) for one they share (`mean_variance`), or a number
    for a round one (`radius` squared).
    """
    noise = torch.randn(len(rows), means.shape[1], generator=generator, dtype=means.dtype).to(means.device)
    if isinstance(variances, Tensor):
        own = variances[rows] if variances.ndim == 2 else variances
        return means[rows] + own.sqrt() * noise
    return means[rows] + math.sqrt(variances) * noise


def hardness(means: Tensor, *, tau: float = 0.1) -> Tensor:
    """How often to draw each category, Happy: softmax(mean cosine to the other categories / τ). (c, d) -> (c,).

    A category close to others is harder to keep, so it is drawn more often. A single category is always drawn.

    >>> hardness(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), tau=0.5)  # mean cosines 1/2, 1/2, 0
    tensor([0.4223, 0.4223, 0.1554])
    """
    unit = normalize(means, dim=1)
    similarity = unit @ unit.T
    to_others = (similarity.sum(dim=1) - similarity.diagonal()) / max(len(means) - 1, 1)
    return (to_others / tau).softmax(dim=0)


def draw_categories(probs: Tensor, n: int, *, generator: torch.Generator) -> Tensor:
    """Some categories, drawn with given probabilities and with repetition. (c,) -> (n,)."""
    return torch.multinomial(probs.cpu(), n, replacement=True, generator=generator).to(probs.device)


def grouped_entropy(log_probs: Tensor, *, n_old: int) -> Tensor:
    """Entropy of the mean prediction over the groups (old, new) plus that inside each, Happy. (n, c) -> ().

    With p the mean prediction, P = its sum over a group: H(P_old, P_new) + H(p_old / P_old) + H(p_new / P_new), at
    most log 2 + log n_old + log(c − n_old). The first `n_old` categories are the old ones; without old or without new
    categories only the entropy inside the other group remains. To be maximised.

    >>> grouped_entropy(torch.full((1, 3), 1 / 3).log(), n_old=1)  # H(1/3, 2/3) + 0 + log 2
    tensor(1.3297)
    """
    if not 0 <= n_old <= log_probs.shape[1]:
        raise IgcdError(
            f"n_old must be between 0 and the number of categories, got {n_old} for {log_probs.shape[1]}; "
            "count the old categories among those predicted"
        )
    if len(log_probs) == 0:
        return log_probs.sum()
    log_mean = log_probs.logsumexp(dim=0).log_softmax(dim=0)
    groups = [group for group in (log_mean[:n_old], log_mean[n_old:]) if len(group)]
    between = torch.stack([group.logsumexp(dim=0) for group in groups])
    inside = [_entropy(group.log_softmax(dim=0)) for group in groups]
    return torch.stack([_entropy(between), *inside]).sum()


def least_similar(candidates: Tensor, means: Tensor, n: int) -> Tensor:
    """Positions of the n candidates least like any known category, Happy's new prototypes. (m, d), (c, d) -> (n,).

    Likeness is the cosine to the most similar mean; the least like comes first.

    >>> least_similar(torch.tensor([[1.0, 0.1], [0.0, 1.0], [1.0, 1.0]]), torch.tensor([[1.0, 0.0]]), 2)
    tensor([1, 2])
    """
    if n > len(candidates):
        raise IgcdError(f"{n} candidates were asked for, there are {len(candidates)}; ask for fewer")
    if len(means) == 0:
        return torch.arange(n, device=candidates.device)
    likeness = (normalize(candidates, dim=1) @ normalize(means, dim=1).T).amax(dim=1)
    return likeness.argsort(stable=True)[:n]


def _entropy(log_probs: Tensor) -> Tensor:
    """−Σ p log p of one distribution, with 0 · log 0 = 0. (c,) -> ()."""
    probs = log_probs.exp()
    return -torch.where(probs > 0, probs * log_probs, 0.0).sum()
