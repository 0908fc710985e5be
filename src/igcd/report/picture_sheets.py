"""Small pictures of many images: sheets of equal tiles, and an index of which image is where and what it is like.

A sheet has one header for a thousand pictures, which is what makes a page of 5,000 of them small.
"""

import base64
import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from igcd.errors import IgcdError
from igcd.records import write_bytes
from igcd.types import Pixels

TILE = 64
"""Side of a picture in pixels: a multiple of WebP's blocks of 16, so that no picture bleeds into the next."""
COLUMNS = 32
PER_SHEET = COLUMNS * COLUMNS
QUALITY = 65
"""About 0.8 kB a picture of photos of birds, 5.5 MB for 5,000 of them as text in a page."""
MAX_SHEET_BYTES = 20_000_000
FOLDER = "pictures"
INDEX = "index.csv"
SPLITS = ("labeled", "unlabeled", "test")
FIELDS = ("image_id", "split", "category", "stage", "sheet", "tile", "x", "y")


@dataclass(frozen=True)
class PlacedPicture:
    """An image of the map: what it is, its picture, and its place in the unit square."""

    image_id: str
    split: str  # labeled, unlabeled or test
    category: str
    stage: int  # that it came with
    sheet: int
    tile: int
    x: float
    y: float


@dataclass(frozen=True)
class Pictures:
    """Images on the map, and the sheets with their pictures as WebP."""

    images: tuple[PlacedPicture, ...]
    sheets: tuple[bytes, ...]


def make_sheet(tiles: Pixels) -> bytes:
    """Tiles row by row in a WebP, at most `PER_SHEET`. (n, TILE, TILE, 3)."""
    n_rows = max(math.ceil(len(tiles) / COLUMNS), 1)
    grid = np.zeros((n_rows * COLUMNS, TILE, TILE, 3), dtype=np.uint8)
    grid[: len(tiles)] = tiles
    pixels = grid.reshape(n_rows, COLUMNS, TILE, TILE, 3).swapaxes(1, 2).reshape(n_rows * TILE, COLUMNS * TILE, 3)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "WEBP", quality=QUALITY, method=4)
    return file.getvalue()


def make_sheets(tiles: Pixels) -> list[bytes]:
    """As many sheets as the tiles need, each but the last full. (n, TILE, TILE, 3)."""
    return [make_sheet(tiles[start : start + PER_SHEET]) for start in range(0, len(tiles), PER_SHEET)]


def sheet_uri(sheet: bytes) -> str:
    """A sheet as a style sheet can name it."""
    return f"data:image/webp;base64,{base64.b64encode(sheet).decode()}"


def rows_of_sheet(sheet: bytes) -> int:
    """Rows of tiles in a sheet.

    >>> rows_of_sheet(make_sheet(np.zeros((COLUMNS + 1, TILE, TILE, 3), dtype=np.uint8)))
    2
    """
    with Image.open(io.BytesIO(sheet)) as image:
        return image.height // TILE


def sheet_path(folder: Path, stage: int, number: int) -> Path:
    """Where a run keeps a sheet of a stage."""
    return folder / FOLDER / f"stage-{stage}-{number}.webp"


def write_index(folder: Path, images: Iterable[PlacedPicture]) -> None:
    """Writes the index of a run's pictures, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    for image in images:
        writer.writerow([getattr(image, field) for field in FIELDS[:-2]] + [f"{image.x:.4f}", f"{image.y:.4f}"])
    write_bytes(folder / FOLDER / INDEX, text.getvalue().encode())


def read_pictures(folder: Path) -> Pictures | None:
    """The pictures of a run; None for a run without any, as runs of earlier versions are."""
    path = folder / FOLDER / INDEX
    if not path.is_file():
        return None
    try:
        with path.open(encoding="utf-8", newline="") as file:
            images = tuple(
                PlacedPicture(
                    row["image_id"],
                    row["split"],
                    row["category"],
                    *(int(row[name]) for name in ("stage", "sheet", "tile")),
                    *(_in_unit_interval(row[name]) for name in ("x", "y")),
                )
                for row in csv.DictReader(file)
            )
        used = sorted({(image.stage, image.sheet) for image in images})
        sheets = tuple(_read_sheet(sheet_path(folder, *key)) for key in used)
    except (OSError, csv.Error, KeyError, TypeError, ValueError, Image.DecompressionBombError) as error:
        raise IgcdError(
            f"{path} and the sheets beside it must be as `igcd run` writes them, reading failed "
            f"({type(error).__name__}); repeat the run, or remove the folder `{FOLDER}` for a report without the map"
        ) from None
    if any(not 0 <= image.tile < PER_SHEET or image.split not in SPLITS for image in images):
        raise IgcdError(
            f"{path} must have tiles from 0 to {PER_SHEET - 1} and the splits {', '.join(SPLITS)}, some rows have "
            f"others; repeat the run, or remove the folder `{FOLDER}` for a report without the map"
        )
    number_of = {key: number for number, key in enumerate(used)}
    return Pictures(tuple(_at_sheet(image, number_of[image.stage, image.sheet]) for image in images), sheets)


def _at_sheet(image: PlacedPicture, sheet: int) -> PlacedPicture:
    return PlacedPicture(image.image_id, image.split, image.category, image.stage, sheet, image.tile, image.x, image.y)


def _in_unit_interval(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(f"{text} is not between 0 and 1")
    return value


def _read_sheet(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_SHEET_BYTES + 1)
    if len(content) > MAX_SHEET_BYTES or content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        raise ValueError(f"{path} is not a sheet of pictures")
    with Image.open(io.BytesIO(content), formats=["WEBP"]) as image:
        if image.width != COLUMNS * TILE or not 0 < image.height <= COLUMNS * TILE or image.height % TILE:
            raise ValueError(f"{path} has {image.width} x {image.height} pixels")
    return content


def share_of_each(sizes: Sequence[int], n: int) -> list[int]:
    """How many of `n` each of several sets gets, in proportion to its size, and never more than it has.

    >>> share_of_each([100, 300, 0], 40), share_of_each([2, 3], 40)
    ([10, 30, 0], [2, 3])
    """
    total = sum(sizes)
    return [size if total <= n else size * n // total for size in sizes]
