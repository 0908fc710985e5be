"""A small run: owl and fox are labeled at stage 0; newt and moth come at stage 1, where cluster 7 is found."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from igcd.data.taxonomy import Taxon
from igcd.records import write_bytes
from igcd.report.picture_sheets import TILE, PlacedPicture, make_sheets, sheet_path, write_index
from igcd.types import Predictions

Row = tuple[int, str, str, str, str]
"""Stage, split, category, cluster, group."""

ROWS: list[Row] = [
    *[(0, "test", "owl", "0", "Old")] * 3,
    (0, "test", "fox", "1", "Old"),
    (0, "test", "fox", "0", "Old"),
    *[(1, "test", "owl", "0", "Old")] * 2,
    (1, "test", "owl", "7", "Old"),
    *[(1, "test", "fox", "1", "S-0")] * 2,
    *[(1, "test", "newt", "7", "New")] * 3,
    (1, "test", "newt", "1", "New"),
    (1, "test", "moth", "1", "New"),
    *[(1, "unlabeled", "newt", "7", "New")] * 4,
    (1, "unlabeled", "moth", "7", "New"),
    *[(1, "unlabeled", "owl", "0", "Old")] * 2,
]

# Not as in nature, where no two of them share a genus: the newt is a second species of the owl's.
TAXA = [
    Taxon("owl", ("Animalia", "Chordata", "Aves", "Strigiformes", "Strigidae", "Strix")),
    Taxon("fox", ("Animalia", "Chordata", "Mammalia", "Carnivora", "Canidae", "Vulpes")),
    Taxon("newt", ("Animalia", "Chordata", "Aves", "Strigiformes", "Strigidae", "Strix")),
    Taxon("moth", ("Animalia", "Arthropoda", "Insecta", "Lepidoptera", "Noctuidae", "Noctua")),
]


def predictions_of(rows: Sequence[Row]) -> Predictions:
    stage, split, category, cluster, group = zip(*rows, strict=True)
    return Predictions(np.array(stage), split, tuple(map(str, range(len(rows)))), category, cluster, group)


def jpeg(color: int = 90, size: int = 96) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((size, size, 3), color, np.uint8)).save(file, "JPEG")
    return file.getvalue()


def discovery(cluster: int, **values: Any) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "nearest_known": 0,
        "size": 5,
        "category": "newt",
        "purity": 0.8,
        "images": [f"gallery/found-{cluster}-0.jpg", f"gallery/found-{cluster}-1.jpg"],
    } | values


def write_pictures(folder: Path, rows: Sequence[Row]) -> None:
    """A picture of one color for each row, as a run leaves them, and two labeled images of the owl."""
    everything = [(0, "labeled", "owl"), (0, "labeled", "owl"), *(row[:3] for row in rows)]
    placed = []
    for stage in sorted({stage for stage, _, _ in everything}):
        own = [at for at, (when, _, _) in enumerate(everything) if when == stage]
        shades = np.linspace(40, 220, len(own)).astype(np.uint8)
        tiles = np.broadcast_to(shades[:, None, None, None], (len(own), TILE, TILE, 3))
        for number, sheet in enumerate(make_sheets(tiles)):
            write_bytes(sheet_path(folder, stage, number), sheet)
        for tile, at in enumerate(own):
            image_id = f"labeled/{at}.jpg" if at < 2 else str(at - 2)
            x, y = np.random.default_rng(at).random(2).tolist()
            placed.append(PlacedPicture(image_id, *everything[at][1:], stage, 0, tile, x, y))
    write_index(folder, placed)
