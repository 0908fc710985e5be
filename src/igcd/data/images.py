"""One face for images, wherever their pixels are: in memory, in one archive, in files, or drawn on demand."""

import hashlib
import io
import os
import re
import stat
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from igcd.errors import IgcdError, excerpt
from igcd.types import Images, IntArray, Pixels

MAX_PIXELS = 2 * (Image.MAX_IMAGE_PIXELS or 0)
"""Above this Pillow refuses an image before decoding it: a few kilobytes can claim gigabytes of pixels."""
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)  # it warns from half of that on
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")  # odd metadata of an image that decodes well

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
"""What is decoded. Pillow knows more, but some of it (EPS) starts other programs."""

REDUCTION_MARGIN = 2
"""A photo may be reduced while decoding only to twice the wanted size, so that the fine resampling stays Pillow's."""
EXIF_ORIENTATION = 0x0112
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""How to turn an image with each EXIF orientation; 1 stands upright."""


class BrokenImageError(Exception):
    """An image that cannot be decoded, with the reason in a few words: one printable line, whatever a decoder says."""

    def __init__(self, reason: str) -> None:
        super().__init__(excerpt(reason))


class ImageSet(ABC):
    """Images with stable ids, decoded one at a time when asked for. Implements `igcd.types.Images`."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = tuple(ids)
        if len(set(self._ids)) != len(self._ids):
            seen: set[str] = set()
            twice = next(image_id for image_id in self._ids if image_id in seen or seen.add(image_id))  # type: ignore[func-returns-value]
            raise IgcdError(f"image ids must be unique, got {twice!r} twice; give each image its own name")

    @property
    def ids(self) -> tuple[str, ...]:
        """A name for each image, unique in the set and the same in every run."""
        return self._ids

    def __len__(self) -> int:
        return len(self._ids)

    @abstractmethod
    def pixels(self, idx: int) -> Pixels:
        """The image at a position, (height, width, 3). Raises `BrokenImageError` where it cannot be decoded."""

    @abstractmethod
    def key(self, idx: int) -> str:
        """A digest of what the image at a position shows, not of what it is called: what caches go by."""

    def stamp(self, idx: int) -> str:
        """Changes when the image does, cheaper than reading it where possible; may reveal its name."""
        return self.key(idx)

    def pixels_at_least(self, idx: int, size: int) -> Pixels:  # noqa: ARG002
        """The image, where that is cheaper reduced to a half, a quarter or an eighth with both sides still >= size."""
        return self.pixels(idx)

    def square(self, idx: int, size: int) -> Pixels:
        """The center square of the image, resized as `fit` does, (size, size, 3)."""
        return fit(self.pixels_at_least(idx, REDUCTION_MARGIN * size), size)

    def at_size(self, idx: IntArray, size: int) -> Pixels | None:  # noqa: ARG002
        """The images at these positions, (n, size, size, 3), if they lie in memory at that size; else None."""
        return None

    def take(self, idx: Sequence[int] | IntArray) -> "ImageSet":
        """The images at these positions, in this order, still decoded on demand."""
        return Subset(self, idx)


class Subset(ImageSet):
    """Some images of another set, in an order of their own."""

    def __init__(self, images: ImageSet, idx: Sequence[int] | IntArray) -> None:
        self._images = images
        self._idx = np.array(idx, dtype=np.int64)
        ids = images.ids
        super().__init__(ids[i] for i in self._idx.tolist())

    def pixels(self, idx: int) -> Pixels:  # noqa: D102
        return self._images.pixels(int(self._idx[idx]))

    def pixels_at_least(self, idx: int, size: int) -> Pixels:  # noqa: D102
        return self._images.pixels_at_least(int(self._idx[idx]), size)

    def square(self, idx: int, size: int) -> Pixels:  # noqa: D102
        return self._images.square(int(self._idx[idx]), size)

    def at_size(self, idx: IntArray, size: int) -> Pixels | None:  # noqa: D102
        return self._images.at_size(self._idx[idx], size)

    def key(self, idx: int) -> str:  # noqa: D102
        return self._images.key(int(self._idx[idx]))

    def stamp(self, idx: int) -> str:  # noqa: D102
        return self._images.stamp(int(self._idx[idx]))


