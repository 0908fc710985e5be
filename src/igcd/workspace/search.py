"""Photos by name, file, date, folder, place, probability and stage, in any order."""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

import re
import sqlite3
from dataclasses import dataclass

import numpy as np

from igcd.errors import IgcdError
from igcd.types import FloatArray
from igcd.workspace.catalog import Catalog, id_list

MAX_FOUND = 20_000
EARTH_KM = 6371.0
KM_PER_DEGREE = 111.0
"""Of latitude, rounded down."""
MAX_PLACES = 40

SHOTS = "LEFT JOIN shots s ON s.photo = a.photo"
FILES = "JOIN (SELECT photo, MIN(path) AS path FROM photo_paths GROUP BY photo) f ON f.photo = a.photo"
STAGES = "JOIN photos p ON p.id = a.photo"
NAMES = "LEFT JOIN categories c ON c.id = a.category"
ORDERS = {
    "uncertain": ("", "a.is_confirmed, CASE WHEN a.category IS NULL THEN 0.0 ELSE a.probability END"),
    "certain": ("", "a.probability DESC"),
    "newest": (SHOTS, "s.taken IS NULL, s.taken DESC"),
    "oldest": (SHOTS, "s.taken IS NULL, s.taken"),
    "file": (FILES, "f.path"),
    "place": (SHOTS, "s.latitude IS NULL, s.latitude DESC, s.longitude"),
    "stage": (STAGES, "p.stage DESC"),
}
"""What each order has to be joined with, and by what it sorts."""
KINDS = {
    "labeled": "EXISTS (SELECT 1 FROM labels l WHERE l.photo = a.photo AND l.source = 'given')",
    "confirmed": "a.is_confirmed AND NOT EXISTS "
    "(SELECT 1 FROM labels l WHERE l.photo = a.photo AND l.source = 'given')",
    "guessed": "NOT a.is_confirmed AND a.category IS NOT NULL",
    "unsure": "a.category IS NULL",
}
WHERE_TAKEN = {"known": "s.latitude IS NOT NULL", "unknown": "s.latitude IS NULL"}


@dataclass(frozen=True)
class Wish:
    """What to find; an empty value asks for nothing."""

    text: str = ""  # in the name of the category or the path of the file
    kind: str = ""  # a key of KINDS
    stage: int | None = None
    folder: str = ""  # beginning of the path
    since: str = ""  # of the day it was taken, like 2026-07-01
    until: str = ""
    place: str = ""  # a key of WHERE_TAKEN
    near: str = ""  # latitude and longitude, like "48.1, 11.6"
    within: float = 100.0  # kilometers around `near`
    min_probability: float = 0.0
    max_probability: float = 1.0
    order: str = "uncertain"


@dataclass(frozen=True)
class Found:
    """Photos in the order asked for."""

    n_photos: int
    photo_ids: list[int]


@dataclass(frozen=True)
class Place:
    """Photos that were taken within about a degree of each other."""

    latitude: float  # their mean, in degrees
    longitude: float
    n_photos: int


def find(catalog: Catalog, wish: Wish) -> Found:
    """The photos that a wish describes, at most `MAX_FOUND` of them. Only tables that are asked about are read."""
    joins, conditions, values = set[str](), ["1"], list[object]()

    def require(condition: str, *parameters: object, join: str = "") -> None:
        joins.add(join)
        conditions.append(condition)
        values.extend(parameters)

    with catalog.snapshot() as db:
        for word in wish.text.split():
            pattern = f"%{_literal(word)}%"
            in_path = "a.photo IN (SELECT photo FROM photo_paths WHERE path LIKE ? ESCAPE '\\')"
            require(f"(c.name LIKE ? ESCAPE '\\' OR {in_path})", pattern, pattern, join=NAMES)
        if wish.kind:
            require(KINDS[wish.kind])
        if wish.stage is not None:
            require("p.stage = ?", wish.stage, join=STAGES)
        if wish.folder:
            starts_so = "a.photo IN (SELECT photo FROM photo_paths WHERE path LIKE ? ESCAPE '\\')"
            require(starts_so, f"{_literal(wish.folder)}%")
        for sign, day in ((">=", wish.since), ("<=", wish.until)):
            if day:
                require(f"SUBSTR(s.taken, 1, {len(day)}) {sign} ?", day, join=SHOTS)
        if wish.place:
            require(WHERE_TAKEN[wish.place], join=SHOTS)
        if wish.near:
            near = id_list(_photos_near(db, *parse_place(wish.near), kilometers=wish.within))
            require("a.photo IN (SELECT value FROM json_each(?))", near)
        if wish.min_probability > 0 or wish.max_probability < 1:
            require("NOT a.is_confirmed AND a.probability BETWEEN ? AND ?", wish.min_probability, wish.max_probability)
        where = " AND ".join(conditions)
        n_photos = db.execute(
            f"SELECT COUNT(*) FROM assignments a {' '.join(sorted(joins))} WHERE {where}", values
        ).fetchone()[0]
        order_join, order = ORDERS[wish.order]
        rows = db.execute(
            f"SELECT a.photo FROM assignments a {' '.join(sorted({*joins, order_join}))} WHERE {where} "
            f"ORDER BY {order}, a.photo LIMIT {MAX_FOUND}",
            values,
        )
        return Found(n_photos, [row["photo"] for row in rows])


