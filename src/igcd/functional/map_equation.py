"""The map equation: how many bits a step of a random walk on the neighbor graph takes, given groups.

Good groups are regions that a walk stays in for long: then a step is described by a short name inside the group, and
the name of another group is rarely needed (Rosvall and Bergstrom, 2008). Groups too large make names inside long,
groups too small make changes frequent.
"""

import numpy as np

from igcd.types import FloatArray, IntArray


def bits_per_step(groups: IntArray, neighbors: IntArray) -> float:
    """Mean bits of a step of a walk along neighbors, in both directions. (n,) from 0, (n, k).

    >>> two = np.array([[1, 2], [0, 2], [0, 1], [4, 5], [3, 5], [3, 4]])  # two triangles
    >>> bits = [bits_per_step(np.array(groups), two) for groups in ([0] * 6, [0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 4, 5])]
    >>> [round(value, 2) for value in bits]
    [2.58, 1.58, 4.58]
    """
    n, k = neighbors.shape
    total = 2.0 * n * k
    visits = (k + np.bincount(neighbors.ravel(), minlength=n)) / total
    source, target = np.repeat(groups, k), groups[neighbors.ravel()]
    leaves = source != target
    n_groups = int(groups.max()) + 1
    exits = np.bincount(source[leaves], minlength=n_groups) + np.bincount(target[leaves], minlength=n_groups)
    out = exits / total
    inside = np.bincount(groups, weights=visits, minlength=n_groups)
    return float(_plogp(out.sum()[None]) - 2 * _plogp(out) - _plogp(visits) + _plogp(out + inside))


def _plogp(p: FloatArray) -> float:
    """Σ p log₂ p, where 0 log 0 is 0."""
    positive = p[p > 0]
    return float((positive * np.log2(positive)).sum())
