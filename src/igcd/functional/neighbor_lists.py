"""Lists of neighbors in which the row itself may stand: a search among all rows finds each as its own nearest."""

from torch import Tensor


def is_another(lists: Tensor, rows: Tensor) -> Tensor:
    """Which entries are neighbors and not the row itself, all but one of each list. (n, k), (n,) -> (n, k).

    Among copies of a row it may not be in its own list; then the last entry, the farthest, is left out.

    >>> import torch
    >>> is_another(torch.tensor([[4, 7, 9], [7, 4, 8]]), torch.tensor([4, 5]))
    tensor([[False,  True,  True],
            [ True,  True, False]])
    """
    is_self = lists == rows[:, None]
    is_self[:, -1] |= ~is_self.any(dim=1)
    return ~is_self
