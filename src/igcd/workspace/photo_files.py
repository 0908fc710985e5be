"""The files behind the photos of a catalog: reached by photo id only, below the registered folders only, never written.

HEIC photos are read with `pillow-heif`, which comes with the extra `heic`; without it they are set aside.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from igcd.data.images import FORMATS, MAX_PIXELS, BrokenImageError, FileImages, ImageSet
from igcd.errors import IgcdError
from igcd.types import Pixels
from igcd.workspace.catalog import Catalog, id_list

EXIF_ORIENTATION = 0x0112
HEIC_SUFFIXES = (".heic", ".heif")
NEEDS_HEIC = "HEIC, which needs the extra `heic`: pip install 'igcd[heic]'"


@dataclass(frozen=True)
class PhotoFile:
    """A file that holds a photo: a registered folder and the path below it."""

    photo_id: int
    content_hash: str
    folder: str
    path: str
    n_bytes: int
    mtime_ns: int


def changed_at(status: os.stat_result) -> int:
    """When a file was changed, in nanoseconds; years that SQLite's integers do not reach count as the last they do.

    A camera or a copy can leave any year, and some file systems keep it.
    """
    return max(-(2**63), min(status.st_mtime_ns, 2**63 - 1))


def photo_files(db: sqlite3.Connection, photo_ids: Iterable[int]) -> dict[int, PhotoFile]:
    """A file of each photo: of several the first that is there, else the first."""
    rows = db.execute(
        "SELECT p.id AS photo_id, p.content_hash, f.path AS folder, pp.path, pp.n_bytes, pp.mtime_ns "
        "FROM json_each(?) wanted CROSS JOIN photos p ON p.id = wanted.value "
        "CROSS JOIN photo_paths pp ON pp.photo = p.id CROSS JOIN folders f ON f.id = pp.folder "
        "ORDER BY p.id, pp.folder, pp.path",
        (id_list(photo_ids),),
    )
    chosen: dict[int, PhotoFile] = {}
    for row in rows:
        file, former = PhotoFile(**dict(row)), chosen.get(row["photo_id"])
        if former is None or (
            not Path(former.folder, former.path).is_file() and Path(file.folder, file.path).is_file()
        ):
            chosen[file.photo_id] = file
    return chosen


def photo_path(catalog: Catalog, photo_id: int) -> Path:
    """The file of a photo, checked to lie below its registered folder also after following links."""
    with catalog.snapshot() as db:
        file = photo_files(db, [photo_id]).get(photo_id)
    if file is None:
        raise IgcdError(f"there is no photo {photo_id} in the workspace {catalog.folder}")
    path = Path(os.path.realpath(Path(file.folder, file.path)))
    if not path.is_relative_to(os.path.realpath(file.folder)) or not path.is_file():
        raise IgcdError(f"the file of photo {photo_id}, {file.path}, is no longer below {file.folder}; put it back")
    return path


def photo_pixels(catalog: Catalog, photo_id: int, *, at_least: int) -> Pixels:
    """The photo, upright, RGB, (height, width, 3), with both sides still >= at_least where it is that large.

    Raises `BrokenImageError` where it cannot be decoded.
    """
    with catalog.snapshot() as db:
        file = photo_files(db, [photo_id]).get(photo_id)
    if file is None:
        raise IgcdError(f"there is no photo {photo_id} in the workspace {catalog.folder}")
    return _pixels(file.folder, file.path, at_least)


class PhotoFiles(ImageSet):
    """Photos of a catalog as images: ids are photo ids, keys are content hashes, wherever the files lie."""

    def __init__(self, files: Iterable[PhotoFile]) -> None:
        self._files = tuple(files)
        super().__init__(str(file.photo_id) for file in self._files)

    def pixels(self, idx: int) -> Pixels:
        """The whole image."""
        return self.pixels_at_least(idx, 1 << 20)

    def pixels_at_least(self, idx: int, size: int) -> Pixels:
        """The image, reduced while decoding where that is cheaper. A file that has changed since is broken."""
        file = self._files[idx]
        return self._unchanged(file, _pixels(file.folder, file.path, size))

    def square(self, idx: int, size: int) -> Pixels:
        """The center square at a size. A file that has changed since is broken."""
        file = self._files[idx]
        if is_heic(file.path):
            return super().square(idx, size)
        return self._unchanged(file, FileImages(Path(file.folder), [file.path]).square(0, size))

    def _unchanged(self, file: PhotoFile, pixels: Pixels) -> Pixels:
        if _has_changed(file):
            raise BrokenImageError("the file has changed since it was added; add it again")
        return pixels

    def key(self, idx: int) -> str:
        """The content hash."""
        return self._files[idx].content_hash


def picture_size(folder: str, path: str) -> tuple[int, int]:
    """Width and height of a picture as it is shown, upright; only its header is read."""
    try:
        if is_heic(path):
            width, height = _open_heic(Path(folder, path)).size
            return width, height
        with Image.open(Path(folder, path), formats=FORMATS) as image:
            width, height = image.size
            try:
                turned = image.getexif().get(EXIF_ORIENTATION, 1) in (5, 6, 7, 8)
            except Exception:  # unreadable metadata is no reason to lose good pixels
                turned = False
            return (height, width) if turned else (width, height)
    except BrokenImageError:
        raise
    except Exception as error:  # Pillow's plugins raise whatever a damaged file leads them to
        raise BrokenImageError(f"not a readable image ({type(error).__name__})") from None


def content_hash(path: Path) -> str:
    """A fingerprint of a file's content: what makes two files one photo."""
    with path.open("rb") as file:
        return hash_of_content(file)


def hash_of_content(file: BufferedReader) -> str:
    """The fingerprint of what an open file holds from where it stands."""
    return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=20)).hexdigest()


def is_heic(path: str) -> bool:
    """Whether a file name says HEIC."""
    return path.lower().endswith(HEIC_SUFFIXES)


def _pixels(folder: str, path: str, at_least: int) -> Pixels:
    if is_heic(path):
        real = Path(os.path.realpath(Path(folder, path)))
        if not real.is_relative_to(os.path.realpath(folder)):
            raise BrokenImageError("link leads out of the image folder")
        return _heic_pixels(real)
    return FileImages(Path(folder), [path]).pixels_at_least(0, at_least)


def _open_heic(path: Path) -> Any:  # noqa: ANN401 - pillow_heif may be absent
    """A HEIC file, not decoded yet; libheif turns it upright by itself."""
    try:
        import pillow_heif  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError:
        raise BrokenImageError(NEEDS_HEIC) from None
    image = pillow_heif.open_heif(path, convert_hdr_to_8bit=True)
    width, height = image.size
    if width * height > MAX_PIXELS:  # Pillow refuses such images of other formats by itself
        raise BrokenImageError(f"claims more than {MAX_PIXELS:,} pixels")
    return image


def _heic_pixels(path: Path) -> Pixels:
    try:
        return np.asarray(_open_heic(path).to_pillow().convert("RGB"))
    except BrokenImageError:
        raise
    except OSError as error:
        raise BrokenImageError(f"file cannot be read ({error.strerror})") from None
    except Exception as error:  # libheif's complaints have many types
        raise BrokenImageError(f"damaged ({error or type(error).__name__})") from None


def _has_changed(file: PhotoFile) -> bool:
    """Whether the content is another than when the photo was added; a touched file of the same content is the same."""
    path = Path(file.folder, file.path)
    status = path.stat()
    if (status.st_size, changed_at(status)) == (file.n_bytes, file.mtime_ns):
        return False
    return status.st_size != file.n_bytes or content_hash(path) != file.content_hash
