"""The last step of discovery: means of categories that follow their rows, and the category of each row.

A row alone is easily wrong about where it belongs; the rows around it are wrong in other ways. So in each round every
row goes where it and its neighbors probably belong, and means follow that. In the end each row goes to the nearest
mean, as any later row will.
"""

import torch
from torch import Tensor

from igcd.functional.pulling import group_means

N_ROUNDS = 5
SHARPNESS = 25.0
"""Of the probabilities that neighbors vote with; 18 to 30 do as well."""
N_VOTED = 4
"""Categories that a row votes for, its most probable ones; 2 do as well."""
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
    category = torch.cat([owners, place[start]])
    has_one = category >= 0
    means = group_means(rows[has_one], category[has_one], n_means)
    for _ in range(N_ROUNDS):
        voted = torch.cat([owners, follow_neighbors(rows, neighbors, owners, means)[n_labeled:]])
        n_rows = torch.bincount(voted, minlength=n_means)
        if torch.equal(voted, category) or (keeps_all and (n_rows[n_known:] == 0).any()):
            break
        category = voted
        means = torch.where((n_rows > 0)[:, None], group_means(rows, category, n_means), means)
    nearest = torch.cat([owners, nearest_mean(rows[n_labeled:], means)])
    if keeps_all and (torch.bincount(nearest, minlength=n_means)[n_known:] == 0).any():
        nearest = torch.where(category >= 0, category, nearest)
    category = nearest
    order = _from_large_to_small(means, torch.bincount(category, minlength=n_means), n_known)
    renumbered = torch.full((n_means,), -1)
    renumbered[order] = torch.arange(len(order))
    return means[order], renumbered[category[n_labeled:]]


def follow_neighbors(rows: Tensor, neighbors: Tensor, owners: Tensor, means: Tensor) -> Tensor:
    """The category that each row and its neighbors vote for. (n, d), (n, k), (m,), (c, d) -> (n,).

    A row votes for its most probable categories with their probabilities, one of the first m rows for its own category,
    `owners`. Its vote counts twice for itself, so that two rows that are each other's only neighbor stay apart.
    """
    n_voted = min(N_VOTED, len(means))
    ids, probs = torch.zeros(len(rows), n_voted, dtype=torch.int64), torch.zeros(len(rows), n_voted, dtype=means.dtype)
    for part in _parts(len(rows)):
        best = (SHARPNESS * closeness(rows[part], means)).softmax(dim=1).topk(n_voted, dim=1)
        ids[part], probs[part] = best.indices, best.values
    ids[: len(owners), 0], probs[: len(owners)] = owners, torch.eye(1, n_voted, dtype=means.dtype)  # 1, then zeros
    category = torch.empty(len(rows), dtype=torch.int64)
    for part in _parts(len(rows)):
        own = torch.arange(len(rows))[part, None]
        around = torch.cat([own, own, neighbors[part]], dim=1)
        votes = torch.zeros(len(around), len(means), dtype=means.dtype)
        votes.scatter_add_(1, ids[around].flatten(1), probs[around].flatten(1))
        category[part] = votes.argmax(dim=1)
    return category


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


def _parts(n: int) -> list[slice]:
    return [slice(start, start + _ROWS_AT_A_TIME) for start in range(0, n, _ROWS_AT_A_TIME)]
