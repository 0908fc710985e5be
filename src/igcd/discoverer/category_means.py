"""The classifier: one mean per category in the whitened space, and how sharply distances decide between them."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from igcd.functional.whitening import Whitening
from igcd.types import UNLABELED

ROWS_AT_A_TIME = 4096
OUT_OF_REACH = 0.02
"""Share of a category's own rows that may be farther from every mean than what counts as near."""


@dataclass
class CategoryMeans:
    """Means of categories, each with the number of rows behind it. Ids rise."""

    whitening: Whitening
    sharpness: float
    ids: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))  # (c,)
    means: Tensor = field(default_factory=lambda: torch.empty(0, 0))  # (c, d)
    counts: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))  # (c,)
    reach: float = 0.0  # see `is_near`

    def put(self, category_id: int, mean: Tensor, count: int) -> None:
        """Sets the mean of a category, a new one or one there is. (d,)."""
        self.remove([category_id])
        width = len(mean)
        ids = torch.cat([self.ids, torch.tensor([category_id])])
        order = ids.argsort()
        self.means = torch.cat([self.means.reshape(-1, width).to(mean.dtype), mean[None]])[order]
        self.counts = torch.cat([self.counts, torch.tensor([max(count, 1)])])[order]
        self.ids = ids[order]

    def add(self, category_id: int, rows: Tensor) -> None:
        """More rows of a category, whitened: its mean moves by their share. (n, d)."""
        n_new = len(rows)
        if category_id not in self:
            self.put(category_id, rows.mean(dim=0), n_new)
            return
        mean, n_before = self[category_id]
        self.put(category_id, (n_before * mean + rows.sum(dim=0)) / (n_before + n_new), n_before + n_new)

    def join(self, into: int, others: list[int]) -> None:
        """One mean for several categories, weighted by their rows."""
        held = [self[category_id] for category_id in (into, *others) if category_id in self]
        total = sum(count for _, count in held)
        self.remove(others)
        if held:
            self.put(into, sum((count / total * mean for mean, count in held), torch.zeros_like(held[0][0])), total)

    def remove(self, category_ids: list[int]) -> None:
        """Forgets categories."""
        stays = ~torch.isin(self.ids, torch.tensor(category_ids, dtype=torch.int64))
        self.ids, self.means, self.counts = self.ids[stays], self.means[stays], self.counts[stays]

    def __contains__(self, category_id: int) -> bool:
        return bool((self.ids == category_id).any())

    def __getitem__(self, category_id: int) -> tuple[Tensor, int]:
        """Mean and number of rows of a category."""
        row = int((self.ids == category_id).nonzero()[0, 0])
        return self.means[row], int(self.counts[row])

    def log_probs(self, rows: Tensor, ids: Tensor) -> Tensor:
        """Log of the probability of each of some categories. (n, d) whitened, (c,) -> (n, c).

        A row at distance d from a mean weighs exp(−sharpness d² / 2).
        """
        means = self.means[torch.isin(self.ids, ids)]
        return (self.sharpness * _closeness(rows, means)).log_softmax(dim=1)

    def probs(self, rows: Tensor, ids: Tensor) -> Tensor:
        """The probability of each of some categories. (n, d) whitened, (c,) -> (n, c), rows sum to 1."""
        if not len(rows) or not len(ids):
            return rows.new_empty(len(rows), len(ids))
        return torch.cat([self.log_probs(part, ids).exp() for part in torch.split(rows, ROWS_AT_A_TIME)])

    def predict(self, rows: Tensor, ids: Tensor) -> Tensor:
        """The most probable of some categories for each row, −1 if there is none. (n, d) whitened, (c,) -> (n,)."""
        if not len(ids):
            return torch.full((len(rows),), UNLABELED)
        parts = [self.log_probs(part, ids).argmax(dim=1) for part in torch.split(rows, ROWS_AT_A_TIME)]
        return ids[torch.cat(parts)]

    def assign(self, rows: Tensor, ids: Tensor, *, unsure: float) -> Tensor:
        """The same with −1 for unsure rows: the best is improbable, or not of these `ids`, or no mean is near.

        (n, d) whitened, (c,) -> (n,).
        """
        if not len(ids):
            return self.predict(rows, ids)
        parts = []
        for part in torch.split(rows, ROWS_AT_A_TIME):  # all probabilities at once would not fit into memory
            best = self.probs(part, ids).max(dim=1)
            is_other = ~torch.isin(self.predict(part, self.ids), ids)
            is_unsure = (best.values < unsure) | is_other | ~self.is_near(part)
            parts.append(ids[best.indices].masked_fill(is_unsure, UNLABELED))
        return torch.cat(parts)

    def is_near(self, rows: Tensor) -> Tensor:
        """Which rows some mean is near to; the others are of none of these categories. (n, d) whitened -> (n,).

        "None" is a mean at the origin: a row closer to it than to every other mean points away from all of them.
        `reach` says how much closer than that a row has to be.
        """
        parts = [(_closeness(part, self.means) >= self.reach).any(dim=1) for part in torch.split(rows, ROWS_AT_A_TIME)]
        return torch.cat(parts)


def reach_of(rows: Tensor, categories: Tensor) -> float:
    """How close to a mean is near: halfway from "none" to what nearly all rows are. (n, d), (n,) categories from 0.

    Each row is compared with the mean of the other rows of its category. Where some are closer to "none" than to that,
    so may others be. Rows are those whose category is known: among those that were found, what is of none hides.
    """
    n_rows = torch.bincount(categories)[categories]
    sums = rows.new_zeros(int(categories.max()) + 1 if len(categories) else 0, rows.shape[1])
    sums.index_add_(0, categories, rows)
    several = n_rows > 1
    rows, others = rows[several], ((sums[categories] - rows) / (n_rows - 1)[:, None])[several]
    closeness = (rows * others).sum(dim=1) - others.square().sum(dim=1) / 2
    least = float(np.quantile(closeness.numpy(), OUT_OF_REACH)) if len(closeness) else 0.0
    return least / 2 if least > 0 else least


def _closeness(rows: Tensor, means: Tensor) -> Tensor:
    """Half of (1 − d²), d the distance from each row, of length 1, to each mean. (n, d), (c, d) -> (n, c)."""
    return rows.to(means.dtype) @ means.T - means.square().sum(dim=1) / 2
