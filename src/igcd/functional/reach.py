"""How large categories are, seen from inside: how fast the distance to the r-th nearest row grows with r.

Inside a category the next row is hardly farther than the one before. Behind its last row come those of other
categories, and they are far. So on a logarithmic scale of r the distance grows fastest where r is the number of rows of
a category, whatever that number is.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from igcd.types import FloatArray, IntArray

MAX_DISTANCES = 2**23
"""Distances that are measured and sorted at most: of many rows, a sample looks at all."""
MIN_LOOKING = 64
"""Rows that look at all others at least."""
N_RANKS = 150
"""Numbers r that are looked at, in equal ratios."""
SMALLEST = 8
"""Rows nearer than this are pulled together by the same neighbors (`pulling`): smaller groups count as so large."""
WINDOW = 1.3
"""Growth at r is measured from r / 1.3 to 1.3 r; 1.2 to 1.4 do as well."""
_DISTANCES_AT_A_TIME = 2**22
_ROWS_AT_A_TIME = 2**16


@dataclass(frozen=True)
class Reach:
    """How far it is from a row to its r-th nearest one."""

    n_rows: int
    ranks: IntArray  # (t,) r, rising from 1
    distances: FloatArray  # (t,) root of the mean squared distance


def measure_reach(rows: Tensor, *, seed: int = 0) -> Reach:
    """The distance to the r-th nearest row, over all rows or a sample of them. (n, d), rows of length 1.

    >>> line = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> measure_reach(line).distances.round(3).tolist()  # 0, 0 and √2 to the nearest, √2 to the next
    [0.816, 1.414]
    """
    n = len(rows)
    if n < 2:
        return Reach(n, np.empty(0, dtype=np.int64), np.empty(0))
    ranks = np.unique(np.geomspace(1, n - 1, N_RANKS).astype(np.int64))
    n_looking = min(n, max(MIN_LOOKING, MAX_DISTANCES // n))
    looking = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:n_looking].sort().values
    sums = torch.zeros(len(ranks), dtype=torch.float64)
    for part in torch.split(looking, max(1, _DISTANCES_AT_A_TIME // n)):
        squared = 2 - 2 * _similarities(rows, part)
        squared[torch.arange(len(part)), part] = -1.0  # a row comes before its nearest
        squared = squared.sort(dim=1).values[:, torch.from_numpy(ranks)]
        sums += squared.clamp(min=0).sum(dim=0, dtype=torch.float64)
    return Reach(n, ranks, (sums / n_looking).sqrt().numpy())


def _similarities(rows: Tensor, part: Tensor) -> Tensor:
    """The cosines of some rows with all, half precision part by part. (n, d), (p,) -> (p, n)."""
    looking = rows[part].to(torch.promote_types(rows.dtype, torch.float32))
    return torch.cat([looking @ some.to(looking.dtype).T for some in torch.split(rows, _ROWS_AT_A_TIME)], dim=1)


def growth(reach: Reach, n_groups: IntArray) -> FloatArray:
    """How fast the distance grows where r is the mean size of so many groups, 1 where it grows fastest. (t,) -> (t,).

    It is the slope of the line of least squares over the logarithm of r.

    >>> ranks = np.arange(1, 1000)
    >>> tens = Reach(1000, ranks, np.where(ranks < 100, 0.1, 1.0))  # ten groups of a hundred rows
    >>> growth(tens, np.array([8, 10, 12])).round(2).tolist()
    [0.2, 1.0, 0.64]
    """
    log_ranks = np.log(reach.ranks)
    slopes = np.zeros(len(n_groups))
    for place, log_size in enumerate(np.log(np.maximum(reach.n_rows / n_groups, SMALLEST))):
        near = np.abs(log_ranks - log_size) <= np.log(WINDOW)
        if near.sum() > 1:
            slopes[place] = np.polyfit(log_ranks[near], reach.distances[near], 1)[0]
    return np.asarray(slopes / max(float(slopes.max(initial=0.0)), 1e-12))
