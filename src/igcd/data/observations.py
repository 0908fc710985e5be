"""Who was seen where and when: the table that every source of observations is read into, and stages are cut from."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from igcd.data.dataset import is_plain_name
from igcd.data.taxonomy import Taxon
from igcd.errors import IgcdError
from igcd.types import BoolArray, FloatArray, IntArray

NO_YEAR = 0
"""In `Observations.years`: the observation has no date."""
IMPOSSIBLE_YEAR = -1
"""In `Observations.years`: its date is impossible, like the 31st of June."""

_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:-(?:0[1-9]|1[0-2]))?", re.ASCII)
_DRIVE = re.compile(r"[A-Za-z]:/")
_SPACED_ZONE = re.compile(r" (?=[+-]\d)| ?(?:UTC|GMT)$")


@dataclass(frozen=True)
class Observations:
    """One row per image: its id (the path of its file, where there is one), category, year and place."""

    name: str
    image_ids: tuple[str, ...]
    categories: IntArray  # (n,), positions in taxa
    taxa: tuple[Taxon, ...]
    years: npt.NDArray[np.int16]  # (n,), NO_YEAR and IMPOSSIBLE_YEAR where there is none
    latitude: FloatArray  # (n,), as given, NaN where there is none
    longitude: FloatArray  # (n,)
    is_test: BoolArray  # (n,)
    skipped: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))  # rows left out, by reason
    sighting_codes: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """(n,), the same for images of one sighting, which are trained on or tested on together; left out: all differ."""

    def __post_init__(self) -> None:
        if not len(self.sighting_codes):
            object.__setattr__(self, "sighting_codes", np.arange(len(self.image_ids), dtype=np.int64))
        for column in ("categories", "years", "latitude", "longitude", "is_test", "sighting_codes"):
            if len(getattr(self, column)) != len(self.image_ids):
                raise IgcdError(
                    f"{column} of {self.name} must have one value for each of the {len(self.image_ids):,} images, "
                    f"got {len(getattr(self, column)):,}; the source was read wrongly"
                )

    def __len__(self) -> int:
        return len(self.image_ids)

    @property
    def category_names(self) -> tuple[str, ...]:
        """The name of each category."""
        return tuple(taxon.name for taxon in self.taxa)


def joined(name: str, parts: Sequence[Observations]) -> Observations:
    """Several tables one after the other. They must list the same taxa, as training and test file of one source do."""
    first, *others = parts
    for other in others:
        if other.taxa != first.taxa:
            raise IgcdError(
                f"{first.name} and {other.name} must list the same categories in the same order, they do not; "
                "take both files from the same release"
            )
    skipped: dict[str, int] = {}
    for part in parts:
        for reason, count in part.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    image_ids = tuple(image_id for part in parts for image_id in part.image_ids)
    if len(set(image_ids)) != len(image_ids):
        twice = Counter(image_ids).most_common(1)[0][0]
        raise IgcdError(f"image {twice!r} of {name} is listed twice; give each image once, for training or for testing")
    codes = [np.unique(part.sighting_codes, return_inverse=True)[1] for part in parts]
    starts = np.cumsum([0, *(1 + part.max(initial=-1) for part in codes)])
    return Observations(
        name=name,
        image_ids=image_ids,
        categories=np.concatenate([part.categories for part in parts]),
        taxa=first.taxa,
        years=np.concatenate([part.years for part in parts]),
        latitude=np.concatenate([part.latitude for part in parts]),
        longitude=np.concatenate([part.longitude for part in parts]),
        is_test=np.concatenate([part.is_test for part in parts]),
        skipped=skipped,
        sighting_codes=np.concatenate([start + part for start, part in zip(starts[:-1], codes, strict=True)]),
    )


def is_path_below_a_folder(path: str) -> bool:
    r"""Whether a path of a file stays below the folder it is joined to and fits on a line of a split file.

    >>> [is_path_below_a_folder(path) for path in ("train/a..b.jpg", "a/../../b.jpg", "/etc/passwd", "C:\\b.jpg", "")]
    [True, False, False, False, False]
    """
    # `is_plain_name` looks at each character, too slow for millions of names of which all are printable
    if not path.strip() or not (path.isprintable() or is_plain_name(path)):
        return False
    path = path.replace("\\", "/")
    return not (path.startswith("/") or _DRIVE.match(path) or (".." in path and ".." in path.split("/")))


def year_of(date: object) -> int:
    """The year in which something was seen, as written there: a time zone does not move it to another year.

    Reads ISO 8601 with or without time and zone, a year or a month alone, and an interval inside one year.

    >>> [year_of(date) for date in ("2015-06-10 18:22:04+00:00", "2015-06-10", "2016-12-31T23:30:00-08:00", "2014-05")]
    [2015, 2015, 2016, 2014]
    >>> year_of(None) == NO_YEAR, year_of("2015-02-30") == IMPOSSIBLE_YEAR, year_of("last summer") == IMPOSSIBLE_YEAR
    (True, True, True)
    """
    if date is None or date == "":
        return NO_YEAR
    text = str(date)
    try:
        return datetime.fromisoformat(text).year
    except ValueError:
        pass
    if "/" in text:
        years = {year_of(end.strip()) for end in text.split("/")}
        return years.pop() if len(years) == 1 else IMPOSSIBLE_YEAR
    text = (
        _SPACED_ZONE.sub("", text.strip()) if text.endswith(("UTC", "GMT")) else _SPACED_ZONE.sub("", text.strip(), 1)
    )
    alone = _YEAR_OR_MONTH.fullmatch(text)
    if alone:
        return int(alone[1])
    try:
        return datetime.fromisoformat(text).year
    except ValueError:
        return NO_YEAR if not text else IMPOSSIBLE_YEAR


def degrees_of(value: object) -> float:
    """A coordinate as a number: NaN where it is missing, infinite where it is not a number.

    >>> degrees_of("49.25"), degrees_of(None), degrees_of("north")
    (49.25, nan, inf)
    """
    if value is None or value == "":
        return math.nan
    if isinstance(value, bool):
        return math.inf
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.inf


def unique_names(names: Sequence[str], keys: Iterable[object]) -> list[str]:
    """The names, with their key in brackets where two categories share one.

    >>> unique_names(["Oenanthe oenanthe", "Prunella", "Prunella"], [1, 2, 3])
    ['Oenanthe oenanthe', 'Prunella [2]', 'Prunella [3]']
    """
    count: dict[str, int] = {}
    for name in names:
        count[name] = count.get(name, 0) + 1
    return [name if count[name] == 1 else f"{name} [{key}]" for name, key in zip(names, keys, strict=True)]
