"""Fewer nodes for a tree over many rows: nodes that are each other's nearest join before the tree grows.

Ward's rule is reducible: joining two nodes that are each other's nearest changes no later join of the tree. So a tree
over the joined nodes is the top of the tree over all rows, as far as the neighbors looked at are the nearest.
"""

import numpy as np
import torch
from torch import Tensor

from igcd.functional.neighbors import neighbor_graph
from igcd.types import FloatArray, IntArray

N_NEAREST = 16
"""Nodes that each node is compared with, once no two nodes that are left have rows that are neighbors."""
_PAIRS_AT_A_TIME = 2**15
_ROWS_AT_A_TIME = 4096


def join_nearest(rows: Tensor, neighbors: Tensor, *, n_most: int) -> Tensor:
    """Groups of rows, at most `n_most`; each row is its own where rows are no more. (n, d), (n, k) -> (n,) from 0.

    In each round all nodes that are each other's nearest by Ward's cost join; in the last one the cheapest of them.
    Nodes are compared where a row of one is a neighbor of a row of the other.
    """
    group = np.arange(len(rows))
    if len(rows) <= n_most:
        return torch.from_numpy(group)
    means, n = rows, np.ones(len(rows))
    pairs = _pairs_of(neighbors)
    costs = _ward_costs(means, n, pairs)
    while len(n) > n_most:
        if not len(pairs):
            pairs = _pairs_of(neighbor_graph(means, min(N_NEAREST, len(means) - 1)).idx)
            costs = _ward_costs(means, n, pairs)
        joins = _joins(pairs, costs)[: len(n) - n_most]
        is_joined = np.zeros(len(n), dtype=bool)
        is_joined[joins] = True
        merged = _renumbered(len(n), joins)
        group, (means, n) = merged[group], _merge(means, n, merged)
        is_changed = is_joined[pairs].any(axis=1)
        changed = merged[pairs[is_changed]]
        changed = _each_once(changed[changed[:, 0] != changed[:, 1]], len(n))
        costs = np.concatenate([costs[~is_changed], _ward_costs(means, n, changed)])
        pairs = np.concatenate([merged[pairs[~is_changed]], changed])
    return torch.from_numpy(group)


def _pairs_of(neighbors: Tensor) -> IntArray:
    """Each row with each of its neighbors, the lower first, no pair twice. (n, k) -> (p, 2)."""
    n, k = neighbors.shape
    return _each_once(np.stack([np.repeat(np.arange(n), k), neighbors.cpu().numpy().ravel()], axis=1), n)


def _ward_costs(means: Tensor, n: FloatArray, pairs: IntArray) -> FloatArray:
    """What joining each pair adds to the sum of squared distances, n m / (n + m) ‖μ − ν‖². (m, d), (m,), (p, 2)."""
    apart = [
        (means[part[:, 0]].float() - means[part[:, 1]].float()).square().sum(dim=1)
        for part in torch.split(torch.from_numpy(pairs), _PAIRS_AT_A_TIME)
    ]
    a, b = n[pairs[:, 0]], n[pairs[:, 1]]
    return np.asarray(torch.cat(apart).double().numpy() * a * b / (a + b)) if apart else np.empty(0)


def _each_once(pairs: IntArray, n_nodes: int) -> IntArray:
    """Pairs with the lower node first, none twice. (p, 2) -> (q, 2)."""
    numbers = np.unique(pairs.min(axis=1) * n_nodes + pairs.max(axis=1))  # far faster than rows
    return np.stack([numbers // n_nodes, numbers % n_nodes], axis=1)


def _joins(pairs: IntArray, costs: FloatArray) -> IntArray:
    """The pairs whose two nodes have no cheaper pair, the cheapest first. (p, 2), (p,) -> (j, 2)."""
    lowest = np.full(int(pairs.max()) + 1, np.inf)
    np.minimum.at(lowest, pairs.T.ravel(), np.tile(costs, 2))
    among = (costs[:, None] <= lowest[pairs]).all(axis=1)
    pairs, costs = pairs[among], costs[among]
    pairs = pairs[np.lexsort([pairs[:, 1], pairs[:, 0], costs])]
    own = np.arange(len(pairs))
    first = np.full(len(lowest), len(pairs))  # of pairs that cost the same, each node is in the first
    np.minimum.at(first, pairs.ravel(), np.repeat(own, 2))
    return np.asarray(pairs[(first[pairs] == own[:, None]).all(axis=1)])


def _renumbered(n_nodes: int, joins: IntArray) -> IntArray:
    """The new number of each node when the second of each join becomes the first. (j, 2) -> (m,)."""
    parent = np.arange(n_nodes)
    parent[joins[:, 1]] = joins[:, 0]
    return np.unique(parent, return_inverse=True)[1]


def _merge(means: Tensor, n: FloatArray, merged: IntArray) -> tuple[Tensor, FloatArray]:
    """Means and numbers of rows of the joined nodes."""
    total = np.asarray(np.bincount(merged, weights=n), dtype=np.float64)
    share, number = torch.from_numpy(n / total[merged]).float(), torch.from_numpy(merged)
    joined = torch.zeros(len(total), means.shape[1])
    for start in range(0, len(n), _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        joined.index_add_(0, number[part], means[part].float() * share[part, None])
    return joined, total
