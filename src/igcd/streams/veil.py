"""Images without their names: what a method is handed, so that nothing but the pixels speaks of the category.

A file name often is the category (`Vulpes vulpes/0012.jpg`), and so may be a position in a sorted data set. A
`VeiledImages` carries digests made with a secret of the run instead of names, in an order that was shuffled, and has
a handle instead of a reference to the images behind it. Its pixels are copies: a view would lead to the whole array.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from igcd.data.images import BrokenImageError, ImageSet
from igcd.hidden import Handle, look_behind
from igcd.types import IntArray, Pixels

SECRET_BYTES = 16
_Asked = Literal["pixels", "pixels_at_least", "square"]


def new_secret() -> bytes:
    """A secret for the ids of one run."""
    return secrets.token_bytes(SECRET_BYTES)


@dataclass(frozen=True)
class _Behind:
    images: ImageSet
    idx: IntArray  # (n,) their positions
    secret: bytes


class VeiledImages(ImageSet):
    """Some images of a set under opaque ids: with the same secret an image has the same id at every stage."""

    def __init__(self, images: ImageSet, idx: Sequence[int] | IntArray, secret: bytes) -> None:
        positions = np.array(idx, dtype=np.int64)
        super().__init__(_opaque(images.ids[i], secret) for i in positions.tolist())
        self._handle = Handle(_Behind(images, positions, secret))

    def pixels(self, idx: int) -> Pixels:  # noqa: D102
        return self._read("pixels", idx)

    def pixels_at_least(self, idx: int, size: int) -> Pixels:  # noqa: D102
        return self._read("pixels_at_least", idx, size)

    def square(self, idx: int, size: int) -> Pixels:  # noqa: D102
        return self._read("square", idx, size)

    def _read(self, what: _Asked, idx: int, *size: int) -> Pixels:
        pixels = _read(self._handle, what, range(len(self))[idx], *size)
        if isinstance(pixels, str):  # raised here, so that no frame of its traceback holds the images
            raise BrokenImageError(pixels)
        return pixels

    def at_size(self, idx: IntArray, size: int) -> Pixels | None:  # noqa: D102
        behind = look_behind(self._handle)
        pixels = behind.images.at_size(behind.idx[idx], size)
        return None if pixels is None else np.array(pixels)

    def key(self, idx: int) -> str:  # noqa: D102
        behind = look_behind(self._handle)
        return behind.images.key(int(behind.idx[idx]))

    def take(self, idx: Sequence[int] | IntArray) -> "VeiledImages":
        """The images at these positions, in this order. Nothing leads from them to these, not even equal ids."""
        behind = look_behind(self._handle)
        return VeiledImages(behind.images, behind.idx[np.asarray(idx, dtype=np.int64)], behind.secret)


def copied(texts: Iterable[str]) -> tuple[str, ...]:
    """Equal texts that are other objects: `gc` would lead from a text of the truth to what else refers to it."""
    return tuple(text.encode().decode() for text in texts)


def _opaque(name: str, secret: bytes) -> str:
    return hashlib.blake2b(name.encode(errors="surrogatepass"), key=secret, digest_size=8).hexdigest()


def _read(handle: Handle[_Behind], what: _Asked, idx: int, *size: int) -> Pixels | str:
    """The pixels, or why there are none."""
    behind = look_behind(handle)
    try:
        pixels = getattr(behind.images, what)(int(behind.idx[idx]), *size)
    except BrokenImageError as error:
        return str(error)
    return np.array(pixels)
