"""The neighbors of very many rows by the workers of a Ray cluster: each searches shards of the rows, all is merged.

Above ten million rows an index does not fit into one machine's memory. PyNNDescent and not faiss searches the shards:
on whitened features it finds more in the same time (benchmarks/neighbors.py).
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from igcd.array_files import read_npy
from igcd.embedding.workers import Cluster
from igcd.functional.approximate_neighbors import ShardIndex

SHARD_ROWS = 1_000_000
"""Rows of an index. It takes 2 kB per row with 256 numbers."""


class Searcher:
    """Looks for the neighbors of some rows of a file in a shard of it; the index of the last shard stays."""

    def __init__(self, path: str, n_threads: int) -> None:
        torch.set_num_threads(n_threads)
        self._rows = read_npy(Path(path), mapped=True)
        self._held: tuple[range, ShardIndex] | None = None

    def make(self, shard: range, queries: range, k: int, seed: int) -> tuple[Tensor, Tensor]:
        """Positions in the file of the k rows of the shard nearest to each query, and the cosines; none is itself."""
        if self._held is None or self._held[0] != shard:
            self._held = None  # two of them would not fit
            self._held = shard, ShardIndex(self._read(shard), seed=seed)
        idx, cosines = self._held[1].search(self._read(queries), k + 1)
        idx[idx >= 0] += shard.start
        is_self = idx == torch.arange(queries.start, queries.stop)[:, None]
        return nearest_first(idx.masked_fill(is_self, -1), cosines.masked_fill(is_self, -2.0), k)

    def _read(self, rows: range) -> Tensor:
        return torch.from_numpy(np.array(self._rows[rows.start : rows.stop]))


def nearest_first(idx: Tensor, cosines: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k with the largest cosine of each row, equals by position, so that the order they came in decides nothing.

    (n, m), (n, m) -> (n, k), (n, k).
    """
    by_idx = idx.sort(dim=1)
    cosines, order = cosines.gather(1, by_idx.indices).sort(dim=1, descending=True, stable=True)
    return by_idx.values.gather(1, order)[:, :k], cosines[:, :k]


class GraphOnRay:
    """Searches approximate graphs on a cluster whose machines see `folder` below the same path."""

    def __init__(self, cluster: Cluster, folder: Path, *, shard_rows: int = SHARD_ROWS) -> None:
        self._cluster, self._folder, self._shard_rows = cluster, folder, shard_rows

    def __call__(self, features: Tensor, k: int, *, seed: int) -> Tensor:
        """Positions of nearly the k nearest other rows of each row. (n, d) -> (n, k); −1 where none was found."""
        n = len(features)
        shards = [range(start, min(start + self._shard_rows, n)) for start in range(0, n, self._shard_rows)]
        if len(shards) > 1 and len(shards[-1]) <= k:  # too few for an index
            shards[-2:] = [range(shards[-2].start, n)]
        best = torch.full((n, k), -1), torch.full((n, k), -2.0)

        def job(number: int) -> tuple[range, range, int, int]:  # the shard stays while the queries change
            return shards[number // len(shards)], shards[number % len(shards)], k, seed

        def merge(number: int, found: tuple[Tensor, Tensor]) -> None:
            own = slice(shards[number % len(shards)].start, shards[number % len(shards)].stop)
            idx, cosines = (torch.cat([old[own], new], dim=1) for old, new in zip(best, found, strict=True))
            merged = nearest_first(idx, cosines, k)
            for table, part in zip(best, merged, strict=True):
                table[own] = part

        with tempfile.TemporaryDirectory(dir=self._folder, prefix="rows-") as folder:
            path = Path(folder, "rows.npy")
            np.save(path, features.numpy())
            self._cluster.run(
                Searcher, (str(path),), range(len(shards) ** 2), job, merge, describe=lambda number: f"job {number}"
            )
        return best[0]
