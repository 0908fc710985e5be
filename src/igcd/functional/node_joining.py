"""Fewer nodes for a tree over very many rows: nodes that are each other's nearest join before the tree grows.

Ward's rule is reducible: joining two nodes that are each other's nearest changes no later join of the tree. So a tree
over the joined nodes is the top of the tree over all of them, as far as the neighbors looked at are the nearest.
"""

import numpy as np
import torch
from torch import Tensor

from igcd.functional.neighbors import neighbor_graph
from igcd.types import FloatArray, IntArray

N_NEAREST = 16
"""Nodes that each node is compared with; a node that is small, and so cheap to join, may lie behind larger ones."""
_PAIRS_AT_A_TIME = 2**17


def join_nearest(centers: Tensor, weights: Tensor, *, n_most: int) -> Tensor:
    """Groups of nodes, at most `n_most` where neighbors reach so far. (m, d) means, (m,) rows -> (m,) from 0.

    In each round nodes that are each other's nearest by Ward's cost join, the cheaper half of them, so that cheap joins
    come before dear ones.
    """
    group = np.arange(len(centers))
    means, n = centers.float(), weights.double().numpy()
    while len(n) > n_most:
        graph = neighbor_graph(means, min(N_NEAREST, len(means) - 1)).idx.numpy()
        pairs = np.stack([np.repeat(np.arange(len(n)), graph.shape[1]), graph.ravel()], axis=1)
        n_before = len(n)
        while len(n) > n_most:
            pairs = _each_once(pairs, len(n))
            joins = _joins(pairs, _ward_costs(means, n, pairs))
            if not len(joins):
                break
            joins = joins[: min(len(n) - n_most, (len(joins) + 1) // 2)]
            merged = _renumbered(len(n), joins)
            group, pairs = merged[group], merged[pairs]
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
            means, n = _merge(means, n, merged)
        if len(n) == n_before:
            break
    return torch.from_numpy(group)


def _ward_costs(means: Tensor, n: FloatArray, pairs: IntArray) -> FloatArray:
    """What joining each pair adds to the sum of squared distances, n m / (n + m) ‖μ − ν‖². (m, d), (m,), (p, 2)."""
    apart = [
        (means[part[:, 0]] - means[part[:, 1]]).square().sum(dim=1)
        for part in torch.split(torch.from_numpy(pairs), _PAIRS_AT_A_TIME)
    ]
    a, b = n[pairs[:, 0]], n[pairs[:, 1]]
    return np.asarray(torch.cat(apart).double().numpy() * a * b / (a + b)) if apart else np.empty(0)


def _each_once(pairs: IntArray, n_nodes: int) -> IntArray:
    """Pairs with the lower node first, none twice, in their order. (p, 2) -> (q, 2)."""
    numbers = np.unique(pairs.min(axis=1) * n_nodes + pairs.max(axis=1))  # far faster than rows
    return np.stack([numbers // n_nodes, numbers % n_nodes], axis=1)


def _joins(pairs: IntArray, costs: FloatArray) -> IntArray:
    """The pairs whose two nodes have no cheaper pair, the cheapest first. (p, 2), (p,) -> (j, 2)."""
    pairs = pairs[np.lexsort([pairs[:, 1], pairs[:, 0], costs])]
    own = np.arange(len(pairs))
    cheapest = np.full(int(pairs.max(initial=-1)) + 1, len(pairs))  # for each node the first pair that names it
    np.minimum.at(cheapest, pairs.ravel(), np.repeat(own, 2))
    return np.asarray(pairs[(cheapest[pairs] == own[:, None]).all(axis=1)])


def _renumbered(n_nodes: int, joins: IntArray) -> IntArray:
    """The new number of each node when the second of each join becomes the first. (j, 2) -> (m,)."""
    parent = np.arange(n_nodes)
    parent[joins[:, 1]] = joins[:, 0]
    return np.unique(parent, return_inverse=True)[1]


def _merge(means: Tensor, n: FloatArray, merged: IntArray) -> tuple[Tensor, FloatArray]:
    """Means and numbers of rows of the joined nodes."""
    total = np.asarray(np.bincount(merged, weights=n), dtype=np.float64)
    share = torch.from_numpy(n / total[merged]).to(means.dtype)
    joined = torch.zeros(len(total), means.shape[1], dtype=means.dtype)
    return joined.index_add_(0, torch.from_numpy(merged), means * share[:, None]), total
