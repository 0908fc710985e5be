"""How a `CategoryDiscoverer` found a category."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from igcd.functional.discovery import Discovered
from igcd.memory.category_ledger import Label


@dataclass(frozen=True)
class Discovery:
    """How a category was found. Rows are positions in the X of the call that found it."""

    id: int
    label: Label  # what the category is called now, also after it was renamed or merged
    batch: int  # 0 for fit, 1 for the first partial_fit after it ...
    peak: int  # the most typical row, the densest of the category
    members: tuple[int, ...]  # that row, then the rows closest to the mean of the category
    n_rows: int  # unlabeled rows of the call that are in it
    nearest_id: int | None  # the category most like it when it was found; None if there was none
    similarity: float | None  # cosine of the two means


def novel_members(found: Discovered, whitened: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Of each new category its mean, (c,), and its rows: the most typical one, then the closest to the mean. (n, c)."""
    by_category = torch.split(
        found.category.argsort(stable=True),
        torch.bincount(found.category + 1, minlength=found.n_known + found.n_novel + 1).tolist(),
    )[1 + found.n_known :]  # first those of no category, then those of known ones
    for mean, peak, own in zip(found.means[found.n_known :], found.typical, by_category, strict=True):
        others = own[own != peak]
        others = others[(whitened[others].to(mean.dtype) @ mean).argsort(descending=True, stable=True)]
        yield mean, torch.cat([peak[None], others])