class Concatenation(ImageSet):
    """Several sets one after the other, for a source whose training and test images come separately."""

    def __init__(self, parts: Sequence[Images]) -> None:
        self._parts = tuple(parts)
        self._starts = np.cumsum([0, *(len(part) for part in self._parts)])
        super().__init__(image_id for part in self._parts for image_id in part.ids)

    def _locate(self, idx: int) -> tuple[Images, int]:
        part = int(np.searchsorted(self._starts, range(len(self))[idx], side="right")) - 1
        return self._parts[part], range(len(self))[idx] - int(self._starts[part])

    def pixels(self, idx: int) -> Pixels:  # noqa: D102
        images, position = self._locate(idx)
        return images.pixels(position)

    def pixels_at_least(self, idx: int, size: int) -> Pixels:  # noqa: D102
        images, position = self._locate(idx)
        return images.pixels_at_least(position, size)

    def square(self, idx: int, size: int) -> Pixels:  # noqa: D102
        images, position = self._locate(idx)
        return images.square(position, size)

    def at_size(self, idx: IntArray, size: int) -> Pixels | None:  # noqa: D102
        part_of = np.searchsorted(self._starts, idx, side="right") - 1
        batch = np.empty((len(idx), size, size, 3), dtype=np.uint8)
        for part in np.unique(part_of):
            rows = np.flatnonzero(part_of == part)
            pixels = self._parts[part].at_size(idx[rows] - self._starts[part], size)
            if pixels is None:
                return None
            batch[rows] = pixels
        return batch

    def key(self, idx: int) -> str:  # noqa: D102
        images, position = self._locate(idx)
        return images.key(position)

    def stamp(self, idx: int) -> str:  # noqa: D102
        images, position = self._locate(idx)
        return images.stamp(position) if isinstance(images, ImageSet) else images.key(position)


class ArrayImages(ImageSet):
    """Images held in one array, (n, height, width, 3) or (n, height, width) for gray, uint8."""

    def __init__(self, ids: Iterable[str], array: npt.NDArray[np.uint8]) -> None:
        super().__init__(ids)
        is_rgb = array.ndim == 4 and array.shape[-1] == 3
        if array.dtype != np.uint8 or not (is_rgb or array.ndim == 3) or len(array) != len(self):
            raise IgcdError(
                f"an image array must be uint8 of shape ({len(self)}, height, width, 3) or ({len(self)}, height, "
                f"width), got {array.dtype} {array.shape}; convert it first"
            )
        self._array = array

    def pixels(self, idx: int) -> Pixels:  # noqa: D102
        image = self._array[idx]
        return np.repeat(image[..., None], 3, axis=-1) if image.ndim == 2 else image

    def at_size(self, idx: IntArray, size: int) -> Pixels | None:  # noqa: D102
        if self._array.shape[1:3] != (size, size):
            return None
        batch = self._array[idx]
        return np.repeat(batch[..., None], 3, axis=-1) if batch.ndim == 3 else batch

    def key(self, idx: int) -> str:  # noqa: D102
        return digest(np.ascontiguousarray(self._array[idx]).tobytes())


