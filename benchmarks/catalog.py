"""A catalog of very many photos: how long it takes to look into it and to decide, and how large the file is.

    python benchmarks/catalog.py --sizes 10000 100000
    python benchmarks/catalog.py --sizes 1000000        # the bar: each below 200 ms

Photos, features (64 random numbers each) and categories (2,000 with a long tail, half of them discovered) are made up;
there are no pixels. Printed are milliseconds of processor time, the median of five calls each, and bytes per photo.
At the end the stage is accepted and 10,000 new photos are discovered in the next one. Hashes of pictures are random
bits, which are compared half as often as those of photos of birds (0.4 and 0.9% of all pairs).
"""

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from enlarged import sizes_with_tail
from PIL import Image

from igcd.types import Pixels
from igcd.workspace import queries
from igcd.workspace.catalog import Catalog, next_revision, open_catalog
from igcd.workspace.decisions import accept_category, defer, name
from igcd.workspace.discover import discover
from igcd.workspace.feature_store import Features, read_features, write_features
from igcd.workspace.init import init_workspace
from igcd.workspace.near_duplicates import find_near_duplicates
from igcd.workspace.similar import PhotoIndex
from igcd.workspace.undo import undo

WIDTH, ENCODER = 64, "made-up"
N_NEW = 10_000
ROWS_AT_A_TIME = 50_000


