"""The pictures of a run: what its report shows on the map, drawn from the images of each stage.

Nothing here reaches a method. Features are those of the encoder before training, so that all methods share a map.
"""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from igcd.data.decoding import decode
from igcd.data.quarantine import Quarantine
from igcd.encoders.encoder import Encoder, encode
from igcd.functional.landscape import Rows, lay_out
from igcd.hidden import Handle, look_behind
from igcd.records import write_bytes
from igcd.report.picture_sheets import (
    FOLDER,
    INDEX,
    PER_SHEET,
    TILE,
    PlacedPicture,
    make_sheets,
    share_of_each,
    sheet_path,
    write_index,
)
from igcd.tensor_files import read_tensors, write_tensors
from igcd.types import Images, IntArray, Pixels, Stage, StageTruth, Truth

N_PICTURES = 5_000
"""Of a whole run. A stream with more images shows a sample that is drawn at random."""

FeaturesOf = Callable[[Images], tuple[IntArray, Rows]]
"""The positions of the images that can be read, and their features, (n, d)."""


def frozen_features(encoder: Encoder) -> FeaturesOf:
    """Features of the encoder as it comes. What it cannot read is nobody's fault here: the method has set it aside."""

    def features_of(images: Images) -> tuple[IntArray, Rows]:
        views = replace(encoder, quarantine=Quarantine(limit=1.0)).plain_views(images)
        with torch.no_grad():
            h = encode(views, encoder.backbone.tail, n_features=encoder.backbone.n_features)
        return views.usable_idx, h.cpu().numpy().astype(np.float32)

    return features_of


@dataclass(frozen=True)
class PictureRecorder:
    """Writes the pictures of a run, stage by stage, and places all of them on one map at its end.

    The folder is behind a handle: a method has the encoder that the features come from, and nothing must lead from
    there to where the truth is written.
    """

    folder: Handle[Path]
    features_of: FeaturesOf
    seed: int
    n_pictures: int = N_PICTURES

    def record(self, stage: Stage, truth: StageTruth, n_stages: int) -> None:
        """Draws from the images that the stage has for the first time, and keeps their pictures and features."""
        known = {image_id for earlier in range(stage.index) for image_id, *_ in self._rows(earlier)}
        parts = {
            "labeled": (stage.labeled, truth.labeled),
            "unlabeled": (stage.unlabeled, truth.unlabeled),
            "test": (truth.test_images, truth.test),
        }
        new = {split: self._new(part, known) for split, (_, part) in parts.items()}
        wanted = share_of_each([len(idx) for idx in new.values()], self.n_pictures // n_stages)
        rng = np.random.default_rng([self.seed, stage.index])
        rows: list[tuple[str, str, str]] = []
        tiles, features = [np.empty((0, TILE, TILE, 3), dtype=np.uint8)], []
        for (split, (images, part)), n in zip(parts.items(), wanted, strict=True):
            drawn = np.sort(rng.permutation(new[split])[:n])
            read_idx, pixels, h = self._read(images.take(drawn))
            rows += [(part.image_ids[at], split, part.categories[at]) for at in drawn[read_idx].tolist()]
            tiles.append(pixels)
            if len(read_idx):
                features.append(h)
        for number, sheet in enumerate(make_sheets(np.concatenate(tiles))):
            write_bytes(sheet_path(look_behind(self.folder), stage.index, number), sheet)
        if features:
            half = torch.from_numpy(np.concatenate(features)).half()
            write_tensors(self._features_path(stage.index), {"features": half}, {})
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        write_bytes(self._rows_path(stage.index), text.getvalue().encode())

    def finish(self, n_stages: int) -> None:
        """Places all images on one map, writes the index that the report reads, and drops what only this needed."""
        if (look_behind(self.folder) / FOLDER / INDEX).is_file():
            return
        rows = [(stage, number, *row) for stage in range(n_stages) for number, row in enumerate(self._rows(stage))]
        parts = [self._features_path(stage) for stage in range(n_stages)]
        h = [read_tensors(path)[0]["features"].float().numpy() for path in parts if path.is_file()]
        places = lay_out(np.concatenate(h) if h else np.empty((0, 1), dtype=np.float32), seed=self.seed)
        write_index(
            look_behind(self.folder),
            (
                PlacedPicture(image_id, split, category, stage, number // PER_SHEET, number % PER_SHEET, *place)
                for (stage, number, image_id, split, category), place in zip(rows, places.tolist(), strict=True)
            ),
        )
        for stage in range(n_stages):
            self._features_path(stage).unlink(missing_ok=True)
            self._rows_path(stage).unlink(missing_ok=True)

    def _new(self, part: Truth, known: set[str]) -> IntArray:
        return np.array([at for at, name in enumerate(part.image_ids) if name not in known], dtype=np.int64)

    def _read(self, images: Images) -> tuple[IntArray, Pixels, Rows]:
        """Positions of the images that can be read, their tiles and features, (n,), (n, TILE, TILE, 3), (n, d)."""
        usable_idx, h = self.features_of(images)
        readable = images.take(usable_idx)
        batches = list(decode(readable, TILE, quarantine=Quarantine(limit=1.0)))
        read = np.concatenate([idx for idx, _ in batches]) if batches else np.empty(0, dtype=np.int64)
        tiles = [pixels for _, pixels in batches] or [np.empty((0, TILE, TILE, 3), dtype=np.uint8)]
        return usable_idx[read], np.concatenate(tiles), h[read]

    def _rows(self, stage: int) -> list[tuple[str, str, str]]:
        """Image id, split and category of each picture of a stage; none of a stage that an earlier version ran."""
        if not self._rows_path(stage).is_file():
            return []
        with self._rows_path(stage).open(encoding="utf-8", newline="") as file:
            return [(image_id, split, category) for image_id, split, category in csv.reader(file)]

    def _rows_path(self, stage: int) -> Path:
        return look_behind(self.folder) / FOLDER / f"stage-{stage}.csv"

    def _features_path(self, stage: int) -> Path:
        return look_behind(self.folder) / FOLDER / f"stage-{stage}.safetensors"