class ArchiveImages(ImageSet):
    """Encoded images (JPEG, PNG, WebP …) back to back in one byte array, image i at `offsets[i]:offsets[i + 1]`."""

    def __init__(self, ids: Iterable[str], blob: npt.NDArray[np.uint8], offsets: npt.NDArray[np.integer]) -> None:
        super().__init__(ids)
        if len(offsets) != len(self) + 1:
            raise IgcdError(
                f"an archive of {len(self)} images needs {len(self) + 1} offsets, got {len(offsets)}; "
                "the file is damaged or not of this layout"
            )
        self._blob = blob
        self._offsets = np.asarray(offsets).astype(np.int64)
        if self._offsets[0] < 0 or self._offsets[-1] > len(blob) or np.any(np.diff(self._offsets) < 0):
            raise IgcdError(
                f"the offsets of an archive must rise from 0 to its {len(blob):,} bytes, got {self._offsets[0]} to "
                f"{self._offsets[-1]} or some that fall; the file is damaged or not of this layout"
            )

    def _encoded(self, idx: int) -> bytes:
        position = range(len(self))[idx]
        return self._blob[self._offsets[position] : self._offsets[position + 1]].tobytes()

    def pixels(self, idx: int) -> Pixels:  # noqa: D102
        return decode_image(self._encoded(idx))

    def pixels_at_least(self, idx: int, size: int) -> Pixels:  # noqa: D102
        return decode_image(self._encoded(idx), at_least=size)

    def square(self, idx: int, size: int) -> Pixels:  # noqa: D102
        return decode_image(self._encoded(idx), square=size)

    def key(self, idx: int) -> str:  # noqa: D102
        return digest(self._encoded(idx))


class FileImages(ImageSet):
    """Image files below one folder; ids are their paths relative to it, with `/` on every system.

    Nothing is opened before it is asked for, and nothing outside the folder ever: an id that climbs out is an error,
    a link that leads out is a broken image.
    """

    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        super().__init__(paths)
        self._root = os.path.realpath(root)
        self._keys: dict[int, tuple[str, str]] = {}  # with the stamp each was made at
        for image_id in self.ids:
            if _climbs_out(image_id):
                raise IgcdError(f"{image_id!r} leaves the image folder {root}; list only files inside it")

    @property
    def root(self) -> Path:
        """The folder that ids are paths below."""
        return Path(self._root)

    def _real_path(self, idx: int) -> Path:
        return Path(os.path.realpath(Path(self._root, self.ids[idx])))  # Path.resolve raises on a link to itself

    @contextmanager
    def _open(self, idx: int) -> Iterator[io.BufferedReader]:
        """The file at a position. Whatever is wrong with it is a `BrokenImageError`."""
        try:
            path = self._real_path(idx)
            if not path.is_relative_to(self._root):
                raise BrokenImageError("link leads out of the image folder")
            status = path.stat()
            if stat.S_ISDIR(status.st_mode):
                raise BrokenImageError("is a folder")
            if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait forever
                raise BrokenImageError("not a regular file")
            if not status.st_size:
                raise BrokenImageError("file is empty")
            with path.open("rb") as file:
                yield file
        except FileNotFoundError:
            is_link = Path(self._root, self.ids[idx]).is_symlink()
            raise BrokenImageError("link leads nowhere" if is_link else "file is missing") from None
        except (OSError, ValueError) as error:  # ValueError: a name no file can have
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise BrokenImageError(f"file cannot be read ({reason})") from None

    def pixels(self, idx: int) -> Pixels:  # noqa: D102
        with self._open(idx) as file:
            return decode_image(file)

    def pixels_at_least(self, idx: int, size: int) -> Pixels:  # noqa: D102
        with self._open(idx) as file:
            return decode_image(file, at_least=size)

    def square(self, idx: int, size: int) -> Pixels:  # noqa: D102
        with self._open(idx) as file:
            return decode_image(file, square=size)

    def key(self, idx: int) -> str:
        """Digest of the bytes of the file, read again when it has changed: the same wherever the file lies."""
        stamp = self.stamp(idx)
        if self._keys.get(idx, ("", ""))[0] != stamp:
            try:
                with self._open(idx) as file:
                    key = hashlib.file_digest(file, _hasher).hexdigest()
            except BrokenImageError as error:
                key = digest(str(error).encode())
            self._keys[idx] = stamp, key
        return self._keys[idx][1]

    def stamp(self, idx: int) -> str:
        """Path, size and time of change: what shows that a file was altered without reading it."""
        path = self._real_path(idx)
        try:
            status = path.stat()
        except (OSError, ValueError):
            return digest(os.fsencode(path))
        return digest(os.fsencode(path) + f"\0{status.st_size}\0{status.st_mtime_ns}".encode())


