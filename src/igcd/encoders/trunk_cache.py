"""Trunk outputs of several augmented views and the plain one per image, computed once and read in every epoch.

An entry is keyed by the trunk's weights, the content of the image, the transform, the seed of the views and the number
of the view, so that stages, methods and orders of categories share entries.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from igcd.data.decoding import decode
from igcd.data.quarantine import Quarantine
from igcd.encoders.backbone import Backbone
from igcd.encoders.middle import smaller
from igcd.encoders.row_index import Keys, row_keys
from igcd.encoders.row_store import DiskStore, Library, MemoryStore, Rows, RowStore
from igcd.encoders.trunk_views import CachedViews, LiveViews, augment
from igcd.encoders.views import (
    Transform,
    Words,
    image_words,
    plain_views,
    to_tensor,
)
from igcd.errors import IgcdError
from igcd.types import BoolArray, Images, IntArray, Pixels


class Progress(Protocol):
    """Reports how many images are done, how many there are in all and, while waiting, how many others compute."""

    def __call__(self, n_done: int, n_images: int, n_elsewhere: int = 0, /) -> None:
        """Called whenever one of them has changed, and now and then while waiting."""
        ...


FORMAT = 1
"""Raised whenever the same settings would give other numbers."""

CLAIMED_SHARE = 4
"""One in so many of the images that are left are claimed at once, a batch at least and a shard at most."""

_MAX_ROUNDS = 5
_POLL_SECONDS = 0.2


class TrunkCache:
    """Trunk outputs below a folder, at most `max_bytes` of them; without a folder, in memory."""

    def __init__(
        self, folder: Path | None, *, max_bytes: int = 20_000_000_000, shard_bytes: int = 1 << 26, batch_size: int = 64
    ) -> None:
        self._library = None if folder is None else Library(folder, max_bytes)
        self._in_memory: dict[str, MemoryStore] = {}
        self._max_bytes = max_bytes
        self._shard_bytes = shard_bytes
        self._batch_size = batch_size

    def views(
        self,
        backbone: Backbone,
        images: Images,
        transform: Transform,
        *,
        n_views: int,
        seed: int = 0,
        quarantine: Quarantine | None = None,
        progress: Progress | None = None,
    ) -> CachedViews:
        """The looks and `n_views` augmented views of every image; what is not stored yet is computed.

        Broken images have no views (see `usable_idx`) and are put into the quarantine, for the caller to check;
        without one, too many of them are an error here.
        """
        if n_views < 0:
            raise IgcdError(f"n_views must not be negative, got {n_views}; 0 caches the plain view alone")
        image_keys = [images.key(idx) for idx in range(len(images))]
        drawn = hashlib.blake2b(json.dumps(asdict(transform.recipe)).encode(), digest_size=8).hexdigest()
        keys = row_keys(image_keys, [*transform.looks, *(f"{drawn} {seed} {view}" for view in range(n_views))])
        work = _Work(
            backbone,
            images,
            transform,
            seed,
            image_words(image_keys),
            Quarantine() if quarantine is None else quarantine,
        )
        store = self._store(backbone, transform)
        for _ in range(_MAX_ROUNDS):
            location = store.find(keys)
            todo = np.flatnonzero(location.is_missing.any(axis=1) & ~work.is_broken)
            if not len(todo):
                if quarantine is None:
                    work.quarantine.check(len(images))
                return CachedViews(location, n_views, backbone.device)
            self._fill(store, work, keys, todo, progress)
        raise IgcdError(
            "the trunk cache lost rows as fast as they were computed; other runs fill the same folder: raise max_bytes "
            "or give this run a folder of its own"
        )

    def live(
        self,
        backbone: Backbone,
        images: Images,
        transform: Transform,
        *,
        seed: int = 0,
        quarantine: Quarantine | None = None,
        progress: Progress | None = None,
    ) -> LiveViews:
        """Fresh views each time, with the plain view from the cache."""
        cached = self.views(backbone, images, transform, n_views=0, seed=seed, quarantine=quarantine, progress=progress)
        words = image_words([images.key(idx) for idx in range(len(images))])
        return LiveViews(backbone, images, transform, seed, cached, words)

    def n_bytes(self) -> int:
        """The size of all that is cached on disk."""
        return 0 if self._library is None else self._library.n_bytes()

    def _store(self, backbone: Backbone, transform: Transform) -> RowStore:
        """Where entries of this trunk and input are; recipe and seed of the views are in the keys."""
        described = {
            "format": FORMAT,
            "trunk": backbone.fingerprint,
            "normalization": asdict(backbone.normalization),
            "size": transform.size,
            "canvas": transform.canvas,
        }
        digest = hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=8).hexdigest()
        name = f"{backbone.name}-{transform.size}px-{digest}"
        if self._library is None:
            return self._in_memory.setdefault(name, MemoryStore())
        return DiskStore(self._library, name)

    def _fill(self, store: RowStore, work: "_Work", keys: Keys, todo: IntArray, progress: Progress | None) -> None:
        """Compute and store the missing rows of these images, one shard at a time.

        The images of a shard are claimed, so that two runs that need the same images share the work, and what others
        are computing is waited for at the end.
        """
        n_row_bytes = 2 * work.n_values()
        n_needed = n_row_bytes * keys.size
        if self._library is not None and n_needed > self._max_bytes:
            raise IgcdError(
                f"{keys.shape[1]} views of {len(keys):,} images take {n_needed / 1e9:.2f} GB, the cache may hold "
                f"{self._max_bytes / 1e9:.2f}; raise its max_bytes, use fewer views, or train with fresh views"
            )
        n_per_shard = max(1, self._shard_bytes // (n_row_bytes * keys.shape[1]))
        tell = progress or _say_nothing
        n_done = 0

        def report(n: int) -> None:
            nonlocal n_done
            n_done += n
            tell(n_done, len(todo))

        pending = todo
        while len(pending):
            # The less is left, the less is claimed at a time: then processes that share the work end together.
            n_claimed = min(n_per_shard, max(self._batch_size, len(pending) // CLAIMED_SHARE))
            with store.claim(keys[pending], n_claimed) as claim:
                chunk, is_missing = pending[claim.idx], claim.is_missing[claim.idx]
                pending = pending[claim.is_missing.any(axis=1)]
                if len(todo) - len(pending) > n_done:  # another run computed some meanwhile
                    report(len(todo) - len(pending) - n_done)
                row_at, rows = work.rows(chunk, is_missing, self._batch_size, report)
                if len(rows):
                    store.add(keys[row_at[:, 0], row_at[:, 1]], rows)
            pending = np.setdiff1d(pending, chunk)
            if len(pending) and not len(chunk):
                tell(n_done, len(todo), len(pending))
                time.sleep(_POLL_SECONDS)


class _Work:
    """What one request needs to compute rows."""

    def __init__(
        self,
        backbone: Backbone,
        images: Images,
        transform: Transform,
        seed: int,
        words: Words,
        quarantine: Quarantine,
    ) -> None:
        self.quarantine = quarantine
        self.is_broken: BoolArray = np.zeros(len(images), dtype=bool)
        self._backbone = backbone
        self._images = images
        self._transform = transform
        self._seed = seed
        self._words = words

    def n_values(self) -> int:
        """How many numbers the trunk gives for one image."""
        side = self._transform.size
        outputs: Tensor = self._backbone.trunk(torch.zeros(1, 3, side, side, device=self._backbone.device))
        return outputs.numel()

    def rows(
        self, idx: IntArray, is_missing: BoolArray, batch_size: int, report: Callable[[int], None]
    ) -> tuple[IntArray, Rows]:
        """Rows of the images at `idx` where missing, (m, looks + n_views) -> ((r, 2) image and column, (r, ...))."""
        if not len(idx):
            return np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.float16)
        is_read = np.zeros(len(idx), dtype=bool)
        row_at: list[IntArray] = []
        rows: list[Rows] = []
        batches = decode(
            self._images.take(idx), self._transform.canvas, quarantine=self.quarantine, batch_size=batch_size
        )
        for position, pixels in batches:
            is_read[position] = True
            canvas = to_tensor(pixels, self._backbone.device)
            for column in range(is_missing.shape[1]):
                at = np.flatnonzero(is_missing[position, column])
                if len(at):
                    here = idx[position[at]]
                    row_at.append(np.stack([here, np.full_like(here, column)], axis=1))
                    inputs = self._inputs(pixels[at], canvas[torch.from_numpy(at)], here, column)
                    rows.append(self._trunk_outputs(inputs))
            report(len(position))
        self.is_broken[idx[~is_read]] = True
        report(int((~is_read).sum()))
        if not rows:
            return np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.float16)
        return np.concatenate(row_at), np.concatenate(rows)

    def _inputs(self, pixels: Pixels, canvas: Tensor, idx: IntArray, column: int) -> Tensor:
        """What the network sees of the images at `idx`: a look, or behind the looks an augmented view. (r, 3, s, s)."""
        transform, backbone = self._transform, self._backbone
        view = column - len(transform.looks)
        if view >= 0:
            return augment(canvas, self._words[idx], np.full(len(idx), view), transform, self._seed, backbone)
        if transform.looks[column] == "plain" and transform.sees_middle:
            canvas = to_tensor(smaller(pixels, transform.size), backbone.device)
        return plain_views(canvas, transform.size, backbone.normalization)

    def _trunk_outputs(self, inputs: Tensor) -> Rows:
        halves = self._backbone.trunk(inputs).half()
        if not bool(torch.isfinite(halves).all()):
            raise IgcdError(
                f"the trunk of {self._backbone.name} gives values that half precision cannot hold (above 65504 or not "
                "finite); check the weights, or train with fresh views"
            )
        return halves.contiguous().cpu().numpy()  # type: ignore[no-any-return]


def _say_nothing(_n_done: int, _n_images: int, _n_elsewhere: int = 0, /) -> None:
    """No report of progress."""
