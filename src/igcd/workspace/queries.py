"""What can be asked of a catalog. Reading only; each answer is one state of the catalog."""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from igcd.errors import IgcdError
from igcd.workspace.action import LIVE, Decision
from igcd.workspace.catalog import Catalog, current_revision, id_list


@dataclass(frozen=True)
class Category:
    """A category and its photos in figures."""

    id: int
    name: str | None
    parent: str | None
    state: str  # labeled, discovered, accepted, rejected or merged
    merged_into: int | None
    found_stage: int
    version: int  # to be handed back with a decision
    is_deferred: bool
    n_photos: int
    n_confirmed: int
    mean_probability: float | None  # of the photos nobody has confirmed
    helpfulness: float  # see `queue`
    cover: int | None  # photo id of the most typical photo

    @property
    def title(self) -> str:
        """The name, or what it is called before it has one."""
        return title_of(self.id, self.name)


@dataclass(frozen=True)
class Photo:
    """A photo and the category it is assigned to."""

    id: int
    path: str  # below its folder, to be shown
    stage: int
    width: int | None
    height: int | None
    category: int | None  # None: unsure
    probability: float
    typicality: float
    is_peak: bool
    is_confirmed: bool
    near_duplicate_of: int | None  # the first photo of its group


@dataclass(frozen=True)
class PhotoPage:
    """A part of a longer list of photos."""

    n_photos: int  # of the whole list
    offset: int
    photos: Sequence[Photo]


@dataclass(frozen=True)
class NearKnown:
    """A known category that is like a discovered one, and its most typical photos."""

    category: Category
    similarity: float
    photos: Sequence[Photo]


@dataclass(frozen=True)
class StageStatus:
    """A stage in figures."""

    stage: int
    state: str
    n_photos: int
    n_labeled: int  # came with a label
    n_confirmed: int  # others that a person has decided about
    n_guessed: int  # others that were assigned to a category
    n_unsure: int
    n_waiting: int  # not looked at by `discover` yet
    summary: str | None  # what the last discovery said


@dataclass(frozen=True)
class Status:
    """A workspace in figures."""

    revision: int
    n_photos: int
    n_files: int
    n_broken: int
    n_near_duplicates: int
    n_labels: int
    n_unsure: int
    n_known: int  # categories with labels
    n_to_review: int  # discovered ones that nobody has decided about
    n_accepted: int  # decided about, labels when the stage is accepted
    n_decisions: int
    stages: Sequence[StageStatus]


CATEGORIES = """
SELECT c.*, (SELECT photo FROM assignments t WHERE t.category = c.id
    ORDER BY t.is_peak DESC, t.typicality DESC, t.photo LIMIT 1) AS cover
FROM categories c WHERE {which} ORDER BY c.id
"""

FIGURES = """
SELECT category, is_confirmed, COUNT(*) AS n_photos, SUM(probability) AS probability
FROM assignments INDEXED BY figures_of_categories
WHERE category IN (SELECT c.id FROM categories c WHERE {which}) GROUP BY category, is_confirmed
"""

PHOTOS = """
SELECT p.id, (SELECT path FROM photo_paths pp WHERE pp.photo = p.id ORDER BY folder, path LIMIT 1) AS path,
    p.stage, p.width, p.height, p.near_duplicate_of, a.category, a.probability, a.typicality, a.is_peak, a.is_confirmed
FROM {source} a JOIN photos p ON p.id = a.photo
"""

TYPICAL_FIRST = "is_peak DESC, typicality DESC, photo"


def revision(catalog: Catalog) -> int:
    """A number that rises with every change: the same number, nothing new."""
    with catalog.snapshot() as db:
        return current_revision(db)


