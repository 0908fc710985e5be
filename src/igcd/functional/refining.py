"""The last step of discovery: means of categories that follow their rows, and the category of each row.

A row alone is easily wrong about where it belongs; the rows around it are wrong in other ways. So in each round every
row first goes to the nearest mean, and then follows most of the rows around it; means follow that. In the end each row
goes to the nearest mean, as any later row will.
"""

import torch
from torch import Tensor

from igcd.functional.pulling import group_means

N_ROUNDS = 5
_ROWS_AT_A_TIME = 4096


def refine(
    rows: Tensor, neighbors: Tensor, owners: Tensor, start: Tensor, *, n_known: int, keeps_all: bool = False
) -> tuple[Tensor, Tensor]:
    """Means of all categories and the category of each unlabeled row, new ones from large to small.

    `rows` (m + n, d) are labeled rows with categories `owners` (m,), then unlabeled ones; `neighbors` (m + n, k) are
    the rows nearest to each. `start` (n,) are groups: below `n_known` for known categories, then others, −1 for rows
    of none. `keeps_all`: no new category may lose all of its rows.
    """
    n_labeled = len(owners)
    ids = torch.unique(start[start >= n_known])
    n_means = n_known + len(ids)
    if n_means == 0:  # a single row, and nothing is known
        return rows[:0], torch.full_like(start, -1)
    place = torch.full((max(int(start.max()) + 1, n_known) + 1,), -1)  # the last is for rows of none
    place[:n_known] = torch.arange(n_known)
    place[ids] = n_known + torch.arange(len(ids))
    started = category = torch.cat([owners, place[start]])
    has_one = category >= 0
    means = group_means(rows[has_one], category[has_one], n_means)
    for _ in range(N_ROUNDS):
        nearest = torch.cat([owners, nearest_mean(rows[n_labeled:], means)])
        voted = torch.cat([owners, follow_neighbors(nearest, rows, neighbors, means)[n_labeled:]])
        if torch.equal(voted, category):
            break
        category = voted
        n_rows = torch.bincount(category, minlength=n_means)
        means = torch.where((n_rows > 0)[:, None], group_means(rows, category, n_means), means)
    category = torch.cat([owners, nearest_mean(rows[n_labeled:], means)])
    if keeps_all and (torch.bincount(category, minlength=n_means)[n_known:] == 0).any():
        category = torch.where(started >= 0, started, category)
        means = group_means(rows, category, n_means)
    order = _from_large_to_small(means, torch.bincount(category, minlength=n_means), n_known)
    renumbered = torch.full((n_means,), -1)
    renumbered[order] = torch.arange(len(order))
    return means[order], renumbered[category[n_labeled:]]


def follow_neighbors(category: Tensor, rows: Tensor, neighbors: Tensor, means: Tensor) -> Tensor:
    """The category that most rows around each row have, itself among them. (n,), (n, d), (n, k), (c, d) -> (n,).

    The rows around it are those that pulled it: its neighborhood twice over, each as often as it is reached. Of equally
    frequent categories the one with the nearest mean wins.
    """
    around = torch.cat([torch.arange(len(neighbors))[:, None], neighbors], dim=1)
    parts = []
    for start in range(0, len(rows), _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        reached = category[around[around[part].ravel()].reshape(len(around[part]), -1)]
        votes = torch.zeros(len(reached), len(means), dtype=means.dtype)
        votes.scatter_add_(1, reached, torch.ones_like(reached, dtype=means.dtype))
        parts.append((votes + closeness(rows[part], means) / 4).argmax(dim=1))  # less than a vote
    return torch.cat(parts) if parts else category


def nearest_mean(rows: Tensor, means: Tensor) -> Tensor:
    """The mean that each row is nearest to. (n, d), (c, d) -> (n,)."""
    parts = [closeness(part, means).argmax(dim=1) for part in torch.split(rows, _ROWS_AT_A_TIME)]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)


def closeness(rows: Tensor, means: Tensor) -> Tensor:
    """Half of (1 − d²), d the distance from each row, of length 1, to each mean. (n, d), (c, d) -> (n, c)."""
    return rows.to(means.dtype) @ means.T - means.square().sum(dim=1) / 2


def _from_large_to_small(means: Tensor, n_rows: Tensor, n_known: int) -> Tensor:
    """Known categories, then new ones from large to small; of equally large ones the denser first, none that is empty.

    (How dense depends on the rows alone, and not on their order.)
    """
    found = n_known + (n_rows[n_known:] > 0).nonzero()[:, 0]
    found = found[means[found].norm(dim=1).argsort(descending=True, stable=True)]
    found = found[n_rows[found].argsort(descending=True, stable=True)]
    return torch.cat([torch.arange(n_known), found])
