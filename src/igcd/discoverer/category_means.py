"""The classifier: one mean per category in the whitened space, and how sharply distances decide between them."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from igcd.functional.whitening import Whitening

ROWS_AT_A_TIME = 4096


@dataclass
class CategoryMeans:
    """Means of categories, each with the number of rows behind it. Ids rise."""

    whitening: Whitening
    sharpness: float
    ids: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))  # (c,)
    means: Tensor = field(default_factory=lambda: torch.empty(0, 0))  # (c, d)
    counts: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))  # (c,)

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
        logits = self.sharpness * (rows @ means.T - means.square().sum(dim=1) / 2)
        return logits.log_softmax(dim=1)
