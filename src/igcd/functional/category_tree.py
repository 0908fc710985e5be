"""A tree over groups of rows: the two most alike join first, until known categories are all that is left.

Ward's rule says how alike two groups are: by how much joining them raises the sum of squared distances to group means,
n m / (n + m) ‖μ − ν‖². Cutting the tree at a height gives categories; a lower cut gives finer ones inside them. Known
categories are nodes from the start, and two of them never join.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from igcd.types import BoolArray, FloatArray, IntArray

DISSOLVED = -1
"""The group of rows that are too few to be a category."""


@dataclass(frozen=True)
class CategoryTree:
    """Joins of nodes 0 … m − 1 in rising height; of two joined nodes the first speaks for both from then on."""

    n_nodes: int
    n_known: int  # nodes 0 … c − 1 are known categories
    pairs: IntArray  # (j, 2)
    heights: FloatArray  # (j,) rising

    def height_for(self, n_groups: int) -> float:
        """A height at which so many groups are left, if there is one: between the last join below and the next."""
        below = self.n_nodes - n_groups
        if below <= 0 or not len(self.heights):
            return 0.0
        if below >= len(self.heights):
            return float(self.heights[-1]) * 2
        return float(np.sqrt(self.heights[below - 1] * self.heights[below]))


def grow_tree(centers: npt.ArrayLike, weights: npt.ArrayLike, *, n_known: int = 0) -> CategoryTree:
    """The tree over nodes with these means and numbers of rows, the first `n_known` of which never join. (m, d), (m,).

    The nearest-neighbor chain finds all joins in O(m²) time, with one table of m × m distances in memory.

    >>> tree = grow_tree([[0.0], [1.0], [10.0]], [1, 1, 1])
    >>> tree.pairs.tolist(), tree.heights.round(2).tolist()
    ([[0, 1], [0, 2]], [0.5, 60.17])
    """
    means, n = np.asarray(centers, dtype=np.float32), np.asarray(weights, dtype=np.float32).copy()
    costs = _join_costs(means, n, n_known)
    is_known = np.arange(len(n)) < n_known
    alive = np.ones(len(n), dtype=bool)
    is_open = ~is_known  # may still go somewhere
    joins: list[tuple[int, int, float]] = []
    chain: list[int] = []
    while chain or is_open.any():
        if not chain:
            chain = [int(is_open.argmax())]
        node = chain[-1]
        nearest = int(costs[node].argmin())
        cost = float(costs[node, nearest])
        if not np.isfinite(cost):  # the last one of a tree without known categories
            is_open[node] = False
            chain.pop()
        elif len(chain) > 1 and costs[node, chain[-2]] <= cost:
            stays, goes = sorted((chain.pop(), chain.pop()))  # a known category has the lower number and stays
            joins.append((stays, goes, cost))
            is_open[goes] = False
            _join(costs, n, alive, is_known, stays, goes, cost)
        else:
            chain.append(nearest)
    joins.sort(key=lambda join: join[2])
    pairs = np.array([join[:2] for join in joins], dtype=np.int64).reshape(-1, 2)
    return CategoryTree(len(n), n_known, pairs, np.array([join[2] for join in joins]))


def _join_costs(means: npt.NDArray[np.float32], n: npt.NDArray[np.float32], n_known: int) -> npt.NDArray[np.float32]:
    squares = (means * means).sum(axis=1)
    costs = means @ means.T
    costs *= -2
    costs += squares
    costs += squares[:, None]
    np.maximum(costs, 0, out=costs)
    costs *= n * n[:, None] / (n + n[:, None])
    np.fill_diagonal(costs, np.inf)
    costs[:n_known, :n_known] = np.inf
    return costs


def _join(
    costs: npt.NDArray[np.float32],
    n: npt.NDArray[np.float32],
    alive: BoolArray,
    is_known: BoolArray,
    stays: int,
    goes: int,
    cost: float,
) -> None:
    """Distances from the joined group to all others, from those of its halves (Lance and Williams)."""
    joined = ((n[stays] + n) * costs[stays] + (n[goes] + n) * costs[goes] - n * np.float32(cost)) / (
        n[stays] + n[goes] + n
    )
    n[stays] += n[goes]
    alive[goes] = False
    joined[~alive] = np.inf
    joined[stays] = np.inf
    if is_known[stays]:
        joined[is_known] = np.inf
    costs[stays], costs[:, stays] = joined, joined
    costs[goes], costs[:, goes] = np.inf, np.inf


def cut_tree(tree: CategoryTree, height: float, *, sizes: IntArray | None = None, smallest: int = 1) -> IntArray:
    """The group of each node when joins above a height are undone. (m,) -> (m,), numbered by the node that speaks.

    A group of fewer than `smallest` rows (`sizes` says how many a node has) is no category: it joins others as small
    next to it in the tree until they are enough, and is `DISSOLVED` where its next is a category already. So a lower
    cut never gives fewer categories.
    """
    parent = np.arange(tree.n_nodes)
    n_below = int(np.searchsorted(tree.heights, height, side="right"))
    for stays, goes in tree.pairs[:n_below]:
        parent[goes] = stays
    if sizes is None:
        return _roots(parent)
    roots = _roots(parent)
    n_rows = np.bincount(roots, weights=sizes, minlength=tree.n_nodes)
    is_settled = n_rows >= smallest  # of a root: whether it is, or leads to, a category
    is_settled[: tree.n_known] = True
    dissolved = np.zeros(tree.n_nodes, dtype=bool)
    for stays, goes in tree.pairs[n_below:]:
        if not is_settled[stays] and not is_settled[goes]:
            parent[goes] = stays
            n_rows[stays] += n_rows[goes]
            is_settled[stays] = n_rows[stays] >= smallest
        else:  # what is too small beside a category falls out of it
            for node in (stays, goes):
                dissolved[node] |= not is_settled[node]
            is_settled[stays] = True
    roots = _roots(parent)
    last = {int(root) for root in np.unique(roots)}
    too_small = np.array([root for root in last if not is_settled[root] or dissolved[root]], dtype=np.int64)
    return np.where(np.isin(roots, too_small), DISSOLVED, roots)


def _roots(parent: IntArray) -> IntArray:
    """The node that speaks for each, by following those it joined."""
    while True:
        further = parent[parent]
        if (further == parent).all():
            return parent.copy()
        parent = further