def _climbs_out(path: str) -> bool:
    """Whether a path leaves the folder it is relative to, by its spelling alone; links are looked at when read."""
    return path[:1] in ("", "/") or (".." in path and ".." in re.split(r"[/\\]", path))


def fit(pixels: Pixels, size: int) -> Pixels:
    """The center square, resized: short side to `size`, then center crop. (h, w, 3) -> (size, size, 3).

    The square is cut out first, which gives the same picture and cannot blow up a very long image.

    >>> fit(np.zeros((40, 60, 3), np.uint8), 8).shape
    (8, 8, 3)
    """
    if pixels.shape[:2] == (size, size):
        return pixels
    return np.asarray(_center_square(Image.fromarray(pixels), size))


def _center_square(image: Image.Image, size: int) -> Image.Image:
    side = min(image.size)
    left, top = (image.width - side) / 2, (image.height - side) / 2
    square = (left, top, left + side, top + side)
    return image.resize((size, size), Image.Resampling.BICUBIC, box=square)


def decode_image(encoded: bytes | BinaryIO, *, at_least: int | None = None, square: int | None = None) -> Pixels:
    """RGB pixels of an encoded image, (height, width, 3), turned upright as its EXIF orientation says.

    With `at_least`, a JPEG is decoded straight to a half, a quarter or an eighth of its size, with both sides still at
    least that long: many times faster for large photos. Other formats cannot do that and come whole. With `square`
    it is what `fit` makes of the image at that size, without a copy of it in between.
    """
    at_least = at_least if square is None else REDUCTION_MARGIN * square
    if isinstance(encoded, bytes):
        if not encoded:
            raise BrokenImageError("file is empty")
        encoded = io.BytesIO(encoded)
    try:
        with Image.open(encoded, formats=FORMATS) as image:
            if at_least is not None:
                image.draft("RGB", (at_least, at_least))
            image.load()
            upright = _rgb(_upright(image))
            if square is not None and upright.size != (square, square):
                upright = _center_square(upright, square)
            return np.asarray(upright)
    except UnidentifiedImageError:
        raise BrokenImageError("not an image") from None
    except Image.DecompressionBombError:
        raise BrokenImageError(f"claims more than {MAX_PIXELS:,} pixels") from None
    except BrokenImageError:
        raise
    except Exception as error:  # Pillow's plugins raise whatever a damaged file leads them to
        is_truncated = "truncated" in str(error).lower()
        raise BrokenImageError("truncated" if is_truncated else f"damaged ({error or type(error).__name__})") from None


def _upright(image: Image.Image) -> Image.Image:
    try:
        method = UPRIGHT.get(image.getexif().get(EXIF_ORIENTATION, 1))
    except Exception:  # unreadable metadata is no reason to lose good pixels
        return image
    return image if method is None else image.transpose(method)


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):  # Pillow would clip 16 bits at 255 and show a white image
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise BrokenImageError(f"has pixels of an unknown range (mode {image.mode})")
    elif "transparency" in image.info:
        image = image.convert("RGBA")
    return image if image.mode == "RGB" else image.convert("RGB")  # converting would copy it


def digest(content: bytes) -> str:
    """A short fingerprint of bytes, the same everywhere.

    >>> digest(b"igcd")
    '17f792e2fc31ddf3cfa1f62b'
    """
    hasher = _hasher()
    hasher.update(content)
    return hasher.hexdigest()


def _hasher() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=12)