def fill(catalog: Catalog, n: int, n_categories: int) -> None:
    """Photos with features, assigned to categories: the first half has labels, the others are discovered."""
    rng = np.random.default_rng(0)
    sizes = sizes_with_tail(n, n_categories)
    owners = rng.permutation(np.repeat(np.arange(n_categories), sizes)) + 1
    with catalog.transaction() as db:
        revision = next_revision(db)
        db.executemany(
            "INSERT INTO categories (id, name, state, found_stage, version) VALUES (?, ?, ?, 0, ?)",
            [
                (i, f"category {i}", "labeled", revision) if i % 2 else (i, None, "discovered", revision)
                for i in range(1, n_categories + 1)
            ],
        )
        near = [(i, 1 + 2 * int(k), 0.9) for i in range(2, n_categories + 1, 2) for k in {i // 4, i // 5, i // 6}]
        db.executemany("INSERT INTO nearest VALUES (?, ?, ?)", near)
        first = db.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM photos").fetchone()[0]
        for start in range(0, n, ROWS_AT_A_TIME):
            ids = range(first + start, first + min(start + ROWS_AT_A_TIME, n))
            hashes = [f"{i:040d}" for i in ids]
            _insert_photos(db, 0, ids, hashes, rng)
            db.executemany("INSERT INTO photo_paths VALUES (1, ?, ?, 1, 0)", [(f"photos/{i:09d}.jpg", i) for i in ids])
            features = rng.normal(size=(len(ids), WIDTH)).astype(np.float32)
            write_features(db, ENCODER, hashes, features / np.linalg.norm(features, axis=1, keepdims=True))
            probability, typicality = rng.random(len(ids)), rng.random(len(ids))
            own = owners[start : start + len(ids)]
            is_labeled = (own % 2 == 1) & (rng.random(len(ids)) < 0.02)
            db.executemany(
                "INSERT INTO assignments VALUES (?, 0, ?, ?, ?, 0, ?)",
                zip(ids, own.tolist(), probability.tolist(), typicality.tolist(), is_labeled.tolist(), strict=True),
            )
            db.executemany(
                "INSERT INTO labels VALUES (?, ?, 0, 'given')",
                [(i, int(c)) for i, c, has in zip(ids, own, is_labeled, strict=True) if has],
            )
        db.execute("INSERT INTO assignments SELECT id, 0, 1, 1, 1, 0, 0 FROM photos WHERE id < ?", (first,))
        there = [row["content_hash"] for row in db.execute("SELECT content_hash FROM photos WHERE id < ?", (first,))]
        write_features(db, ENCODER, there, np.eye(WIDTH, dtype=np.float32)[: len(there)])
        db.execute("UPDATE stages SET state = 'discovered', encoder = ?", (ENCODER,))


def _insert_photos(db: sqlite3.Connection, stage: int, ids: range, hashes: list[str], rng: np.random.Generator) -> None:
    pictures = rng.integers(0, 256, (len(ids), 32), dtype=np.uint8)
    db.executemany(
        "INSERT INTO photos (id, content_hash, n_bytes, width, height, stage, picture_hash) "
        "VALUES (?, ?, 1, 100, 100, ?, ?)",
        [(i, key, stage, picture.tobytes()) for i, key, picture in zip(ids, hashes, pictures, strict=True)],
    )


class MadeUpEncoder:
    """The name of the made-up features; nothing is left to encode."""

    key, size = ENCODER, 32

    def __call__(self, pixels: Pixels) -> Features:
        """Never called."""
        raise AssertionError(f"{len(pixels)} photos have no feature")


def close_and_add(catalog: Catalog, n_new: int) -> None:
    """The stage is accepted, with 20 photos of each category kept; new photos of the same categories come in."""
    rng = np.random.default_rng(1)
    with catalog.transaction() as db:
        db.execute("UPDATE categories SET state = 'labeled', name = COALESCE(name, 'found ' || id)")
        db.execute("UPDATE assignments SET is_confirmed = 1")
        db.execute("INSERT OR IGNORE INTO labels SELECT photo, category, 0, 'confirmed' FROM assignments")
        db.execute(
            "INSERT INTO kept SELECT 0, 'replay', category, place, photo FROM (SELECT category, photo, ROW_NUMBER() "
            "OVER (PARTITION BY category ORDER BY photo) AS place FROM assignments) WHERE place <= 20"
        )
        db.execute("INSERT INTO places SELECT 0, photo, 0.5, 0.5 FROM assignments")
        db.execute("UPDATE stages SET state = 'accepted'")
        db.execute("INSERT INTO stages (stage, state, opened) VALUES (1, 'open', 'now')")
        db.execute("DELETE FROM photos WHERE content_hash = 'new'")
        kept = [row["photo"] for row in db.execute("SELECT photo FROM kept ORDER BY photo")]
        near = read_features(db, ENCODER, kept)
        first = db.execute("SELECT MAX(id) + 1 FROM photos").fetchone()[0]
        hashes = [f"new {i}" for i in range(n_new)]
        _insert_photos(db, 1, range(first, first + n_new), hashes, rng)
        db.executemany(
            "INSERT INTO photo_paths VALUES (1, ?, ?, 1, 0)", [(f"new/{i:09d}.jpg", first + i) for i in range(n_new)]
        )
        around = np.stack([near[kept[i]] for i in rng.integers(len(kept), size=n_new)])
        features = around + 0.02 * rng.normal(size=around.shape).astype(np.float32)
        write_features(db, ENCODER, hashes, features / np.linalg.norm(features, axis=1, keepdims=True))
        next_revision(db)


def milliseconds(call: Callable[[], object], n_times: int = 5) -> float:
    taken = []
    for _ in range(n_times):
        start = time.process_time()
        call()
        taken.append(1000 * (time.process_time() - start))
    return statistics.median(taken)


def measure(n: int, folder: Path) -> None:
    images, workspace = folder / "photos", folder / "ws"
    images.mkdir()
    Image.new("RGB", (8, 8)).save(images / "one.png")
    init_workspace(workspace, images)
    n_categories = min(2_000, max(4, n // 100))
    with open_catalog(workspace) as catalog:
        fill(catalog, n, n_categories)
        median_category = n_categories // 2 + n_categories // 2 % 2
        calls: dict[str, Callable[[], object]] = {
            "status": lambda: queries.status(catalog),
            "queue": lambda: queries.queue(catalog),
            "categories": lambda: queries.categories(catalog),
            "page of the largest": lambda: queries.photos_of(catalog, 2, limit=200),
            "last page of it": lambda: queries.photos_of(catalog, 2, offset=10**6, limit=200),
            "nearest known": lambda: queries.nearest_known(catalog, 2),
            "least certain": lambda: queries.low_confidence(catalog, limit=200),
            "history": lambda: queries.history(catalog),
            "defer": lambda: defer(catalog, median_category, author="a"),
        }
        index = PhotoIndex(catalog)
        some = [photo.id for photo in queries.photos_of(catalog, 2, limit=3).photos]
        print(f"{n:>9,} {'read all features':>22} {milliseconds(lambda: index.nearest(some, n=50), 1):>9.1f} ms")
        calls["more like this"] = lambda: index.nearest(some, n=50)
        for title, call in calls.items():
            print(f"{n:>9,} {title:>22} {milliseconds(call):>9.1f} ms", flush=True)
        decisions: dict[str, Callable[[], object]] = {
            "name": lambda: name(catalog, median_category, "a new name", author="a"),
            "undo name": lambda: undo(catalog, author="a"),
            "accept": lambda: accept_category(catalog, median_category, author="a"),
            "undo accept": lambda: undo(catalog, author="a"),
        }
        for title, call in decisions.items():
            print(f"{n:>9,} {title:>22} {milliseconds(call, 1):>9.1f} ms", flush=True)
        with catalog.transaction() as db:
            new = "INSERT INTO photos (content_hash, n_bytes, width, height, stage) VALUES ('new', 1, 1, 1, 0)"
            db.execute(new)
        print(f"{n:>9,} {'status, a photo waits':>22} {milliseconds(calls['status']):>9.1f} ms", flush=True)
        close_and_add(catalog, N_NEW)
        with catalog.snapshot() as db:
            taken = milliseconds(lambda: find_near_duplicates(db, 1, ENCODER), 1)
        print(f"{n:>9,} {'near-duplicates of new':>22} {taken:>9.1f} ms", flush=True)
        taken = milliseconds(lambda: discover(catalog, MadeUpEncoder()), 1)
        print(f"{n:>9,} {f'discover {N_NEW:,} new':>22} {taken:>9.1f} ms", flush=True)
    start = time.process_time()
    with open_catalog(workspace):
        print(f"{n:>9,} {'open and check':>22} {1000 * (time.process_time() - start):>9.1f} ms", flush=True)
    n_bytes = sum(path.stat().st_size for path in workspace.rglob("*") if path.is_file())
    print(f"{n:>9,} {'bytes per photo':>22} {n_bytes / n:>9.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    for n in parser.parse_args().sizes:
        with tempfile.TemporaryDirectory() as folder:
            measure(n, Path(folder))


if __name__ == "__main__":
    main()
