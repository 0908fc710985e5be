"""How large new categories are beside all: what it takes to join them grows with their rows.

Joining two groups of n rows each costs n / 2 times the squared distance of their means (Ward's rule). Labels and tree
say where to cut for categories of the mean size. Where new ones have half of the rows, because labeled rows make known
ones larger, they join each other at half of that height: they have to be cut there.
"""

import numpy as np

from igcd.types import IntArray


def relative_size(groups: IntArray, n_labeled: int) -> float:
    """Rows of a new category divided by those of any, 1 where that is not sure. (m + n,) of which m are labeled.

    A labeled row sees a share of labeled rows in its group. Groups with less than half of the share that is typical are
    new categories; both kinds may be parts of categories, to the same degree. The logarithm of the ratio of their mean
    sizes is taken as far as it is surely not 0: times 1 minus its squared error by its square (James and Stein).

    >>> known, new = np.arange(4).repeat(20), np.arange(4, 8).repeat(10)  # half of the known rows are labeled
    >>> groups = np.concatenate([known[::2], known[1::2], new])
    >>> round(relative_size(groups, n_labeled=40), 3)  # 10 rows, and 15 in the mean
    0.667
    >>> relative_size(known, n_labeled=40), relative_size(groups, n_labeled=0)
    (1.0, 1.0)
    """
    _, groups, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if n_labeled == 0:
        return 1.0
    shares = np.bincount(groups[:n_labeled], minlength=len(sizes)) / sizes
    is_new = shares < np.median(shares[groups[:n_labeled]]) / 2
    new, known = sizes[is_new], sizes[~is_new]
    if min(len(new), len(known)) < 2:
        return 1.0
    ratio = float(np.log(new.mean() / sizes.mean()))
    error = sum(part.var() / part.mean() ** 2 / (len(part) - 1) for part in (new, known))
    return float(np.exp(ratio * max(0.0, 1 - error / max(ratio**2, 1e-12))))
