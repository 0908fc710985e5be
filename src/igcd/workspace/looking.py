"""What the page asks about photos that need a look: their groups, their alternatives, and what looking is worth."""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from igcd.workspace.catalog import Catalog, id_list
from igcd.workspace.looks import expected_growth
from igcd.workspace.outlook import VERY_LIKELY, outlook
from igcd.workspace.queries import NearKnown, categories, typical_photos

N_ALTERNATIVES = 3
OTHERS = 0
"""Number of the group of photos that no discovery has put into one: of a rejected category, for example."""

TO_LOOK = f"""
SELECT a.photo, a.category, COALESCE(k.look + 1, {OTHERS}) AS look,
    CASE WHEN a.category IS NULL THEN 1.0 ELSE 1.0 - a.probability END AS gain, a.typicality
FROM assignments a JOIN photos p ON p.id = a.photo
LEFT JOIN categories c ON c.id = a.category LEFT JOIN looks k ON k.photo = a.photo
WHERE NOT a.is_confirmed AND (
    a.category IS NULL
    OR (c.state IN ('labeled', 'accepted') AND a.probability < {VERY_LIKELY}
        AND p.stage = (SELECT MAX(stage) FROM stages))
)
"""
"""Photos that are unsure, and those of the last stage that are not very likely of their known category."""


@dataclass(frozen=True)
class Look:
    """A group of photos that need a look."""

    id: int
    photo_ids: Sequence[int]
    gain: float  # photos of it expected to be wrong as they are
    alternatives: Sequence[tuple[int, float]]  # categories and their mean probability, the most probable first

    @property
    def n_photos(self) -> int:
        """How many photos."""
        return len(self.photo_ids)


def looks(catalog: Catalog) -> list[Look]:
    """The groups, what teaches most first; what is in no group comes last."""
    with catalog.snapshot() as db:
        members: dict[int, list[int]] = {}
        gains: dict[int, float] = {}
        for row in db.execute(f"SELECT photo, look, gain FROM ({TO_LOOK}) ORDER BY look, gain DESC, photo"):
            members.setdefault(row["look"], []).append(row["photo"])
            gains[row["look"]] = gains.get(row["look"], 0.0) + row["gain"]
        sums: dict[int, dict[int, float]] = {}
        live = {category.id for category in categories(catalog)}
        for row in db.execute(
            f"SELECT t.look, x.category, SUM(x.probability) AS total FROM ({TO_LOOK}) t "
            "JOIN alternatives x ON x.photo = t.photo GROUP BY t.look, x.category"
        ):
            into = _reached(catalog, row["category"], live)
            if into is not None:
                of_look = sums.setdefault(row["look"], {})
                of_look[into] = of_look.get(into, 0.0) + row["total"]
    ordered = sorted(members, key=lambda look: (look == OTHERS, look))
    return [Look(look, members[look], gains[look], _best(sums.get(look, {}), len(members[look]))) for look in ordered]


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
    live = {category.id for category in categories(catalog)}
    sums: dict[int, float] = {}
    for row in rows:
        into = _reached(catalog, row["category"], live)
        if into is not None:
            sums[into] = sums.get(into, 0.0) + row["probability"]
    return _best(sums, 1)


def with_photos(catalog: Catalog, alternatives: Iterable[tuple[int, float]], *, n_photos: int = 8) -> list[NearKnown]:
    """Categories with their most typical photos, to compare with."""
    chosen = list(alternatives)
    found = {category.id: category for category in categories(catalog)}
    shown = typical_photos(catalog, [category for category, _ in chosen], n_photos=n_photos)
    return [NearKnown(found[category], probability, shown[category]) for category, probability in chosen]


def _best(sums: dict[int, float], n_photos: int) -> list[tuple[int, float]]:
    best = sorted(sums, key=lambda category: (-sums[category], category))[:N_ALTERNATIVES]
    return [(category, sums[category] / n_photos) for category in best]


def _reached(catalog: Catalog, category_id: int, live: set[int]) -> int | None:
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
