"""Groups that one half of the dimensions finds, checked by the other half.

Inside a category, whitened dimensions vary independently of each other. So groups that half of them find by chance are
of no use to the other half, and groups that are there are: the mean of a row's group tells where the row lies.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.category_tree import cut_tree
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.pulling import N_NEIGHBORS, group_means, node_of_rows, pull_together, tree_over
from igcd.types import FloatArray, IntArray

MAX_ROWS = 8192
"""Of more rows a sample is looked at."""
MAX_NODES = 1024
"""Nodes of a tree over half of the dimensions: a quarter of the nodes takes a sixteenth of the time."""


def explained_shares(rows: Tensor, tried: IntArray, *, seed: int = 0) -> FloatArray:
    """How much each number of groups explains of dimensions that did not find them. (n, d), (t,) -> (t,), 0 to 1.

    1 stands for the number that explains most, 0 for the one that explains least.
    """
    generator = torch.Generator().manual_seed(seed)
    if len(rows) > MAX_ROWS:
        rows = rows[torch.randperm(len(rows), generator=generator)[:MAX_ROWS]]
    rows = rows.to(torch.promote_types(rows.dtype, torch.float32))  # half precision is for storage
    halves = torch.randperm(rows.shape[1], generator=generator).tensor_split(2)
    if len(rows) < 2 or not len(halves[1]):
        return np.zeros(len(tried))
    errors = np.zeros(len(tried))
    for finding, checking in (halves, halves[::-1]):
        seen = normalize(rows[:, finding], dim=1)
        graph = neighbor_graph(seen, min(N_NEIGHBORS, len(seen) - 1))
        pulled = pull_together(seen, graph)
        node = node_of_rows(pulled, graph.idx, max_nodes=MAX_NODES)
        tree = tree_over(pulled, node)
        for position, n_groups in enumerate(tried.tolist()):
            groups = torch.from_numpy(np.unique(cut_tree(tree, tree.height_for(n_groups)), return_inverse=True)[1])
            errors[position] += left_out_error(rows[:, checking], groups[node])
    return np.asarray((errors.max() - errors) / max(float(errors.max() - errors.min()), 1e-12))


def left_out_error(rows: Tensor, groups: Tensor) -> float:
    """Mean squared distance of a row to the mean of the others in its group. (n, d), (n,) from 0.

    A row that is alone is compared with the mean of all rows. Leaving a row out of a mean of m moves it m / (m − 1)
    times as far from it.

    >>> left_out_error(torch.tensor([[0.0], [2.0], [5.0], [7.0]]), torch.tensor([0, 0, 1, 1]))
    4.0
    """
    n_groups = int(groups.max()) + 1
    sizes = torch.bincount(groups, minlength=n_groups)
    apart = (rows - group_means(rows, groups, n_groups)[groups]).square().sum(dim=1)
    factors = (sizes / (sizes - 1).clamp(min=1)).square()[groups]
    alone = (rows - rows.mean(dim=0)).square().sum(dim=1)
    return float(torch.where(sizes[groups] > 1, factors * apart, alone).mean())
