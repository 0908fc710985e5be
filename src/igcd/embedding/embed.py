"""Shards of features from images: decoding, resizing and the network overlap."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import numpy as np

from igcd.data.decoding import decode
from igcd.data.images import FileImages, decode_image
from igcd.data.quarantine import Quarantine
from igcd.embedding.shards import EmbeddedFolder, Shard
from igcd.types import Pixels
from igcd.workspace.features import PhotoEncoder
from igcd.workspace.near_duplicates import picture_hash
from igcd.workspace.photo_files import hash_of_content

BATCH = 64
SHARD_SIZE = 4096
"""Images of a shard: what a killed run or worker does again at most."""


class ShardMaker(Protocol):
    """Makes shards, here or elsewhere, and hands them over in any order."""

    def __call__(
        self,
        images: FileImages,
        shards: dict[int, range],
        done: Callable[[int, Shard], None],
        progress: Callable[[int], None],
    ) -> None:
        """Calls `done` with the number of each shard and what it holds.

        Between two of these it may call `progress` with the number of images done beside those of finished shards.
        """
        ...


def embed(
    images: FileImages, folder: EmbeddedFolder, make: ShardMaker, *, progress: Callable[[int, int], None] | None = None
) -> int:
    """Makes the shards that are missing, and finishes the folder; returns how many images were embedded.

    `progress` is told how many of how many images are done: at the start, and whenever there are more.
    """
    missing = {number: folder.positions(number) for number in folder.missing()}
    n_before = len(images) - sum(map(len, missing.values()))
    n_done, n_told = n_before, -1

    def tell(n_more: int) -> None:
        nonlocal n_told
        if progress is not None and n_done + n_more > n_told:
            n_told = n_done + n_more
            progress(n_told, len(images))

    def keep(number: int, shard: Shard) -> None:
        nonlocal n_done
        folder.write(number, shard)
        n_done += len(missing[number])
        tell(0)

    tell(0)
    make(images, missing, keep, tell)
    folder.finish()
    return n_done - n_before


class Here:
    """Makes shards one after the other in this process."""

    def __init__(self, encoder: PhotoEncoder) -> None:
        self._encoder = encoder

    def __call__(
        self,
        images: FileImages,
        shards: dict[int, range],
        done: Callable[[int, Shard], None],
        progress: Callable[[int], None],
    ) -> None:
        """Calls `done` with each shard, in order, and `progress` after each batch."""
        for number, positions in shards.items():
            files = FileImages(images.root, [images.ids[position] for position in positions])
            done(number, make_shard(files, self._encoder, progress=progress))


class HashedFiles(FileImages):
    """Image files whose content hash is taken from what was decoded: a file may change or go while others are read."""

    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        super().__init__(root, paths)
        self.content_hashes: dict[int, str] = {}  # by position, of those that were decoded

    def square(self, idx: int, size: int) -> Pixels:  # noqa: D102
        with self._open(idx) as file:
            pixels = decode_image(file, square=size)
            file.seek(0)
            self.content_hashes[idx] = hash_of_content(file)
        return pixels


def make_shard(images: FileImages, encoder: PhotoEncoder, *, progress: Callable[[int], None] | None = None) -> Shard:
    """Features of some image files. The same files and encoder give the same bytes, wherever and whenever.

    `progress` is told after each batch how many files are done.
    """
    files = HashedFiles(images.root, images.ids)
    quarantine = Quarantine(limit=1.0)
    features, hashes, read = [], [], []
    for idx, pixels in decode(files, encoder.size, quarantine=quarantine, batch_size=BATCH):
        features.append(encoder(pixels).astype(np.float16))
        hashes += [picture_hash(image) for image in pixels]
        read += idx.tolist()
        if progress is not None:
            progress(read[-1] + 1)  # those before it that are not in `read` cannot be read
    return Shard(
        np.concatenate(features) if features else np.empty((0, 0), dtype=np.float16),
        np.stack(hashes) if hashes else np.empty((0, 32), dtype=np.uint8),
        [files.ids[position] for position in read],
        [files.content_hashes[position] for position in read],
        dict(quarantine.reasons),
    )
