"""Keys of cached rows, and where each is: in which shard, in which row of it."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from igcd.types import IntArray

KEY_TYPE = np.dtype("S16")
Keys = npt.NDArray[np.bytes_]

_MAX_PARTS = 8


def row_keys(parts: Sequence[str], suffixes: Sequence[str]) -> Keys:
    """Digests of every part with every suffix, (len(parts), len(suffixes))."""
    tails = [b"\0" + suffix.encode() for suffix in suffixes]
    digests = b"".join(
        hashlib.blake2b(head + tail, digest_size=KEY_TYPE.itemsize).digest()
        for head in (part.encode() for part in parts)
        for tail in tails
    )
    return np.frombuffer(digests, dtype=KEY_TYPE).reshape(len(parts), len(suffixes))


class Index:
    """Sorted keys with the shard and row of each; the earliest shard wins where two hold a key.

    New shards are searched on their own and merged now and then, so that adding one does not sort all the others.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Keys, IntArray, IntArray]] = []

    def add(self, shard: int, keys: Keys) -> None:
        """Include the keys of one more shard."""
        self._parts.append(_sorted(keys, np.full(len(keys), shard), np.arange(len(keys))))
        if len(self._parts) > _MAX_PARTS:
            self._parts = [_sorted(*(np.concatenate(columns) for columns in zip(*self._parts, strict=True)))]

    def remove(self, shards: IntArray) -> None:
        """Forget all keys of these shards."""
        keep = [~np.isin(shard, shards) for _, shard, _ in self._parts]
        self._parts = [
            (keys[kept], shard[kept], row[kept])
            for (keys, shard, row), kept in zip(self._parts, keep, strict=True)
            if kept.any()
        ]

    def find(self, keys: Keys) -> tuple[IntArray, IntArray]:
        """(shard, row) of each key, -1 where it is not there. Shaped as the keys."""
        found_shard = np.full(keys.shape, -1, dtype=np.int64)
        found_row = found_shard.copy()
        for known, shard, row in reversed(self._parts):
            position = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            is_found = known[position] == keys
            found_shard[is_found] = shard[position[is_found]]
            found_row[is_found] = row[position[is_found]]
        return found_shard, found_row


def _sorted(keys: Keys, shard: IntArray, row: IntArray) -> tuple[Keys, IntArray, IntArray]:
    order = np.argsort(keys, kind="stable")
    return keys[order], shard[order], row[order]
