"""The photos of a workspace as its report shows them: pictures, places, and the category of each."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from igcd.data.decoding import decode
from igcd.data.quarantine import Quarantine
from igcd.errors import IgcdError
from igcd.functional.landscape import lay_out
from igcd.report.exploration import NONE, Answers, Entry, Exploration, ExploredImages, Group, map_units
from igcd.report.picture_sheets import PER_SHEET, TILE, make_sheets
from igcd.types import Pixels
from igcd.workspace.catalog import Catalog
from igcd.workspace.feature_store import find_damaged, read_features
from igcd.workspace.photo_files import PhotoFile, PhotoFiles, photo_files
from igcd.workspace.queries import Category, categories, nearest_known

N_PICTURES = 5_000
"""Photos on the map. Of a larger workspace a sample is shown; the most typical of each category are always there."""
N_TYPICAL = 8
SPLITS = ("labeled", "confirmed", "guessed")

PHOTOS = """
SELECT p.id, p.stage, a.category, a.is_confirmed, a.is_peak, a.typicality,
    EXISTS (SELECT 1 FROM labels l WHERE l.photo = p.id AND l.source = 'given') AS is_given,
    (SELECT path FROM photo_paths pp WHERE pp.photo = p.id ORDER BY folder, path LIMIT 1) AS path,
    ROW_NUMBER() OVER (PARTITION BY a.category ORDER BY a.is_peak DESC, a.typicality DESC, a.photo) AS place