def queue(catalog: Catalog) -> list[Category]:
    """The discovered categories that nobody has decided about, the one that helps most first.

    Helpfulness is the sum of 2 - p over the photos of a category: a decision settles each of them once, and again as
    much as the prediction was likely to be wrong. Larger and less certain ones come first, those put off last.
    """
    waiting = categories(catalog, states=["discovered"])
    return sorted(waiting, key=lambda category: (category.is_deferred, -category.helpfulness, category.id))


def categories(catalog: Catalog, *, states: Sequence[str] = LIVE) -> list[Category]:
    """The categories in these states, in the order of their ids; discovered ones only while they hold photos."""
    with catalog.snapshot() as db:
        found = _categories(db, "c.state IN (SELECT value FROM json_each(?))", json.dumps(list(states)))
    return [category for category in found if category.state != "discovered" or category.n_photos]


def live_versions(catalog: Catalog) -> dict[int, int]:
    """The versions of the categories that `categories` gives by default, without counting their photos."""
    with catalog.snapshot() as db:
        rows = db.execute(
            "SELECT id, version FROM categories c WHERE state IN ('labeled', 'accepted') OR (state = 'discovered' "
            "AND EXISTS (SELECT 1 FROM assignments a WHERE a.category = c.id))"
        )
        return {row["id"]: row["version"] for row in rows}


def titles(catalog: Catalog) -> dict[int, str]:
    """What each category is called, also those that are no more."""
    with catalog.snapshot() as db:
        return {row["id"]: title_of(row["id"], row["name"]) for row in db.execute("SELECT id, name FROM categories")}


def title_of(category_id: int, name: str | None) -> str:
    """The name of a category, or what it is called before it has one.

    >>> title_of(7, None), title_of(7, "owl")
    ('new 7', 'owl')
    """
    return name or f"new {category_id}"


def category(catalog: Catalog, category_id: int) -> Category:
    """One category, also a rejected or merged one."""
    with catalog.snapshot() as db:
        found = _categories(db, "c.id = ?", category_id)
    if not found:
        raise IgcdError(f"there is no category {category_id} in the workspace {catalog.folder}")
    return found[0]


def photos_of(catalog: Catalog, category_id: int | None, *, offset: int = 0, limit: int = 200) -> PhotoPage:
    """Photos of a category, the most typical first and the outliers last; None: those that are unsure."""
    with catalog.snapshot() as db:
        n_photos = db.execute("SELECT COUNT(*) FROM assignments WHERE category IS ?", (category_id,)).fetchone()[0]
        return PhotoPage(n_photos, offset, _page(db, category_id, limit=limit, offset=offset))


def photo_ids_of(catalog: Catalog, category_id: int | None) -> list[int]:
    """The ids of all photos of a category in the order of `photos_of`: what a range selection needs."""
    with catalog.snapshot() as db:
        rows = db.execute(
            f"SELECT photo FROM assignments WHERE category IS ? ORDER BY {TYPICAL_FIRST}",
            (category_id,),
        )
        return [row["photo"] for row in rows]


def photos(catalog: Catalog, photo_ids: Sequence[int]) -> list[Photo]:
    """These photos, in this order; ids that are not assigned to anything yet are left out."""
    with catalog.snapshot() as db:
        rows = db.execute(
            PHOTOS.format(source="assignments") + "WHERE p.id IN (SELECT value FROM json_each(?))",
            (id_list(photo_ids),),
        ).fetchall()
    found = {row["id"]: _photo(row) for row in rows}
    return [found[photo_id] for photo_id in photo_ids if photo_id in found]


