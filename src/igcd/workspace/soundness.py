"""Whether a catalog is whole: flipped bits are found when it is opened, before anything is built on them."""

# ruff: noqa: S608 - SQL is put together from the names of this project's own tables

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from igcd.workspace.schema import APPLICATION_ID, MIGRATIONS, migrate, schema_version

MAX_PLAUSIBLE_VERSION = 1000

REFERENCES = (
    ("photo_paths", "photo", "photos"),
    ("photo_paths", "folder", "folders"),
    ("assignments", "photo", "photos"),
    ("assignments", "category", "categories"),
    ("labels", "photo", "photos"),
    ("labels", "category", "categories"),
    ("categories", "merged_into", "categories"),
    ("decisions", "undone_by", "decisions"),
)
"""Table and column whose values must be ids of another table. Other columns may outlive what they refer to: an undo
takes a category away, and what was noted of its likeness to others stays."""
ANY_INTEGER = ("mtime_ns",)
"""Columns with times of files, which may lie before 1970; all other whole numbers are ids, counts, sizes or flags."""
MAX_INTEGER = 2**53 - 1
"""Far above all that is counted; sums stay below what SQLite can add, and JSON in a browser holds it."""
JSON_COLUMNS = (("settings", "value"), ("stages", "summary"), ("decisions", "payload"), ("decisions", "before"))


def structural_fault(db: sqlite3.Connection) -> str | None:
    """What SQLite itself finds wrong: pages, cells, indexes, values that must not be NULL or break a rule."""
    found: str = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
    return None if found == "ok" else " ".join(found.replace("*** in database main ***", "").split())


def content_fault(db: sqlite3.Connection, version: int, *, migrations: Sequence[str] = MIGRATIONS) -> str | None:
    """What is wrong with the content of tables of this version: columns, types, numbers, JSON, references."""
    with closing(_reference(migrations[:version])) as reference:
        schema, columns_of = _schema(reference), _columns(reference)
    if not schema.items() <= _schema(db).items():
        return "tables or indexes other than they were made"
    for table, columns in columns_of.items():
        wrong = " OR ".join(
            f"typeof({name}) <> '{kind}'" if is_required else f"typeof({name}) NOT IN ('{kind}', 'null')"
            for name, kind, is_required in columns
        )
        if db.execute(f"SELECT 1 FROM {table} WHERE {wrong} LIMIT 1").fetchone():
            return f"values of a wrong type in {table}"
        bounds = [(name, *bound) for name, kind, _ in columns if (bound := _bounds(name, kind)) is not None]
        beyond = " OR ".join(f"{name} NOT BETWEEN {low} AND {high}" for name, low, high in bounds)
        if beyond and db.execute(f"SELECT 1 FROM {table} WHERE {beyond} LIMIT 1").fetchone():
            return f"numbers out of range in {table}"
    for table, column in JSON_COLUMNS:
        if db.execute(f"SELECT 1 FROM {table} WHERE {column} IS NOT NULL AND NOT json_valid({column})").fetchone():
            return f"no JSON in {table}.{column}"
    for table, column, home in REFERENCES:
        lost = f"SELECT 1 FROM {table} WHERE {column} NOT IN (SELECT id FROM {home}) LIMIT 1"
        if db.execute(lost).fetchone():
            return f"{table}.{column} refers to rows that do not exist"
    revision = db.execute("SELECT value FROM settings WHERE key = 'revision'").fetchone()
    if revision is None or not re.fullmatch("[0-9]{1,15}", revision["value"]):
        return "no revision"
    if not db.execute("SELECT 1 FROM stages").fetchone():
        return "no stage"
    return None


def _bounds(column: str, kind: str) -> tuple[float, float] | None:
    """The least and the largest number that a column can hold; None where any will do."""
    if kind == "integer" and column not in ANY_INTEGER:
        return 0, 1 if column.startswith("is_") else MAX_INTEGER
    if kind == "real":
        return (0, 1.001) if column == "probability" else (-1e300, 1e300)
    return None


def looks_like_catalog(db: sqlite3.Connection) -> bool:
    """Whether the tables of the first version are there, whatever the version says."""
    with closing(_reference(MIGRATIONS[:1])) as reference:
        return _schema(reference).keys() <= _schema(db).keys()


def has_plausible_header(db: sqlite3.Connection) -> bool:
    """Whether the numbers that mark the file can be those of a catalog, of this version or a newer one."""
    application: int = db.execute("PRAGMA application_id").fetchone()[0]
    return application == APPLICATION_ID and 0 < schema_version(db) <= MAX_PLAUSIBLE_VERSION


def _reference(migrations: Sequence[str]) -> sqlite3.Connection:
    """An empty catalog in memory, as these migrations make it."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db, migrations=migrations)
    return db


def _schema(db: sqlite3.Connection) -> dict[str, str]:
    """The SQL of each table and index, without comments and needless spaces, which mean nothing."""
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    return {name: " ".join(re.sub(r"--[^\n]*", "", sql).split()) for name, sql in rows}


def _columns(db: sqlite3.Connection) -> dict[str, list[tuple[str, str, bool]]]:
    """Name, type and whether there must be a value of each column, by table."""
    tables = [
        row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    ]
    return {
        table: [
            (name, kind.lower(), bool(is_required or is_key))
            for _, name, kind, is_required, _, is_key in db.execute(f"PRAGMA table_info({table})")
        ]
        for table in tables
    }
