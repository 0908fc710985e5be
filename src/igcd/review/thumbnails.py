"""Small pictures of photos, made when first asked for and kept in the workspace.

Photos are always decoded and encoded again: what the browser gets is a JPEG of ours, never a file of somebody else with
whatever it may contain, nor the place it was taken at.
"""

import asyncio
import contextlib
import io
import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from igcd.workspace.catalog import Catalog
from igcd.workspace.photo_files import photo_pixels

SMALL, LARGE = 320, 1600
"""Longest sides in pixels: in the grid, and on the whole screen. Only small ones are kept."""
QUALITY = 82
MAX_CACHE_BYTES = 1_000_000_000
N_DECODERS = 4
"""Photos decoded at once: bounds the memory, and leaves the threads that answer decisions alone."""
PER_FOLDER = 1_000


class Thumbnails:
    """The small pictures of a workspace. Above `max_bytes` those used longest ago go."""

    def __init__(self, catalog: Catalog, *, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self.folder = catalog.folder / "thumbnails"
        self.max_bytes = max_bytes
        self._catalog = catalog
        self._pool = ThreadPoolExecutor(N_DECODERS, thread_name_prefix="thumbnail")
        self._lock = threading.Lock()
        self._n_bytes: int | None = None  # of all kept; counted when first needed

    async def small(self, photo_id: int) -> bytes:
        """The JPEG of a photo for the grid."""
        return await self._in_pool(lambda: self.make_small(photo_id))

    async def large(self, photo_id: int) -> bytes:
        """The JPEG of a photo for the whole screen; not kept, one of them is as large as fifty small ones."""
        return await self._in_pool(lambda: encode(self._catalog, photo_id, LARGE))

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def make_small(self, photo_id: int) -> bytes:
        """Reads the kept picture, or makes and keeps it."""
        path = self.path(photo_id)
        with contextlib.suppress(OSError):
            content = path.read_bytes()
            with contextlib.suppress(OSError):
                os.utime(path)  # used now: goes last
            return content
        content = encode(self._catalog, photo_id, SMALL)
        with contextlib.suppress(OSError):  # a full or read-only disk costs time, not the picture
            write_atomically(path, content)
            self._count(len(content))
        return content

    def path(self, photo_id: int) -> Path:
        """Where the picture of a photo is kept. A photo id stands for one content forever."""
        return self.folder / str(photo_id // PER_FOLDER) / f"{photo_id}.jpg"

    async def _in_pool(self, make: Callable[[], bytes]) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._pool, make)

    def _count(self, n_added: int) -> None:
        with self._lock:
            if self._n_bytes is None:
                self._n_bytes = sum(path.stat().st_size for path in self.folder.glob("*/*.jpg"))
            else:
                self._n_bytes += n_added
            if self._n_bytes > self.max_bytes:
                self._n_bytes = remove_oldest(self.folder, keep_bytes=self.max_bytes * 3 // 4)


def encode(catalog: Catalog, photo_id: int, side: int) -> bytes:
    """A photo as JPEG, upright, no side longer than `side`. Raises `BrokenImageError` where it cannot be decoded."""
    image = Image.fromarray(photo_pixels(catalog, photo_id, at_least=side))
    image.thumbnail((side, side), Image.Resampling.BICUBIC)
    encoded = io.BytesIO()
    image.save(encoded, "JPEG", quality=QUALITY, optimize=True)
    return encoded.getvalue()


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file that is there as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def remove_oldest(folder: Path, *, keep_bytes: int) -> int:
    """Removes the pictures used longest ago until the others have at most `keep_bytes`; returns what those have."""
    kept = [(path, path.stat()) for path in folder.glob("*/*.jpg")]
    kept.sort(key=lambda entry: entry[1].st_mtime_ns)
    n_bytes = sum(status.st_size for _, status in kept)
    for path, status in kept:
        if n_bytes <= keep_bytes:
            break
        path.unlink(missing_ok=True)
        n_bytes -= status.st_size
    return n_bytes
