"""How fine categories are, asked of labeled rows by hiding some of their categories: the height to cut the tree at.

Later batches come with little of what is known: statistics, or a few rows of each category. Those cannot say it. Rows
drawn from statistics lie closer together, and farther from other categories, than real rows do, and so do rows that
were kept because they are typical. So the height is found while labeled rows are there, in scenes like those to come,
and kept as one number.
"""

import torch
from torch import Tensor

from igcd.functional.discovery import discover, discover_from_statistics, smallest_size
from igcd.functional.gaussian import scatter_statistics
from igcd.functional.grouping import distinct
from igcd.functional.selection import select_by_density, select_per_category

HIDDEN = 1 / 7
"""Share of the categories that are hidden at a time."""
RETURNING = 0.2
"""Share of the rows of the others that play unlabeled ones."""
N_TIMES = 5


def height_by_hiding(rows: Tensor, categories: Tensor, *, n_kept: int | None = None, seed: int = 0) -> float | None:
    """The height at which as many new categories are found as were hidden, the median of a few draws. (m, d), (m,).

    `n_kept` is the number of typical rows that are kept of each known category; None where only statistics are. The
    height is None where categories or rows are too few to hide any.
    """
    ids, owners = distinct(categories)
    n_hidden = max(1, round(HIDDEN * len(ids)))
    smallest = smallest_size(torch.bincount(owners))
    if len(ids) - n_hidden < 2 or int(torch.bincount(owners).median()) < 2:
        return None
    generator = torch.Generator().manual_seed(seed)
    heights = []
    for _ in range(N_TIMES):
        is_hidden = torch.isin(owners, torch.randperm(len(ids), generator=generator)[:n_hidden])
        plays_unlabeled = is_hidden | (torch.rand(len(rows), generator=generator) < RETURNING)
        known, unlabeled = rows[~plays_unlabeled], rows[plays_unlabeled]
        known_ids, known_owners = distinct(owners[~plays_unlabeled])
        n_novel = len(ids) - len(known_ids)  # with categories of which no row is left
        if n_kept is None:
            statistics = scatter_statistics(known, known_owners, n_categories=len(known_ids))
            found = discover_from_statistics(unlabeled, statistics, n_novel=n_novel, seed=seed)
        else:
            kept = select_per_category(known, known_owners, n_kept, select=select_by_density)
            found = discover(unlabeled, known[kept], known_owners[kept], n_novel=n_novel, smallest=smallest, seed=seed)
        heights.append(found.cut.height)
    return float(torch.tensor(heights).median())
