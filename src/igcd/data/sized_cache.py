"""Images kept on disk at the size they are trained at: decoded once, read from one file ever after.

A cache is a folder with `pixels.npy`, (n, size, size, 3), and `checks.npy`, a CRC-32 of each image. It is named by a
digest of the images' ids and stamps and of the size, so a changed file or another selection gets a cache of its own. It
is written whole or not at all; every image is checked when it is read, and a damaged one is decoded from its source.
"""

import hashlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from igcd.array_files import DamagedArrayError, read_npy
from igcd.data.decoding import decode
from igcd.data.images import BrokenImageError, ImageSet, digest
from igcd.data.quarantine import Quarantine
from igcd.errors import IgcdError
from igcd.records import cannot_write, publish
from igcd.types import IntArray, Pixels

LAYOUT_VERSION = 1
NOT_STORED = -1  # in checks: the image was broken when the cache was made


def cached_at_size(
    images: ImageSet,
    size: int,
    folder: Path,
    *,
    n_workers: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> "SizedImages":
    """These images at one size, center-cropped, from a cache below `folder` that is made where there is none.

    Takes 3 · size² bytes per image on disk. `on_progress` is given the number of images decoded so far.
    """
    path = folder / f"{size}px-{_fingerprint(images, size)}"
    stored = _open(path, len(images), size)
    if stored is None:
        _write(images, size, path, n_workers, on_progress)
        stored = _open(path, len(images), size)
        if stored is None:
            raise IgcdError(f"the image cache {path} cannot be read back; check the disk, or cache elsewhere")
    return SizedImages(images, size, *stored)


class SizedImages(ImageSet):
    """Images at one size from a cache, each checked when it is read."""

    def __init__(
        self, images: ImageSet, size: int, stored: npt.NDArray[np.uint8], checks: npt.NDArray[np.int64]
    ) -> None:
        super().__init__(images.ids)
        self._images = images
        self._size = size
        self._stored = stored
        self._checks = checks

    def pixels(self, idx: int) -> Pixels:
        """The image at a position, (size, size, 3)."""
        pixels: Pixels = np.asarray(self._stored[idx])
        if _check(pixels) == self._checks[idx]:
            return pixels
        return self._images.square(idx, self._size)

    def at_size(self, idx: IntArray, size: int) -> Pixels | None:
        """Many at once, or None where one of them must be decoded again."""
        if size != self._size:
            return None
        batch = self._stored[idx]
        is_sound = all(_check(pixels) == self._checks[i] for pixels, i in zip(batch, idx, strict=True))
        return np.asarray(batch) if is_sound else None

    def key(self, idx: int) -> str:
        """Digest of the pixels: what is computed from the small image holds for no other size."""
        try:
            return digest(self.pixels(idx).tobytes())
        except BrokenImageError as error:
            return digest(str(error).encode())


def _check(pixels: Pixels) -> int:
    return zlib.crc32(pixels.data)


def _fingerprint(images: ImageSet, size: int) -> str:
    fingerprint = hashlib.blake2b(f"{LAYOUT_VERSION}\0{size}\n".encode(), digest_size=12)
    for idx, image_id in enumerate(images.ids):
        fingerprint.update(f"{image_id}\0{images.stamp(idx)}\n".encode(errors="surrogateescape"))
    return fingerprint.hexdigest()


def _open(path: Path, n_images: int, size: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]] | None:
    try:
        stored: npt.NDArray[Any] = read_npy(path / "pixels.npy", mapped=True)
        checks: npt.NDArray[Any] = read_npy(path / "checks.npy")
    except (OSError, DamagedArrayError):
        return None
    is_ours = stored.shape == (n_images, size, size, 3) and stored.dtype == np.uint8 and stored.flags.c_contiguous
    return (stored, checks) if is_ours and checks.shape == (n_images,) and checks.dtype == np.int64 else None


def _write(
    images: ImageSet, size: int, path: Path, n_workers: int | None, on_progress: Callable[[int], None] | None
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    n_bytes = 3 * size * size * len(images)
    n_free = shutil.disk_usage(path.parent).free
    if n_bytes > n_free:
        raise IgcdError(
            f"the image cache needs {n_bytes / 1e9:.1f} GB in {path.parent}, {n_free / 1e9:.1f} GB are free; "
            "free some space, cache elsewhere or at a smaller size"
        )
    unfinished = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        shape = (len(images), size, size, 3)
        stored = np.lib.format.open_memmap(unfinished / "pixels.npy", mode="w+", dtype=np.uint8, shape=shape)
        _reserve(unfinished / "pixels.npy")
        checks = np.full(len(images), NOT_STORED, dtype=np.int64)
        # Broken images are the business of whoever reads them next: their source gives the reason again.
        for idx, pixels in decode(images, size, quarantine=Quarantine(limit=1.0), n_workers=n_workers):
            stored[idx] = pixels
            checks[idx] = [_check(image) for image in pixels]
            if on_progress is not None:
                on_progress(int(idx[-1]) + 1)
        stored.flush()
        del stored
        np.save(unfinished / "checks.npy", checks)
        if path.exists() and _open(path, len(images), size) is None:
            shutil.rmtree(path)  # damaged
        if not path.exists():  # another process may have finished the same cache meanwhile
            publish(unfinished, path)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _reserve(path: Path) -> None:
    """Takes the space of a file now: a disk that fills up while it is mapped would end the process without a word."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
