"""What the page asks about photos that need a look: their groups, their alternatives, and what looking is worth."""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

import json
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from igcd.workspace import queries
from igcd.workspace.catalog import Catalog, id_list
from igcd.workspace.looks import expected_growth
from igcd.workspace.outlook import VERY_LIKELY, outlook
from igcd.workspace.queries import NearKnown

N_ALTERNATIVES = 3
OTHERS = 0
"""Number of the group of photos that no discovery has put into one: of a rejected category, for example."""

TO_LOOK = f"""
SELECT a.photo, a.category, COALESCE(k.look + 1, {OTHERS}) AS look,
    CASE WHEN a.category IS NULL THEN 1.0 ELSE 1.0 - a.probability END AS gain
FROM assignments a INDEXED BY unconfirmed LEFT JOIN looks k ON k.photo = a.photo
WHERE NOT a.is_confirmed AND (
    a.category IS NULL
    OR (a.probability < {VERY_LIKELY}
        AND a.category IN (SELECT id FROM categories WHERE state IN ('labeled', 'accepted'))
        AND (SELECT stage FROM photos WHERE id = a.photo) = (SELECT MAX(stage) FROM stages))
)
"""
"""Photos that are unsure, and those of the last stage that are not very likely of their known category."""


@dataclass(frozen=True)
class Look:
    """A group of photos that need a look."""

    id: int
    photo_ids: Sequence[int]
    gain: float  # photos of it expected to be wrong as they are

    @property
    def n_photos(self) -> int:
        """How many photos."""
        return len(self.photo_ids)


def looks(catalog: Catalog) -> list[Look]:
    """The groups, what teaches most first; what is in no group comes last."""
    members: dict[int, list[int]] = {}
    gains: dict[int, float] = {}
    with catalog.snapshot() as db:
        cursor = db.cursor()
        cursor.row_factory = None  # plain tuples: there may be very many
        for photo, look, gain in cursor.execute(
            f"SELECT photo, look, gain FROM ({TO_LOOK}) ORDER BY look, gain DESC, photo"
        ):
            members.setdefault(look, []).append(photo)
            gains[look] = gains.get(look, 0.0) + gain
    ordered = sorted(members, key=lambda look: (look == OTHERS, look))
    return [Look(look, members[look], gains[look]) for look in ordered]


def alternatives_of_looks(catalog: Catalog, groups: Sequence[Look]) -> dict[int, list[tuple[int, float]]]:
    """By group, the most probable categories and their mean probability."""
    live = queries.live_versions(catalog).keys()
    sums: dict[int, dict[int, float]] = {group.id: {} for group in groups}
    members = json.dumps([(photo, group.id) for group in groups for photo in group.photo_ids])
    with catalog.snapshot() as db:
        rows = db.execute(
            "WITH members AS (SELECT json_extract(value, '$[0]') AS photo, json_extract(value, '$[1]') AS look "
            "FROM json_each(?)) SELECT m.look, x.category, SUM(x.probability) AS total FROM members m "
            "JOIN alternatives x ON x.photo = m.photo GROUP BY m.look, x.category",
            (members,),
        ).fetchall()
    for row in rows:
        into = _reached(catalog, row["category"], live)
        if into is not None:
            of_look = sums[row["look"]]
            of_look[into] = of_look.get(into, 0.0) + row["total"]
    return {group.id: _best(sums[group.id], group.n_photos) for group in groups}


def n_to_look(catalog: Catalog) -> int:
    """How many photos need a look."""
    with catalog.snapshot() as db:
        return int(db.execute(f"SELECT COUNT(*) FROM ({TO_LOOK})").fetchone()[0])


def growth(catalog: Catalog, groups: Sequence[Look]) -> list[float]:
    """Share of the new photos expected to be right now, and after each of these groups is decided about."""
    now = outlook(catalog)
    return expected_growth(now.n_expected_right, now.n_photos, np.array([group.gain for group in groups]))


def alternatives_of(catalog: Catalog, photo_id: int) -> list[tuple[int, float]]:
    """The most probable categories of a photo."""
    with catalog.snapshot() as db:
        rows = db.execute("SELECT category, probability FROM alternatives WHERE photo = ?", (photo_id,)).fetchall()
    live = queries.live_versions(catalog).keys()
    sums: dict[int, float] = {}
    for row in rows:
        into = _reached(catalog, row["category"], live)
        if into is not None:
            sums[into] = sums.get(into, 0.0) + row["probability"]
    return _best(sums, 1)


def with_photos(catalog: Catalog, alternatives: Iterable[tuple[int, float]], *, n_photos: int = 8) -> list[NearKnown]:
    """Categories with their most typical photos, to compare with."""
    chosen = list(alternatives)
    shown = queries.typical_photos(catalog, [category for category, _ in chosen], n_photos=n_photos)
    return [
        NearKnown(queries.category(catalog, category), probability, shown[category]) for category, probability in chosen
    ]


def _best(sums: dict[int, float], n_photos: int) -> list[tuple[int, float]]:
    best = sorted(sums, key=lambda category: (-sums[category], category))[:N_ALTERNATIVES]
    return [(category, sums[category] / n_photos) for category in best]


def _reached(catalog: Catalog, category_id: int, live: Container[int]) -> int | None:
    """The category that this one is by now: itself, what it was merged into, or none."""
    reached: int | None = category_id
    while reached is not None and reached not in live:
        with catalog.snapshot() as db:
            row = db.execute(
                "SELECT merged_into FROM categories WHERE id IN (SELECT value FROM json_each(?)) AND state = 'merged'",
                (id_list([reached]),),
            ).fetchone()
        reached = None if row is None else row["merged_into"]
    return reached