def nearest_known(catalog: Catalog, category_id: int, *, n_categories: int = 3, n_photos: int = 8) -> list[NearKnown]:
    """The known categories a discovered one is most like, with their most typical photos."""
    with catalog.snapshot() as db:
        near = db.execute(
            """
            WITH RECURSIVE reached AS (  -- a known category may have been merged into another since
                SELECT known AS id, similarity FROM nearest WHERE category = ?1
                UNION
                SELECT c.merged_into, r.similarity FROM reached r JOIN categories c ON c.id = r.id
                WHERE c.state = 'merged'
            )
            SELECT r.id, MAX(r.similarity) AS similarity FROM reached r JOIN categories c ON c.id = r.id
            WHERE c.state IN ('labeled', 'accepted') AND c.id <> ?1 GROUP BY r.id
            ORDER BY similarity DESC, r.id LIMIT ?2
            """,
            (category_id, n_categories),
        ).fetchall()
        ids = id_list(row["id"] for row in near)
        found = {each.id: each for each in _categories(db, "c.id IN (SELECT value FROM json_each(?))", ids)}
        shown = typical_photos(catalog, [row["id"] for row in near], n_photos=n_photos)
    return [NearKnown(found[row["id"]], row["similarity"], shown[row["id"]]) for row in near]


def typical_photos(catalog: Catalog, category_ids: Sequence[int], *, n_photos: int = 8) -> dict[int, list[Photo]]:
    """The most typical photos of each of these categories."""
    with catalog.snapshot() as db:
        # One page for each: a window over all of them would read every photo of the categories.
        return {category_id: _page(db, category_id, limit=n_photos) for category_id in category_ids}


def low_confidence(catalog: Catalog, *, offset: int = 0, limit: int = 200, max_probability: float = 1.0) -> PhotoPage:
    """Photos predicted to be of a known category that nobody has confirmed, the least certain first."""
    is_one = (
        "NOT is_confirmed AND probability <= ? "
        "AND category IN (SELECT id FROM categories WHERE state IN ('labeled', 'accepted'))"
    )
    # The page is cut out of the index alone; only its photos are looked up.
    ordered = f"SELECT * FROM assignments INDEXED BY unconfirmed WHERE {is_one} ORDER BY probability, photo"
    with catalog.snapshot() as db:
        n_photos = db.execute(
            f"SELECT COUNT(*) FROM assignments INDEXED BY assignments_by_category WHERE {is_one}", (max_probability,)
        ).fetchone()[0]
        rows = db.execute(
            PHOTOS.format(source=f"({ordered} LIMIT ? OFFSET ?)") + "ORDER BY a.probability, a.photo",
            (max_probability, limit, offset),
        ).fetchall()
    return PhotoPage(n_photos, offset, [_photo(row) for row in rows])


def status(catalog: Catalog) -> Status:
    """The workspace in figures."""
    with catalog.snapshot() as db:
        count = _counter(db)
        stages = [
            StageStatus(**dict(row))
            for row in db.execute(
                """
                SELECT s.stage, s.state, json_extract(s.summary, '$.sentence') AS summary, t.n_photos,
                    t.n_given AS n_labeled, t.n_confirmed - t.n_given_confirmed AS n_confirmed,
                    t.n_assigned - t.n_confirmed - t.n_unsure AS n_guessed, t.n_unsure,
                    t.n_photos - t.n_broken - t.n_assigned AS n_waiting  -- a broken photo has no assignment
                FROM stages s JOIN tallies t ON t.stage = s.stage ORDER BY s.stage
                """
            )
        ]
        n_photos, n_broken, n_near_duplicates = db.execute(
            "SELECT SUM(n_photos), SUM(n_broken), SUM(n_near_duplicates) FROM tallies"
        ).fetchone()
        return Status(
            revision=current_revision(db),
            n_photos=n_photos,
            n_files=count("photo_paths"),
            n_broken=n_broken,
            n_near_duplicates=n_near_duplicates,
            n_labels=count("labels"),
            n_unsure=count("assignments WHERE category IS NULL"),
            n_known=count("categories WHERE state = 'labeled'"),
            n_to_review=count(
                "categories c WHERE state = 'discovered' AND EXISTS (SELECT 1 FROM assignments WHERE category = c.id)"
            ),
            n_accepted=count("categories WHERE state = 'accepted'"),
            n_decisions=count("decisions"),
            stages=stages,
        )


