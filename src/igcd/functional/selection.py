"""Which images of a category to keep, in S or in R: three ways with one signature, best image first."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from igcd.functional.density import density
from igcd.functional.grouping import distinct
from igcd.functional.herding import herding
from igcd.functional.neighbors import neighbor_graph

Select = Callable[[Tensor, int], Tensor]
"""(features (m, d) of one category, n) -> positions of up to n of them, the most important first."""

Selection = Literal["density", "herding", "random"]
"""How the images of a category are chosen for S or R: around its peak, so that they have its mean, or any."""

__all__ = [
    "Select",
    "Selection",
    "herding",
    "select_at_random",
    "select_by",
    "select_by_density",
    "select_per_category",
]


def select_by(way: Selection, *, n_neighbors: int, generator: torch.Generator) -> Select:
    """The way of this name, with what it needs."""
    if way == "herding":
        return herding
    if way == "random":
        return partial(select_at_random, generator=generator)
    return partial(select_by_density, n_neighbors=n_neighbors)


def select_by_density(features: Tensor, n: int, *, n_neighbors: int = 10) -> Tensor:
    """The densest image, which is a density peak, and its nearest neighbors. (m, d) -> (min(n, m),).

    Section 4.3 for a category whose images are known to be one: its other peaks are not categories of their own.
    A category of no more than K images has its density taken over all the others.
    """
    n_images = len(features)
    n = min(n, n_images)
    if n_images < 2:
        return torch.arange(n, device=features.device)
    n_neighbors = min(n_neighbors, n_images - 1)
    neighbors = neighbor_graph(features, max(n_neighbors, n - 1))
    peak = density(neighbors.first(n_neighbors)).argmax()
    return torch.cat([peak[None], neighbors.idx[peak]])[:n]


def select_at_random(features: Tensor, n: int, *, generator: torch.Generator) -> Tensor:
    """Any images, each as likely as the other. (m, d) -> (min(n, m),)."""
    return torch.randperm(len(features), generator=generator)[:n].to(features.device)


def select_per_category(features: Tensor, categories: Tensor, n: int, *, select: Select) -> Tensor:
    """Up to n images of each category, category by category. (m, d), (m,) -> positions.

    >>> features = torch.eye(4)
    >>> select_per_category(features, torch.tensor([5, 2, 5, 2]), 1, select=herding)
    tensor([1, 0])
    """
    chosen = [torch.empty(0, dtype=torch.int64, device=features.device)]
    ids, rows = distinct(categories)
    for row in range(len(ids)):
        idx = (rows == row).nonzero()[:, 0]
        chosen.append(idx[select(features[idx], n)])
    return torch.cat(chosen)
