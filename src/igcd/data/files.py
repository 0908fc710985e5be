"""Finding a source's files below a folder, and saying which are missing."""

import os
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from igcd.errors import IgcdError

READABLE = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".pnm")
UNREADABLE = (".heic", ".heif", ".avif", ".jxl", ".jp2", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2")
"""Photos in formats that are not decoded: listed all the same, so that the quarantine shows what was left out."""

_CHUNK_BYTES = 1 << 20


def require(root: Path, paths: Sequence[str], *, source: str, remedy: str) -> None:
    """Raise unless all these files and folders (which end in `/`) are in `root`."""
    missing = [path for path in paths if not (root / path).exists()]
    if missing:
        raise IgcdError(f"{source} is incomplete in {root}, missing: {', '.join(missing)}; {remedy}")


def first_existing(candidates: Iterable[Path]) -> Path | None:
    """The first of these paths that exists."""
    return next((path for path in candidates if path.exists()), None)


def looks_like_image(name: str) -> bool:
    """Whether a file name claims to be an image.

    >>> looks_like_image("IMG_0001.JPG"), looks_like_image("notes.txt"), looks_like_image("._IMG_0001.JPG")
    (True, False, False)
    """
    return not name.startswith(".") and name.lower().endswith(READABLE + UNREADABLE)


def subfolders(folder: Path) -> list[str]:
    """Names of the visible folders in a folder, sorted."""
    return sorted(
        entry.name
        for entry in _entries(folder)
        if entry.is_dir() and not entry.name.startswith((".", "__MACOSX")) and not looks_like_image(entry.name)
    )


def image_paths(root: Path, folder: str) -> list[str]:
    """Paths, relative to `root`, of whatever looks like an image at any depth below `root/folder`, sorted.

    Folders and links named like an image are listed, too: they show up in the quarantine instead of vanishing.
    Linked folders further down are not entered, they could lead in a circle.
    """
    paths: list[str] = []
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        for entry in _entries(root / current):
            if looks_like_image(entry.name):
                paths.append(f"{current}/{entry.name}")
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith((".", "__MACOSX")):
                waiting.append(f"{current}/{entry.name}")
    return sorted(paths)


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text file that are not blank, without surrounding spaces."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise IgcdError(f"{path} must be UTF-8 text, got other bytes; take the original file") from None
    except OSError as error:
        raise IgcdError(f"{path} cannot be read ({error.strerror}); check that it is a readable text file") from None
    return [line.strip() for line in lines if line.strip()]


def read_columns(path: Path, n_columns: int) -> list[list[str]]:
    """Lines of a text file split at white space into this many columns; the last may hold spaces."""
    rows = [line.split(maxsplit=n_columns - 1) for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if len(row) != n_columns:
            raise IgcdError(
                f"{path} must have {n_columns} columns, got {len(row)} in row {number}; the file is damaged"
            )
    return rows


def read_to_the_end(archive: tarfile.TarFile) -> None:
    """Reads a packed archive to its last byte: only there its checksum is compared."""
    packed = archive.fileobj
    while packed is not None and packed.read(_CHUNK_BYTES):
        pass


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise IgcdError(
            f"the folder {folder} cannot be listed ({error.strerror}); check its name and permissions"
        ) from None
