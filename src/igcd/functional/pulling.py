"""Rows pulled together with their neighbors, and the tree that grows over them."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.category_tree import CategoryTree, grow_tree
from igcd.functional.mapped_tables import half_table
from igcd.functional.neighbors import Neighbors
from igcd.functional.node_joining import join_nearest

N_NEIGHBORS = 8
"""Neighbors whose mean a row moves to; 5 to 12 do as well."""
N_PULLS = 2
"""Times that rows are pulled together."""
MAX_NODES = 4096
"""So many rows are nodes of the tree themselves; of more, those nearest to each other are a node together."""
MOST_NODES = 2 * MAX_NODES
"""Nodes of a tree over very many rows: its table of distances has 256 MB."""
ROWS_PER_NODE = 16
"""In the mean, at most, until nodes are `MOST_NODES`."""
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


def node_of_rows(pulled: Tensor, neighbors: Tensor, *, max_nodes: int | None = None) -> Tensor:
    """The node of the tree that each row is in: its own, or of too many rows one that it shares with the nearest.

    `max_nodes` is `MAX_NODES` unless given, and up to `MOST_NODES` for very many rows. (n, d), (n, k) -> (n,).
    """
    if max_nodes is None:
        max_nodes = max(MAX_NODES, min(MOST_NODES, len(pulled) // ROWS_PER_NODE))
    return join_nearest(pulled, neighbors, n_most=max_nodes)


def tree_over(rows: Tensor, nodes: Tensor, *, n_known: int = 0) -> CategoryTree:
    """The tree over nodes, each at the mean of its rows, the first `n_known` of known categories. (n, d), (n,).

    A known category with m labeled rows weighs as much as m² others: its rows certainly belong together, so its mean
    moves little, and a group that is not quite there stays apart. (With one label it is where its row is.)
    """
    n_nodes = int(nodes.max()) + 1
    weights = torch.bincount(nodes, minlength=n_nodes).double()
    weights[:n_known].square_()
    return grow_tree(group_means(rows, nodes, n_nodes).numpy(), weights.numpy(), n_known=n_known)


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
