"""A catalog as `discover` leaves it behind, made of plain numbers: for tests of reading, deciding and of the page."""

import json
import sqlite3
from pathlib import Path

import numpy as np
from PIL import Image

from igcd.workspace.catalog import Catalog, next_revision, now, open_catalog
from igcd.workspace.feature_store import write_features
from igcd.workspace.init import init_workspace

TINY_ENCODER = {"backbone": "resnet10t", "weights": "random", "size": 32}
"""What a discovery from the page computes features with: fast, and it learns nothing from them."""
N_DIRECTIONS = 16
GRAIN = 24
"""Squares of noise across a large photo: noise in every pixel takes long to compress."""


def sample_workspace(
    folder: Path,
    *,
    known: dict[str, int],
    novel: dict[str, int],
    n_known_new: int = 2,
    n_unsure: int = 1,
    size: int = 24,
) -> dict[str, list[int]]:
    """Makes `folder/photos` and the workspace `folder/ws`: labeled categories, new photos of them, new categories.

    `known` and `novel` say how many photos each category has; returns the photo ids of each, and under
    "unsure" those of none. Ids of categories count from 1: known ones in alphabetical
    order, then novel ones in the order given.
    """
    images, rng, grain = folder / "photos", np.random.default_rng(0), min(size, GRAIN)
    members = {name: [f"{name}/{i:04d}.png" for i in range(n)] for name, n in known.items()}
    new = {name: [f"unlabeled/{name}-{i:04d}.png" for i in range(n_known_new)] for name in known}
    new |= {name: [f"unlabeled/{name}-{i:04d}.png" for i in range(n)] for name, n in novel.items()}
    new["unsure"] = [f"unlabeled/unsure-{i:04d}.png" for i in range(n_unsure)]
    for color, paths in enumerate([*members.values(), *new.values()]):
        for path in paths:
            pixels = rng.integers(0, 60, (grain, grain, 3)) + np.array([40 * (color % 5), 30 * (color % 7), 90])
            photo = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
            (images / path).parent.mkdir(parents=True, exist_ok=True)
            photo.resize((size, size), Image.Resampling.NEAREST).save(images / path)
    init_workspace(folder / "ws", images, from_folders=True, encoder=TINY_ENCODER)
    with open_catalog(folder / "ws") as catalog:
        return _discover(catalog, known, novel, members, new)


def _discover(
    catalog: Catalog,
    known: dict[str, int],
    novel: dict[str, int],
    members: dict[str, list[str]],
    new: dict[str, list[str]],
) -> dict[str, list[int]]:
    with catalog.transaction() as db:
        id_of = {row["path"]: row["photo"] for row in db.execute("SELECT path, photo FROM photo_paths")}
        category_of = {row["name"]: row["id"] for row in db.execute("SELECT name, id FROM categories")}
        revision = next_revision(db)
        for name in novel:
            cursor = db.execute(
                "INSERT INTO categories (state, found_stage, version) VALUES ('discovered', 0, ?)", (revision,)
            )
            category_of[name] = cursor.lastrowid
            nearest = [(category_of[name], category_of[other], 0.9 - 0.1 * i) for i, other in enumerate(known)]
            db.executemany("INSERT INTO nearest VALUES (?, ?, ?)", nearest)
        for name, paths in new.items():
            rows = [
                (id_of[path], category_of.get(name), 0.95 - 0.5 * i / len(paths), 0.9 - 0.4 * i / len(paths), i == 0)
                for i, path in enumerate(paths)
            ]
            db.executemany(
                "INSERT INTO assignments (photo, stage, category, probability, typicality, is_peak) "
                "VALUES (?, 0, ?, ?, ?, ?)",
                rows,
            )
        rng = np.random.default_rng(1)
        db.executemany("INSERT INTO places VALUES (0, ?, ?, ?)", [(i, *rng.random(2).tolist()) for i in id_of.values()])
        db.execute(
            "UPDATE stages SET state = 'discovered', discovered = ?, encoder = 'sample', summary = ?",
            (now(), json.dumps({"sentence": "a sample", "revision": revision})),
        )
        _write_features(db, members, new, id_of)
        _write_hints(db, new, id_of, category_of)
    photo_ids = {name: [id_of[path] for path in paths] for name, paths in new.items()}
    for name, paths in members.items():
        photo_ids[name] = [id_of[path] for path in paths] + photo_ids[name]
    return photo_ids


def _write_features(
    db: sqlite3.Connection, members: dict[str, list[str]], new: dict[str, list[str]], id_of: dict[str, int]
) -> None:
    """Each kind of photo points into a direction of its own, and each photo a little elsewhere."""
    rng = np.random.default_rng(2)
    hash_of = {row["id"]: row["content_hash"] for row in db.execute("SELECT id, content_hash FROM photos")}
    kinds = list(dict.fromkeys([*members, *new]))
    for kind, paths in [*members.items(), *new.items()]:
        rows = rng.normal(0, 0.15, (len(paths), N_DIRECTIONS))
        rows[:, kinds.index(kind) % N_DIRECTIONS] += 1
        features = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        write_features(db, "sample", [hash_of[id_of[path]] for path in paths], features)


def _write_hints(
    db: sqlite3.Connection, new: dict[str, list[str]], id_of: dict[str, int], category_of: dict[str, int]
) -> None:
    """Alternatives of every new photo, and one group of the unsure ones."""
    categories = sorted(category_of.values())[:3]
    for paths in new.values():
        rows = [
            (id_of[path], place, category, 0.5 - 0.15 * place)
            for path in paths
            for place, category in enumerate(categories)
        ]
        db.executemany("INSERT INTO alternatives VALUES (?, ?, ?, ?)", rows)
    db.executemany("INSERT INTO looks VALUES (?, 0)", [(id_of[path],) for path in new["unsure"]])
