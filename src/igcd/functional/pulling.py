"""Rows pulled together with their neighbors, and the tree that grows over them."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.category_tree import CategoryTree, grow_tree
from igcd.functional.density import density
from igcd.functional.grouping import distinct
from igcd.functional.mapped_tables import half_table
from igcd.functional.neighbors import Neighbors
from igcd.functional.node_joining import join_nearest

N_NEIGHBORS = 8
"""Neighbors whose mean a row moves to, and along which it climbs to the peak of its group; 5 to 12 do as well."""
N_PULLS = 2
"""Times that rows are pulled together."""
MAX_NODES = 4096
"""So many rows are nodes of the tree themselves; of more, those that climb to one density peak are a node together."""
MOST_NODES = 8192
"""Of more peaks than this the nearest join before the tree grows: its table of distances would not fit into memory."""
_ROWS_AT_A_TIME = 4096


def pull_together(rows: Tensor, neighbors: Neighbors) -> Tensor:
    """Each row at the mean of its neighborhood, of length 1, a few times over; the neighbors stay the same. (n, d)."""
    for _ in range(N_PULLS):
        is_half = rows.dtype == torch.float16
        moved = half_table(len(rows), rows.shape[1], rows.device) if is_half else torch.empty_like(rows)
        for start in range(0, len(rows), _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            around = rows[neighbors.idx[part].ravel()].reshape(-1, neighbors.k, rows.shape[1])
            around = around.to(neighbors.similarity.dtype).sum(dim=1)  # half precision is for storage
            moved[part] = normalize(rows[part] + around, dim=1)
        rows = moved
    return rows


def climb_to_peaks(densities: Tensor, neighbors: Neighbors) -> Tensor:
    """The density peak that each row reaches by going to its densest neighbor again and again. (n,), (n, k) -> (n,).

    Of equally dense rows the one with the lower index counts as denser, so every path ends.
    """
    own = torch.arange(len(densities))
    candidates = torch.cat([own[:, None], neighbors.idx], dim=1)
    order = torch.empty_like(own)
    order[densities.argsort(descending=True, stable=True)] = own
    upward = candidates.gather(1, order[candidates].argmin(dim=1, keepdim=True))[:, 0]
    while not torch.equal(upward, upward[upward]):
        upward = upward[upward]
    return upward


def node_of_rows(graph: Neighbors, *, max_nodes: int = MAX_NODES) -> Tensor:
    """The node of the tree that each row is in: its own, or with more than `max_nodes` rows that of its density peak.

    Rows climb along as few neighbors as leave no more than `max_nodes` peaks. (n, k) -> (n,).
    """
    node = torch.arange(len(graph.idx))
    if len(node) <= max_nodes:
        return node
    densities = density(graph)
    for k in range(1, graph.k + 1):
        node = distinct(climb_to_peaks(densities, graph.first(k)))[1]
        if int(node.max()) < max_nodes:
            break
    return node


def few_nodes(pulled: Tensor, node: Tensor) -> Tensor:
    """The same nodes, or where there are more than `MOST_NODES` fewer and larger ones. (n, d), (n,) -> (n,)."""
    sizes = torch.bincount(node)
    if len(sizes) <= MOST_NODES:
        return node
    return join_nearest(group_means(pulled, node, len(sizes)), sizes, n_most=MOST_NODES)[node]


def tree_over(rows: Tensor, nodes: Tensor, *, n_known: int = 0) -> CategoryTree:
    """The tree over nodes, each at the mean of its rows. (n, d), (n,)."""
    n_nodes = int(nodes.max()) + 1
    sizes = torch.bincount(nodes, minlength=n_nodes)
    return grow_tree(group_means(rows, nodes, n_nodes).numpy(), sizes.numpy(), n_known=n_known)


def inside_nodes(rows: Tensor, nodes: Tensor) -> float:
    """The sum of squared distances of rows to the means of their nodes. (n, d), (n,).

    It is the sum of the joins by which Ward's rule makes the nodes of single rows.

    >>> inside_nodes(torch.tensor([[0.0], [2.0], [7.0]]), torch.tensor([0, 0, 1]))
    2.0
    """
    n_nodes = int(nodes.max()) + 1 if len(nodes) else 0
    if n_nodes == len(nodes):
        return 0.0
    means = group_means(rows, nodes, n_nodes)
    parts = zip(torch.split(rows, _ROWS_AT_A_TIME), torch.split(nodes, _ROWS_AT_A_TIME), strict=True)
    return sum(float((part - means[own]).square().sum(dtype=torch.float64)) for part, own in parts)


def group_means(rows: Tensor, groups: Tensor, n_groups: int) -> Tensor:
    """Mean of each group's rows; zero for a group without any. (n, d), (n,) -> (g, d)."""
    sums = torch.zeros(n_groups, rows.shape[1], dtype=torch.promote_types(rows.dtype, torch.float32))
    for part, own in zip(torch.split(rows, _ROWS_AT_A_TIME), torch.split(groups, _ROWS_AT_A_TIME), strict=True):
        sums.index_add_(0, own, part.to(sums.dtype))
    return sums / torch.bincount(groups, minlength=n_groups).clamp(min=1)[:, None]