def folders_of(catalog: Catalog) -> list[str]:
    """The folders that photos lie in, below those that were added."""
    with catalog.snapshot() as db:
        paths = [
            row["path"]
            for row in db.execute("SELECT DISTINCT RTRIM(path, REPLACE(path, '/', '')) AS path FROM photo_paths")
        ]
    return sorted(path for path in paths if path)


def places_of(catalog: Catalog) -> list[Place]:
    """Where photos were taken, by cells of one degree, the one with most photos first."""
    with catalog.snapshot() as db:
        rows = db.execute(
            "SELECT AVG(latitude) AS latitude, AVG(longitude) AS longitude, COUNT(*) AS n_photos FROM shots "
            "WHERE latitude IS NOT NULL GROUP BY ROUND(latitude), ROUND(longitude) "
            f"ORDER BY n_photos DESC, latitude DESC, longitude LIMIT {MAX_PLACES}"
        )
        return [Place(**dict(row)) for row in rows]


def parse_place(text: str) -> tuple[float, float]:
    """Latitude and longitude in degrees, as people and maps write them.

    >>> parse_place("48.1, 11.6"), parse_place("-33.9 18.4")
    ((48.1, 11.6), (-33.9, 18.4))
    """
    found = re.fullmatch(r"\s*(-?\d{1,3}(?:\.\d+)?)°?\s*[,;\s]\s*(-?\d{1,3}(?:\.\d+)?)°?\s*", text)
    if found is None or abs(float(found[1])) > 90 or abs(float(found[2])) > 180:
        raise IgcdError(f"a place is a latitude and a longitude in degrees, got {text!r}; write it like 48.1, 11.6")
    return float(found[1]), float(found[2])


def great_circle_km(latitude: float, longitude: float, latitudes: FloatArray, longitudes: FloatArray) -> FloatArray:
    """Kilometers from a place to others on a round earth, all in degrees. (n,), (n,) -> (n,).

    The haversine formula: 2 R asin sqrt(sin²(Δφ/2) + cos φ cos φ' sin²(Δλ/2)).
    """
    here, there = np.radians(latitude), np.radians(latitudes)
    across = np.sin(np.radians(longitudes - longitude) / 2) ** 2
    chord = np.sin((there - here) / 2) ** 2 + np.cos(here) * np.cos(there) * across
    return np.asarray(2 * EARTH_KM * np.arcsin(np.sqrt(np.clip(chord, 0, 1))))


def _photos_near(db: sqlite3.Connection, latitude: float, longitude: float, *, kilometers: float) -> list[int]:
    """Photos that were taken within so many kilometers of a place."""
    degrees = kilometers / KM_PER_DEGREE
    cursor = db.cursor()
    cursor.row_factory = None  # plain tuples
    shots = np.array(
        cursor.execute(
            "SELECT photo, latitude, longitude FROM shots WHERE latitude BETWEEN ? AND ?",
            (latitude - degrees, latitude + degrees),
        ).fetchall(),
        dtype=np.float64,
    ).reshape(-1, 3)
    is_near = great_circle_km(latitude, longitude, shots[:, 1], shots[:, 2]) <= kilometers
    return [int(photo) for photo in shots[is_near, 0]]


def _literal(text: str) -> str:
    """A text in which % and _ mean themselves."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