def last_discovery(catalog: Catalog) -> dict[str, Any]:
    """When the last stage was discovered, how finely, and whether anything has changed since."""
    with catalog.snapshot() as db:
        row = db.execute("SELECT discovered, summary FROM stages ORDER BY stage DESC LIMIT 1").fetchone()
        summary = json.loads(row["summary"] or "{}")
        return {
            "time": row["discovered"],
            "granularity": setting(db, "granularity") or 0.0,
            "is_current": summary.get("revision") == current_revision(db),
        }


def broken_photos(catalog: Catalog) -> list[tuple[str, str]]:
    """Path and reason of every photo that cannot be used."""
    with catalog.snapshot() as db:
        rows = db.execute(
            "SELECT f.path AS folder, pp.path, p.broken FROM photos p JOIN photo_paths pp ON pp.photo = p.id "
            "JOIN folders f ON f.id = pp.folder WHERE p.broken IS NOT NULL ORDER BY f.path, pp.path"
        )
        return [(f"{row['folder']}/{row['path']}", row["broken"]) for row in rows]


def history(catalog: Catalog, *, limit: int = 50) -> list[tuple[Decision, bool]]:
    """The last decisions, the newest first, and whether each was undone."""
    with catalog.snapshot() as db:
        rows = db.execute(
            "SELECT id, time, author, kind, payload, undone_by FROM decisions ORDER BY id DESC LIMIT ?", (limit,)
        ).fetchall()
    return [
        (
            Decision(row["id"], row["time"], row["author"], row["kind"], json.loads(row["payload"])),
            row["undone_by"] is not None,
        )
        for row in rows
    ]


def setting(db: sqlite3.Connection, key: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A setting of the workspace."""
    row = db.execute("SELECT value FROM settings WHERE key = ?", (key,)).fetchone()
    return None if row is None else json.loads(row["value"])


def _page(db: sqlite3.Connection, category_id: int | None, *, limit: int, offset: int = 0) -> list[Photo]:
    """Photos of a category, the most typical first. The page is cut out of the index; only its photos are read."""
    page = f"(SELECT * FROM assignments WHERE category IS ? ORDER BY {TYPICAL_FIRST} LIMIT ? OFFSET ?)"
    rows = db.execute(
        PHOTOS.format(source=page) + "ORDER BY a.is_peak DESC, a.typicality DESC, a.photo", (category_id, limit, offset)
    )
    return [_photo(row) for row in rows]


def _counter(db: sqlite3.Connection) -> Any:  # noqa: ANN401 - a function
    def count(table: str) -> int:
        found: int = db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        return found

    return count


def _categories(db: sqlite3.Connection, which: str, value: str | int) -> list[Category]:
    """The categories c of which a condition with one value holds, in the order of their ids."""
    photos_of: dict[tuple[int, int], tuple[int, float]] = {  # how many, and the sum of their probabilities
        (row["category"], row["is_confirmed"]): (row["n_photos"], row["probability"])
        for row in db.execute(FIGURES.format(which=which), (value,))
    }
    found = []
    for row in db.execute(CATEGORIES.format(which=which), (value,)):
        n_confirmed, confirmed = photos_of.get((row["id"], 1), (0, 0.0))
        n_guessed, guessed = photos_of.get((row["id"], 0), (0, 0.0))
        n_photos = n_confirmed + n_guessed
        figures = {
            "n_photos": n_photos,
            "n_confirmed": n_confirmed,
            "mean_probability": guessed / n_guessed if n_guessed else None,
            "helpfulness": 2.0 * n_photos - confirmed - guessed,
        }
        found.append(Category(**{**dict(row), **figures, "is_deferred": bool(row["is_deferred"])}))
    return found


def _photo(row: sqlite3.Row) -> Photo:
    return Photo(**{**dict(row), "is_peak": bool(row["is_peak"]), "is_confirmed": bool(row["is_confirmed"])})
