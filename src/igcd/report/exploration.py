"""What a page needs to be explored: images with their pictures, places and answers, and the categories to look at.

A run and a workspace fill the same table; `static/explore.js` draws it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from igcd.report.picture_sheets import COLUMNS, rows_of_sheet, sheet_uri
from igcd.report.templating import script_json

NONE = -1
"""In a column: no answer, no truth, no category."""


@dataclass(frozen=True)
class Group:
    """A category as the answers know it: a cluster of a run, or a category of a workspace."""

    name: str
    found: int | None  # the stage at which it was discovered
    labeled: int | None  # the stage from which on it is known


@dataclass(frozen=True)
class Answers:
    """What was said at a stage: the group of some images, and the truth that stands behind each group then."""

    stage: int
    images: tuple[int, ...]
    groups: tuple[int, ...]
    stands_for: tuple[int, ...]  # by group, position in `truths`


@dataclass(frozen=True)
class Entry:
    """A category with a page of its own. `facts` are shown as they are, in this order."""

    name: str
    kind: str  # known, new, missed, extra or unsure
    group: int
    truth: int
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ExploredImages:
    """Columns with an entry for each image."""

    id: tuple[str, ...]
    x: tuple[int, ...]  # in ten-thousandths of the side of the map
    y: tuple[int, ...]
    sheet: tuple[int, ...]
    tile: tuple[int, ...]
    stage: tuple[int, ...]
    split: tuple[int, ...]
    truth: tuple[int, ...]


@dataclass(frozen=True)
class Exploration:
    """All of it. `what` names an image: the page of a workspace speaks of photos."""

    what: str
    is_judged: bool  # whether the truth behind answers is known, as in a run
    n_all: int  # images there are; more than `images` holds where a sample is shown
    stages: tuple[str, ...]
    splits: tuple[str, ...]
    truths: tuple[str, ...]
    groups: tuple[Group, ...]
    images: ExploredImages
    answers: tuple[Answers, ...]
    entries: tuple[Entry, ...]
    sheets: tuple[bytes, ...]

    @property
    def as_json(self) -> str:
        """The table for the script."""
        record = asdict(self) | {"columns": COLUMNS, "sheet_rows": self.sheet_rows}
        del record["sheets"]
        return script_json(record)

    @cached_property
    def sheet_rows(self) -> list[int]:
        """Rows of pictures in each sheet."""
        return [rows_of_sheet(sheet) for sheet in self.sheets]

    @property
    def sheet_uris(self) -> list[str]:
        """The sheets as a style sheet can name them."""
        return [sheet_uri(sheet) for sheet in self.sheets]

    def tile_style(self, image: int) -> str:
        """Where the picture of an image is in its sheet, for a style attribute."""
        row, column = divmod(self.images.tile[image], COLUMNS)
        n_rows = self.sheet_rows[self.images.sheet[image]]
        return f"background-position:{100 * column / (COLUMNS - 1):.3f}% {100 * row / max(n_rows - 1, 1):.3f}%"


def map_units(values: Sequence[float]) -> tuple[int, ...]:
    """Places along one side of the map, spread over all of it, as whole numbers, which are shorter.

    >>> map_units([0.2, 0.25, 0.6]), map_units([0.3])
    ((0, 1250, 10000), (0,))
    """
    low, high = min(values, default=0.0), max(values, default=0.0)
    return tuple(round(10_000 * (value - low) / ((high - low) or 1.0)) for value in values)
