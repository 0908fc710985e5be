"""From image sets to batches of equal size: in parallel, in order, within bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from igcd.data.images import BrokenImageError
from igcd.data.parallel import map_in_order, n_cores
from igcd.data.quarantine import Quarantine
from igcd.errors import IgcdError
from igcd.types import Images, IntArray, Pixels


def decode(
    images: Images,
    size: int,
    *,
    quarantine: Quarantine,
    n_workers: int | None = None,
    batch_size: int = 64,
) -> Iterator[tuple[IntArray, Pixels]]:
    """All images in order, as batches of (positions (b,), pixels (b, size, size, 3)), b <= batch_size.

    Broken images are left out and put into the quarantine; a batch of nothing else is skipped. About three batches
    and one full-size image per worker (default: one worker per core) are in memory. Images that lie in memory at this
    size are sliced. Ask `quarantine.check(len(images))` at the end whether too many were broken.
    """
    for name, value in (("size", size), ("batch_size", batch_size), ("n_workers", n_workers)):
        if value is not None and value < 1:
            raise IgcdError(f"{name} must be at least 1, got {value}; ask for at least one")
    return _decode(images, size, quarantine, n_cores() if n_workers is None else n_workers, batch_size)


@dataclass
class _Piece:
    """A worker's share of a batch."""

    idx: IntArray
    pixels: Pixels
    faults: dict[int, str] = field(default_factory=dict)


def _decode(
    images: Images, size: int, quarantine: Quarantine, n_workers: int, batch_size: int
) -> Iterator[tuple[IntArray, Pixels]]:
    # The workers share each batch, so that a set of a few large photos keeps all of them busy.
    piece_size = -(-batch_size // n_workers)
    ranges = (
        np.arange(start, min(start + piece_size, batch_start + batch_size, len(images)))
        for batch_start in range(0, len(images), batch_size)
        for start in range(batch_start, min(batch_start + batch_size, len(images)), piece_size)
    )
    batch: list[_Piece] = []
    n_done = 0
    for piece in map_in_order(lambda idx: _read(images, idx, size), ranges, n_workers=n_workers, n_ahead=2 * n_workers):
        n_done += len(piece.idx) + len(piece.faults)
        for idx, reason in piece.faults.items():
            quarantine.add(images.ids[idx], reason)
        batch.append(piece)
        if n_done % batch_size == 0 or n_done == len(images):
            if any(len(piece.idx) for piece in batch):
                yield np.concatenate([piece.idx for piece in batch]), np.concatenate([piece.pixels for piece in batch])
            batch = []


def _read(images: Images, idx: IntArray, size: int) -> _Piece:
    stored = images.at_size(idx, size)
    if stored is not None:
        return _Piece(idx, stored)
    pixels = np.empty((len(idx), size, size, 3), dtype=np.uint8)
    read: list[int] = []
    faults: dict[int, str] = {}
    for position in idx.tolist():
        try:
            pixels[len(read)] = images.square(position, size)
            read.append(position)
        except BrokenImageError as error:
            faults[position] = str(error)
    return _Piece(np.array(read, dtype=np.int64), pixels[: len(read)], faults)
