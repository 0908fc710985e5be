"""What one row of a comparison recognizes and another does not, image by image, for a seed, whose images all share."""

import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from igcd.report.confusion import categories_of_group, cross
from igcd.report.picture_sheets import (
    COLUMNS,
    PER_SHEET,
    TILE,
    Pictures,
    PlacedPicture,
    make_sheets,
    read_pictures,
    rows_of_sheet,
    sheet_uri,
)
from igcd.report.run_records import Run, read_run
from igcd.types import UNLABELED, Pixels

N_PICTURES = 2_000
"""About 2 MB of the page."""
NO_CATEGORY = -1
"""What a cluster stands for that is matched with no category."""


@dataclass(frozen=True)
class RowAnswers:
    """A row: what it takes pictures for at the last stage, and the new categories it found at any stage.

    Categories are positions in `ComparedPictures.categories`, or `NO_CATEGORY`.
    """

    name: str
    right: tuple[int, ...]  # pictures
    said: tuple[int, ...]  # by picture
    found: tuple[int, ...]


@dataclass(frozen=True)
class ComparedPictures:
    """Images that every row was asked about, with their pictures."""

    seed: int
    stage: int
    categories: tuple[str, ...]
    is_new: tuple[bool, ...]  # by category: not labeled when it came
    ids: tuple[str, ...]
    category: tuple[int, ...]  # by picture
    rows: tuple[RowAnswers, ...]
    sheets: tuple[bytes, ...]

    @cached_property
    def sheet_rows(self) -> list[int]:
        """Rows of pictures in each sheet."""
        return [rows_of_sheet(sheet) for sheet in self.sheets]

    @property
    def sheet_uris(self) -> list[str]:
        """The sheets as a style sheet can name them."""
        return [sheet_uri(sheet) for sheet in self.sheets]

    def to_json(self) -> dict[str, object]:
        """All but the sheets, for the script."""
        record = asdict(self) | {"columns": COLUMNS, "per_sheet": PER_SHEET, "sheet_rows": self.sheet_rows}
        del record["sheets"]
        return record


def compare_pictures(
    folders: Mapping[str, Path], *, seed: int, n_pictures: int = N_PICTURES
) -> ComparedPictures | None:
    """The answers of each row about the images they share; None with fewer than two rows or without pictures."""
    pictures = next((found for folder in folders.values() if (found := read_pictures(folder))), None)
    if len(folders) < 2 or pictures is None:
        return None
    runs = {name: read_run(folder) for name, folder in folders.items()}
    answers = {name: _answers(run) for name, run in runs.items()}
    shared = set.intersection(*(set(own) for own in answers.values()))
    images = [image for image in pictures.images if image.image_id in shared]
    if not images:
        return None
    if len(images) > n_pictures:
        drawn = np.sort(np.random.default_rng(seed).permutation(len(images))[:n_pictures])
        images = [images[at] for at in drawn.tolist()]
    said = {name: [own[image.image_id] for image in images] for name, own in answers.items()}
    categories = sorted(
        {image.category for image in images}.union(*({one for one in own if one} for own in said.values()))
    )
    number_of = {name: number for number, name in enumerate(categories)}
    first = next(iter(runs.values()))
    new = {name for record in first.stages for name in _new(first, record.stage)}
    return ComparedPictures(
        seed=seed,
        stage=first.stages[-1].stage,
        categories=tuple(categories),
        is_new=tuple(name in new for name in categories),
        ids=tuple(image.image_id for image in images),
        category=tuple(number_of[image.category] for image in images),
        rows=tuple(
            RowAnswers(
                name=name,
                right=tuple(at for at, image in enumerate(images) if said[name][at] == image.category),
                said=tuple(number_of.get(one or "", NO_CATEGORY) for one in said[name]),
                found=tuple(sorted(number_of[one] for one in _found(run) & new if one in number_of)),
            )
            for name, run in runs.items()
        ),
        sheets=tuple(make_sheets(tiles_of(pictures, images))),
    )


def tiles_of(pictures: Pictures, images: list[PlacedPicture]) -> Pixels:
    """The pictures of some images, taken out of their sheets. (n, TILE, TILE, 3)."""
    tiles = np.empty((len(images), TILE, TILE, 3), dtype=np.uint8)
    for number in sorted({image.sheet for image in images}):
        with Image.open(io.BytesIO(pictures.sheets[number])) as opened:
            sheet = np.asarray(opened.convert("RGB"))
        grid = sheet.reshape(-1, TILE, COLUMNS, TILE, 3).swapaxes(1, 2).reshape(-1, TILE, TILE, 3)
        own = [at for at, image in enumerate(images) if image.sheet == number]
        tiles[own] = grid[[images[at].tile for at in own]]
    return tiles


def _answers(run: Run) -> dict[str, str | None]:
    """What each scored image of the last stage is taken for, under the matching of the scores; None for no category."""
    split, stage = run.results.default.partition("/")[0], run.stages[-1].stage
    crossing = cross(run.predictions, stage=stage, split=split)
    meant = {
        cluster: crossing.categories[category]
        for cluster, category in zip(crossing.clusters, crossing.category_of.tolist(), strict=True)
        if category != UNLABELED
    }
    predictions = run.predictions
    return {
        predictions.image_id[row]: meant.get(predictions.cluster[row])
        for row in np.flatnonzero(predictions.stage == stage).tolist()
        if predictions.split[row] == split
    }


def _new(run: Run, stage: int) -> set[str]:
    return categories_of_group(run.predictions, stage=stage, group="New", split="unlabeled")


def _found(run: Run) -> set[str]:
    """The categories that are the majority of a discovery."""
    return {found.category for record in run.stages for found in record.discoveries if found.category}
