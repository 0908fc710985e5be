"""Tables of very many rows that lie in a file without a name: the system keeps in memory what is looked at."""

import tempfile

import numpy as np
import torch
from torch import Tensor

MAPPED_FROM = 2**26
"""Bytes from which a table is mapped: 64 MB, 130,000 rows of 256 numbers."""


def half_table(n_rows: int, width: int, device: torch.device | str = "cpu") -> Tensor:
    """Room for a table in half precision, (n, width); a large one is mapped, and gone when nobody holds it any more.

    >>> half_table(2, 3).shape
    torch.Size([2, 3])
    """
    if torch.device(device).type != "cpu" or 2 * n_rows * width < MAPPED_FROM:
        return torch.empty(n_rows, width, dtype=torch.float16, device=device)
    with tempfile.TemporaryFile() as file:  # the mapping keeps what is in it
        return torch.from_numpy(np.memmap(file, dtype=np.float16, mode="w+", shape=(n_rows, width)))
