"""Counting inside groups without a loop over the groups."""

import torch
from torch import Tensor


def distinct(values: Tensor) -> tuple[Tensor, Tensor]:
    """The different values, rising, and for each element the position of its own among them. (n,) -> (c,), (n,).

    >>> distinct(torch.tensor([7, 3, 7]))
    (tensor([3, 7]), tensor([1, 0, 1]))
    """
    different, rows = torch.unique(values, return_inverse=True)
    return different, rows


def rank_within_group(groups: Tensor) -> Tensor:
    """How many earlier elements belong to the same group. (n,) -> (n,).

    >>> rank_within_group(torch.tensor([7, 3, 7, 7, 3]))
    tensor([0, 0, 1, 2, 1])
    """
    order = groups.argsort(stable=True)
    _, sizes = torch.unique_consecutive(groups[order], return_counts=True)
    starts = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    ranks = torch.empty_like(order)
    ranks[order] = torch.arange(len(groups), device=groups.device) - starts
    return ranks
