"""How later rows will lie, from rows that are left out of all that is learned.

A space follows the rows it was made of: they lie closer to the means of their categories in it than later rows will.
So a part of the rows at a time is left out, the whitening and the means are found without it, and it is asked then.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from igcd.functional.discovery import fit_whitening_with
from igcd.functional.grouping import distinct
from igcd.functional.pulling import group_means

N_PARTS = 20
"""Parts of the rows, of which one is left out at a time: the rest is nearly all there is."""
ENOUGH = 200
"""Rows asked; of many rows a few parts have as many."""
MAX_ROWS = 20_000
"""Of more rows, those that made the space lie in it like later ones."""


@dataclass(frozen=True)
class LeftOut:
    """Rows in a space, and beside means, that they had no part in."""

    idx: Tensor  # (m,) which rows they are
    rows: Tensor  # (m, d) whitened
    means: Tensor  # (c, d)
    category: Tensor  # (c,) of each mean, rising

    def place_of(self, category: Tensor) -> Tensor:
        """The position of the mean of each category, −1 for a category without a mean here. (m,) -> (m,)."""
        place = torch.searchsorted(self.category, category).clamp(max=len(self.category) - 1)
        return place.where(self.category[place] == category, -1)


def can_leave_out(n_rows: int) -> bool:
    """Whether rows are enough to leave some out, and not so many that it makes no difference."""
    return 2 <= n_rows <= MAX_ROWS


def leave_out(features: Tensor, category: Tensor, *, n_known: int, seed: int = 0) -> list[LeftOut]:
    """Rows left out by turns, until enough have been. (n, d), (n,) with −1 for rows of no category.

    The first `n_known` rows are those whose category was known. Of too few or too many rows nothing is left out.
    """
    n = len(features)
    if not can_leave_out(n):
        return []
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    parts: list[LeftOut] = []
    n_asked = 0
    for left_out in order.tensor_split(min(N_PARTS, n)):
        stays = torch.ones(n, dtype=torch.bool)
        stays[left_out] = False
        known, unlabeled = stays[:n_known], features[n_known:][stays[n_known:]]
        owners = distinct(category[:n_known][known])[1]
        whitening = fit_whitening_with(unlabeled, features[:n_known][known], owners, seed=seed)
        has_one = stays & (category >= 0)
        ids, groups = distinct(category[has_one])
        means = group_means(whitening(features[has_one]), groups, len(ids))
        parts.append(LeftOut(left_out, whitening(features[left_out]), means, ids))
        n_asked += len(left_out)
        if n_asked >= ENOUGH:
            break
    return parts