FROM assignments a JOIN photos p ON p.id = a.photo WHERE p.broken IS NULL ORDER BY p.id
"""


@dataclass(frozen=True)
class ExploredWorkspace:
    """What the page shows: `positions` gives the place of a photo in its columns, for those that have a picture."""

    exploration: Exploration
    categories: tuple[Category, ...]
    positions: Mapping[int, int]
    typical: Mapping[int, tuple[int, ...]]  # category -> positions, the most typical first


def explore_workspace(catalog: Catalog, *, n_pictures: int = N_PICTURES, seed: int = 0) -> ExploredWorkspace:
    """Reads photos and categories, decodes small pictures, and lays the photos out on one map."""
    live = [category for category in categories(catalog) if category.n_photos]
    with catalog.snapshot() as db:
        rows = db.execute(PHOTOS).fetchall()
        first_labels = _first_labels(db)
        stages = [row["stage"] for row in db.execute("SELECT stage FROM stages ORDER BY stage")]
        encoder = db.execute(
            "SELECT encoder FROM stages WHERE encoder IS NOT NULL ORDER BY stage DESC LIMIT 1"
        ).fetchone()
        if encoder is None:
            raise IgcdError(
                f"a report needs a discovery, {catalog.folder} has none yet; run `igcd discover {catalog.folder}` first"
            )
        chosen = _choose(rows, n_pictures, seed)
        features = read_features(db, encoder["encoder"], [row["id"] for row in chosen])
        for photo in find_damaged(features):
            del features[photo]
        files = photo_files(db, features)
    shown, tiles = _decode([row for row in chosen if row["id"] in features and row["id"] in files], files)
    places = lay_out(
        np.stack([features[row["id"]] for row in shown]) if shown else np.empty((0, 1), dtype=np.float32), seed=seed
    )
    group_of = {category.id: number for number, category in enumerate(live)}
    positions = {row["id"]: position for position, row in enumerate(shown)}
    groups = [group_of.get(row["category"], NONE) for row in shown]
    typical: dict[int, list[tuple[int, int]]] = {}
    for position, row in enumerate(shown):
        if row["category"] is not None:
            typical.setdefault(row["category"], []).append((row["place"], position))
    exploration = Exploration(
        what="photo",
        is_judged=False,
        n_all=len(rows),
        stages=tuple(f"Stage {stage}" for stage in stages),
        splits=SPLITS,
        truths=tuple(category.title for category in live),
        groups=tuple(_group(category, first_labels) for category in live),
        images=ExploredImages(
            id=tuple(row["path"] for row in shown),
            x=map_units(places[:, 0].tolist()),
            y=map_units(places[:, 1].tolist()),
            sheet=tuple(position // PER_SHEET for position in range(len(shown))),
            tile=tuple(position % PER_SHEET for position in range(len(shown))),
            stage=tuple(row["stage"] for row in shown),
            split=tuple(0 if row["is_given"] else 1 if row["is_confirmed"] else 2 for row in shown),
            truth=tuple(group if row["is_confirmed"] else NONE for row, group in zip(shown, groups, strict=True)),
        ),
        answers=tuple(
            Answers(
                stage=stage,
                images=tuple(position for position, row in enumerate(shown) if row["stage"] == stage),
                groups=tuple(group for row, group in zip(shown, groups, strict=True) if row["stage"] == stage),
                stands_for=tuple(range(len(live))),
            )
            for stage in stages
        ),
        entries=tuple(_entries(catalog, live, rows)),
        sheets=tuple(make_sheets(tiles)),
    )
    in_order = {category: tuple(position for _, position in sorted(own)) for category, own in typical.items()}
    return ExploredWorkspace(exploration, tuple(live), positions, in_order)


def _first_labels(db: sqlite3.Connection) -> dict[int, int]:
    """The stage of the first label of each category that was given, not confirmed."""
    rows = db.execute("SELECT category, MIN(stage) AS stage FROM labels WHERE source = 'given' GROUP BY category")
    return {row["category"]: row["stage"] for row in rows}


def _group(category: Category, first_labels: Mapping[int, int]) -> Group:
    """A category that was found is new at its stage, and known from the next on when its stage was accepted."""
    if category.id in first_labels:
        return Group(category.title, None, first_labels[category.id])
    known_from = category.found_stage + 1 if category.state == "labeled" else None
    return Group(category.title, category.found_stage, known_from)


def _choose(rows: Sequence[sqlite3.Row], n: int, seed: int) -> list[sqlite3.Row]:
    """At most n photos: the most typical ones of each category, and of the others some at random."""
    if len(rows) <= n:
        return list(rows)
    order = np.random.default_rng(seed).permutation(len(rows)).tolist()
    order.sort(key=lambda at: rows[at]["category"] is None or rows[at]["place"] > N_TYPICAL)
    return [rows[at] for at in sorted(order[:n])]


def _decode(rows: Sequence[sqlite3.Row], files: Mapping[int, PhotoFile]) -> tuple[list[sqlite3.Row], Pixels]:
    """The photos that can be read, and their small pictures, (n, TILE, TILE, 3)."""
    images = PhotoFiles(files[row["id"]] for row in rows)
    batches = list(decode(images, TILE, quarantine=Quarantine(limit=1.0)))
    read = [rows[at] for idx, _ in batches for at in idx.tolist()]
    tiles = [pixels for _, pixels in batches] or [np.empty((0, TILE, TILE, 3), dtype=np.uint8)]
    return read, np.concatenate(tiles)


def _entries(catalog: Catalog, live: Sequence[Category], rows: Sequence[sqlite3.Row]) -> list[Entry]:
    entries = []
    for number, category in enumerate(live):
        is_known = category.state == "labeled"
        near = [] if is_known else nearest_known(catalog, category.id, n_categories=1, n_photos=0)
        mean = category.mean_probability
        facts = (
            ("Photos", f"{category.n_photos:,}"),
            ("Confirmed", f"{category.n_confirmed:,}"),
            ("Mean probability, %", "–" if mean is None else f"{100 * mean:.0f}"),  # of what nobody has confirmed
            ("Found at stage", "–" if is_known else str(category.found_stage)),
            ("Most like", near[0].category.title if near else "–"),
        )
        entries.append(Entry(category.title, "known" if is_known else "new", number, number, facts))
    n_unsure = sum(row["category"] is None for row in rows)
    if n_unsure:
        unknown = tuple((name, "–") for name in ("Confirmed", "Mean probability, %", "Found at stage", "Most like"))
        entries.append(Entry("Unsure", "unsure", NONE, NONE, (("Photos", f"{n_unsure:,}"), *unknown)))
    return entries
