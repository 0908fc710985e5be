"""How large new categories are beside all: what it takes to join them grows with their rows.

Joining two groups of n rows each costs n / 2 times the squared distance of their means (Ward's rule). Labels and tree
say where to cut for categories of the mean size. Where new ones have half of the rows, because labeled rows make known
ones larger, they join each other at half of that height: they have to be cut there.
"""

import numpy as np

from igcd.types import IntArray

FEW_LABELS = 0.25
"""A group with less than this share of the labels that it would have in known categories is a new one."""
SURE = 3.0
"""Labels that a group has to have in known categories, on average, to be looked at: 5% of those have none by chance."""


def relative_size(groups: IntArray, n_labeled: int) -> float:
    """Rows of a new category divided by those of any, 1 where that is not sure. (m + n,) of which m are labeled.

    A labeled row sees a share of labeled rows in its group. Groups with far less than the share that is typical are new
    categories, those with as much are known ones, others are mixed. Both kinds may be parts of categories, to the same
    degree. Groups so small that chance can leave them without labels are passed over. The logarithm of the ratio of
    mean sizes is taken as far as it is surely not 0: times 1 minus its squared error by its square (James and Stein).

    >>> known, new = np.arange(4).repeat(20), np.arange(4, 8).repeat(10)  # half of the known rows are labeled
    >>> groups = np.concatenate([known[::2], known[1::2], new])
    >>> round(relative_size(groups, n_labeled=40), 3)  # 10 rows, and 15 in the mean
    0.667
    >>> relative_size(known, n_labeled=40), relative_size(groups, n_labeled=0)
    (1.0, 1.0)
    """
    if n_labeled == 0:
        return 1.0
    _, groups, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n_labels = np.bincount(groups[:n_labeled], minlength=len(sizes))
    expected = sizes * np.median((n_labels / sizes)[groups[:n_labeled]])
    is_sure = expected >= SURE
    new, known = sizes[is_sure & (n_labels < FEW_LABELS * expected)], sizes[is_sure & (n_labels >= expected)]
    if min(len(new), len(known)) < 2:
        return 1.0
    ratio = float(np.log(new.mean() / np.concatenate([new, known]).mean()))
    error = sum(part.var() / part.mean() ** 2 / (len(part) - 1) for part in (new, known))
    return float(np.exp(ratio * max(0.0, 1 - error / max(ratio**2, 1e-12))))
