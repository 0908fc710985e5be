"""Photos worth a second look: labels in doubt, near-duplicates, blurred, dark, and disagreements of people."""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from igcd.errors import IgcdError
from igcd.workspace.catalog import Catalog

GALLERIES = ("mistakes", "duplicates", "blurred", "dark", "disagreements")
MAX_PHOTOS = 2_000
DARK = 0.2
"""Photos less bright than this on average, from 0 to 1, are called dark."""
BLURRED = 0.2
"""Photos with less than this share of the median sharpness are called blurred."""


@dataclass(frozen=True)
class Suggestion:
    """What a photo may be instead."""

    category: int
    probability: float | None = None  # that the category it is in is right
    other_probability: float | None = None
    opinions: tuple[str, ...] = ()  # who says what, where people disagree


@dataclass(frozen=True)
class Gallery:
    """Photos, the most doubtful first."""

    photo_ids: list[int]
    suggestions: Mapping[int, Suggestion] = field(default_factory=dict)


def gallery(catalog: Catalog, kind: str) -> Gallery:
    """One of `GALLERIES`."""
    if kind not in GALLERIES:
        raise IgcdError(f"there is no gallery {kind!r}; choose one of {', '.join(GALLERIES)}")
    if kind == "mistakes":
        return _mistakes(catalog)
    if kind == "disagreements":
        return _disagreements(catalog)
    queries = {
        "duplicates": "SELECT p.id FROM photos p JOIN assignments a ON a.photo = p.id WHERE p.near_duplicate_of IS NOT "
        "NULL OR p.id IN (SELECT near_duplicate_of FROM photos) ORDER BY COALESCE(p.near_duplicate_of, p.id), p.id",
        "dark": f"SELECT q.photo AS id FROM qualities q JOIN assignments a ON a.photo = q.photo "
        f"WHERE q.brightness < {DARK} ORDER BY q.brightness, q.photo",
        "blurred": f"SELECT q.photo AS id FROM qualities q JOIN assignments a ON a.photo = q.photo "
        f"WHERE q.sharpness < {BLURRED} * (SELECT sharpness FROM qualities ORDER BY sharpness "
        f"LIMIT 1 OFFSET (SELECT COUNT(*) / 2 FROM qualities)) ORDER BY q.sharpness, q.photo",
    }
    with catalog.snapshot() as db:
        return Gallery([row["id"] for row in db.execute(f"{queries[kind]} LIMIT {MAX_PHOTOS}")])


def n_in_galleries(catalog: Catalog) -> dict[str, int]:
    """How many photos each holds."""
    with catalog.snapshot():
        return {kind: len(gallery(catalog, kind).photo_ids) for kind in GALLERIES}


def _mistakes(catalog: Catalog) -> Gallery:
    """Given labels more likely wrong than right that nobody has looked at since, the most doubtful first."""
    with catalog.snapshot() as db:
        rows = db.execute(
            """
            SELECT d.photo, d.other, d.probability, d.other_probability FROM doubts d
            JOIN labels l ON l.photo = d.photo AND l.category = d.category AND l.source = 'given'
            JOIN categories c ON c.id = d.other AND c.state IN ('labeled', 'accepted')
            ORDER BY d.probability, d.photo LIMIT ?
            """,
            (MAX_PHOTOS,),
        ).fetchall()
    suggestions = {row["photo"]: Suggestion(row["other"], row["probability"], row["other_probability"]) for row in rows}
    return Gallery(list(suggestions), suggestions)


def _disagreements(catalog: Catalog) -> Gallery:
    """Photos that one person has said are of a category, and another person has moved to another one since."""
    with catalog.snapshot() as db:
        rows = db.execute(
            "SELECT id, author, kind, payload, before FROM decisions WHERE undone_by IS NULL "
            "AND kind IN ('name', 'accept', 'merge', 'split', 'move') ORDER BY id"
        ).fetchall()
        title_of = {
            row["id"]: row["name"] or f"new {row['id']}" for row in db.execute("SELECT id, name FROM categories")
        }
    said: dict[int, tuple[str, int]] = {}
    suggestions: dict[int, Suggestion] = {}
    for row in rows:
        payload, before = json.loads(row["payload"]), json.loads(row["before"])
        said_now = {"split": "new", "move": "to", "merge": "into"}.get(row["kind"], "category")
        for photo, _ in before["assignments"]:
            author, category = said.get(photo, (row["author"], payload[said_now]))
            suggestions.pop(photo, None)
            if author != row["author"] and category != payload[said_now]:
                sides = ((author, category), (row["author"], payload[said_now]))
                opinions = tuple(f"{who}: {title_of.get(what, '?')}" for who, what in sides)
                suggestions[photo] = Suggestion(category, opinions=opinions)
            said[photo] = (row["author"], payload[said_now])
    photos = sorted(suggestions)[:MAX_PHOTOS]
    return Gallery(photos, {photo: suggestions[photo] for photo in photos})
