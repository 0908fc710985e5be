"""Rows of an observation table, each with its photos, turned into `Observations`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from igcd.data.dataset import is_plain_name
from igcd.data.files import image_paths
from igcd.data.observations import Observations, degrees_of, is_path_below_a_folder, year_of
from igcd.data.taxonomy import RANKS, Taxon
from igcd.errors import IgcdError

NO_NAME = "not identified to species"
NO_PHOTO = "no photo in the folder"
STRAY_PHOTO = "photo of no observation in the table"

_Row = tuple[str, str, int, float, float, int]  # path, category, year, latitude, longitude, code of the sighting
_FIRST_PART = re.compile(r"[^\s_.(-]+")


@dataclass(frozen=True, slots=True)
class Sighting:
    """One row of an observation table."""

    line: int
    key: str  # the observation's id
    date: str
    latitude: str
    longitude: str
    name: str  # of the species; "" where it is not known
    ranks: tuple[str, ...]  # aligned with RANKS, "" where unknown
    common_name: str = ""
    file_name: str = ""  # of its photo, where the table has such a column


def observations_of(sightings: Iterable[Sighting], name: str, images: Path | None) -> Observations:
    """The table of these sightings, one row per photo in the folder `images`, or per sighting without a folder.

    Photos belong to a sighting by the table's column of file names, or else by its id: `ID.jpg`, `ID_2.jpg`,
    `ID-2.jpg`, or anything in a folder `ID/`. Categories are in alphabetical order, whatever the order of the rows.
    """
    photos = None if images is None else _photos_by_key(images)
    skipped: dict[str, int] = {NO_NAME: 0, NO_PHOTO: 0, STRAY_PHOTO: 0}
    used: set[str] = set()
    line_of: dict[str, int] = {}
    taxa: dict[str, Taxon] = {}
    rows: list[_Row] = []
    for code, sighting in enumerate(sightings):
        if not sighting.key:
            raise IgcdError(f"{name} line {sighting.line} must have the id of its observation, got none; give it one")
        if sighting.key in line_of:
            raise IgcdError(
                f"{name}: observation {sighting.key!r} is on line {line_of[sighting.key]} and again on line "
                f"{sighting.line}; remove one of them"
            )
        line_of[sighting.key] = sighting.line
        paths = _photos_of(sighting, photos)
        for path in paths:
            if not is_path_below_a_folder(path):
                raise IgcdError(
                    f"{name} line {sighting.line} must have a photo whose path is plain and stays below a folder, "
                    f"got {path!r}; correct it"
                )
        used.update(paths)
        if not is_plain_name(sighting.name):
            skipped[NO_NAME] += 1
            continue
        if not paths:
            skipped[NO_PHOTO] += 1
            continue
        known = taxa.get(sighting.name)
        if known is None or not all(known.ranks):
            taxa[sighting.name] = _completed(known, sighting)
        year = year_of(sighting.date.strip())
        place = degrees_of(sighting.latitude.strip()), degrees_of(sighting.longitude.strip())
        rows += [(path, sighting.name, year, *place, code) for path in paths]
    if photos is not None:
        skipped[STRAY_PHOTO] = len({path for paths in photos.values() for path in paths} - used)
    return _table(name, rows, taxa, {reason: count for reason, count in skipped.items() if count})


def _table(name: str, rows: list[_Row], taxa: Mapping[str, Taxon], skipped: Mapping[str, int]) -> Observations:
    rows.sort(key=lambda row: row[0])
    names = sorted(taxa)
    code_of = {category: code for code, category in enumerate(names)}
    for before, row in pairwise(rows):
        if before[0] == row[0]:
            raise IgcdError(f"{name}: the photo {row[0]!r} belongs to two observations; give each its own photo")
    return Observations(
        name=name,
        image_ids=tuple(row[0] for row in rows),
        categories=np.asarray([code_of[row[1]] for row in rows], dtype=np.int64),
        taxa=tuple(taxa[category] for category in names),
        years=np.asarray([row[2] for row in rows], dtype=np.int16),
        latitude=np.asarray([row[3] for row in rows], dtype=np.float64),
        longitude=np.asarray([row[4] for row in rows], dtype=np.float64),
        is_test=np.zeros(len(rows), dtype=bool),
        skipped=skipped,
        sighting_codes=np.asarray([row[5] for row in rows], dtype=np.int64),
    )


def _completed(known: Taxon | None, sighting: Sighting) -> Taxon:
    """The taxon with the ranks that this row knows and earlier ones did not."""
    if known is None:
        return Taxon(sighting.name, sighting.ranks, sighting.common_name)
    ranks = tuple(old or new for old, new in zip(known.ranks, sighting.ranks, strict=True))
    return Taxon(known.name, ranks, known.common_name or sighting.common_name)


def _photos_by_key(images: Path) -> dict[str, list[str]]:
    """Photos below the folder under each id they may belong to."""
    photos: dict[str, list[str]] = {}
    for listed in image_paths(images, "."):
        path = listed.removeprefix("./")
        folder, _, file_name = path.rpartition("/")
        stem = file_name.rpartition(".")[0]
        first = _FIRST_PART.match(stem)
        for key in {folder.rpartition("/")[2], stem, first[0] if first else stem, path} - {""}:
            photos.setdefault(key, []).append(path)
    return photos


def _photos_of(sighting: Sighting, photos: Mapping[str, list[str]] | None) -> list[str]:
    if photos is None:
        return [sighting.file_name or sighting.key]
    if sighting.file_name:
        path = sighting.file_name.replace("\\", "/").removeprefix("./")
        return [path] if path in photos.get(path, []) else []
    return photos.get(sighting.key, [])


def genus_of(species: str) -> str:
    """The genus in a species' name, "" where it has none.

    >>> genus_of("Danaus plexippus"), genus_of("Danaus"), genus_of("× Cupressocyparis leylandii")
    ('Danaus', '', 'Cupressocyparis')
    """
    words = [word for word in species.split() if word not in ("×", "x")]
    return words[0] if len(words) >= 2 else ""


def ranks_of(named: Mapping[str, str], species: str) -> tuple[str, ...]:
    """Names at each of `RANKS`, the genus from the species' name where the table does not tell."""
    ranks = {rank: (named.get(rank) or "").strip() for rank in RANKS}
    ranks["genus"] = ranks["genus"] or genus_of(species)
    return tuple(ranks.values())
