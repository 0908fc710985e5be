"""Photos by name, file, date, folder, place, probability and stage, in any order."""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

from dataclasses import dataclass

from igcd.workspace.catalog import Catalog

MAX_FOUND = 20_000
ORDERS = {
    "uncertain": "a.is_confirmed, CASE WHEN a.category IS NULL THEN 0.0 ELSE a.probability END",
    "certain": "a.probability DESC",
    "newest": "s.taken IS NULL, s.taken DESC",
    "oldest": "s.taken IS NULL, s.taken",
    "file": "path",
    "place": "s.latitude IS NULL, s.latitude DESC, s.longitude",
    "stage": "p.stage DESC",
}
KINDS = {
    "labeled": "EXISTS (SELECT 1 FROM labels l WHERE l.photo = a.photo AND l.source = 'given')",
    "confirmed": "a.is_confirmed AND NOT EXISTS "
    "(SELECT 1 FROM labels l WHERE l.photo = a.photo AND l.source = 'given')",
    "guessed": "NOT a.is_confirmed AND a.category IS NOT NULL",
    "unsure": "a.category IS NULL",
}


@dataclass(frozen=True)
class Wish:
    """What to find; an empty value asks for nothing."""

    text: str = ""  # in the name of the category or the path of the file
    kind: str = ""  # a key of KINDS
    stage: int | None = None
    folder: str = ""  # beginning of the path
    since: str = ""  # of the day it was taken, like 2026-07-01
    until: str = ""
    min_probability: float = 0.0
    max_probability: float = 1.0
    order: str = "uncertain"


@dataclass(frozen=True)
class Found:
    """Photos in the order asked for."""

    n_photos: int
    photo_ids: list[int]


def find(catalog: Catalog, wish: Wish) -> Found:
    """The photos that a wish describes, at most `MAX_FOUND` of them."""
    conditions, values = ["1"], list[object]()
    for word in wish.text.split():
        pattern = f"%{_literal(word)}%"
        conditions.append("(c.name LIKE ? ESCAPE '\\' OR path LIKE ? ESCAPE '\\')")
        values += [pattern, pattern]
    if wish.kind:
        conditions.append(KINDS[wish.kind])
    if wish.stage is not None:
        conditions.append("p.stage = ?")
        values.append(wish.stage)
    if wish.folder:
        conditions.append("path LIKE ? ESCAPE '\\'")
        values.append(f"{_literal(wish.folder)}%")
    for sign, day in ((">=", wish.since), ("<=", wish.until)):
        if day:
            conditions.append(f"SUBSTR(s.taken, 1, {len(day)}) {sign} ?")
            values.append(day)
    if wish.min_probability > 0 or wish.max_probability < 1:
        conditions.append("NOT a.is_confirmed AND a.probability BETWEEN ? AND ?")
        values += [wish.min_probability, wish.max_probability]
    source = (
        "assignments a JOIN photos p ON p.id = a.photo LEFT JOIN categories c ON c.id = a.category "
        "LEFT JOIN shots s ON s.photo = a.photo "
        "JOIN (SELECT photo, MIN(path) AS path FROM photo_paths GROUP BY photo) f "
        f"ON f.photo = a.photo WHERE {' AND '.join(conditions)}"
    )
    with catalog.snapshot() as db:
        n_photos = db.execute(f"SELECT COUNT(*) FROM {source}", values).fetchone()[0]
        rows = db.execute(
            f"SELECT a.photo FROM {source} ORDER BY {ORDERS[wish.order]}, a.photo LIMIT {MAX_FOUND}", values
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


def _literal(text: str) -> str:
    """A text in which % and _ mean themselves."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
