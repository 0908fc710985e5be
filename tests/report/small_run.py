"""A small run: owl and fox are labeled at stage 0; newt and moth come at stage 1, where cluster 7 is found."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from igcd.data.taxonomy import Taxon
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
