"""The tables of a catalog, and how a catalog of an older version becomes one of this version."""

# ruff: noqa: S608 - SQL is put together from texts of this module

import sqlite3
from collections.abc import Sequence

from igcd.errors import IgcdError

APPLICATION_ID = 0x69676364
"""Marks the SQLite file as ours: "igcd" in ASCII."""

VERSION_1 = """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);  -- JSON
INSERT INTO settings VALUES ('revision', '0');

CREATE TABLE folders (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);

CREATE TABLE stages (
    stage INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('open', 'discovered', 'accepted')),
    opened TEXT NOT NULL,
    discovered TEXT,
    accepted TEXT,
    encoder TEXT,            -- key of the features the assignments were made with
    adapted TEXT,            -- file of the adapted tail, relative to the workspace; NULL: the encoder as it comes
    summary TEXT             -- JSON of what the last discovery said
);

-- One row for each content: a photo that lies at two places, or is added twice, is one photo.
CREATE TABLE photos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    content_hash TEXT NOT NULL UNIQUE,
    n_bytes INTEGER NOT NULL,
    width INTEGER,
    height INTEGER,
    stage INTEGER NOT NULL REFERENCES stages,
    near_duplicate_of INTEGER REFERENCES photos,  -- the first photo of its group; NULL where it is that, or alone
    picture_hash BLOB,
    broken TEXT              -- why it cannot be used
);
CREATE INDEX photos_by_stage ON photos (stage);
CREATE INDEX photos_by_group ON photos (near_duplicate_of) WHERE near_duplicate_of IS NOT NULL;

CREATE TABLE photo_paths (
    folder INTEGER NOT NULL REFERENCES folders,
    path TEXT NOT NULL,      -- below the folder, with /
    photo INTEGER NOT NULL REFERENCES photos,
    n_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    PRIMARY KEY (folder, path)
) WITHOUT ROWID;
CREATE INDEX paths_by_photo ON photo_paths (photo);

CREATE TABLE features (
    encoder TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    feature BLOB NOT NULL,   -- float16, little endian, length 1
    UNIQUE (encoder, content_hash)
);

-- Ids are permanent: AUTOINCREMENT never gives one again.
CREATE TABLE categories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT,               -- all of it, like "Parus/Parus major"
    parent TEXT,             -- what stands before the last /
    state TEXT NOT NULL CHECK (state IN ('labeled', 'discovered', 'accepted', 'rejected', 'merged')),
    merged_into INTEGER REFERENCES categories,
    found_stage INTEGER NOT NULL REFERENCES stages,
    is_deferred INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL
);
CREATE UNIQUE INDEX live_names ON categories (name)
    WHERE name IS NOT NULL AND state IN ('labeled', 'discovered', 'accepted');

-- The category a photo is assigned to. No row: not looked at yet; category NULL: unsure.
CREATE TABLE assignments (
    photo INTEGER PRIMARY KEY REFERENCES photos,
    stage INTEGER NOT NULL REFERENCES stages,
    category INTEGER REFERENCES categories,
    probability REAL NOT NULL,
    typicality REAL NOT NULL,
    is_peak INTEGER NOT NULL DEFAULT 0,
    is_confirmed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX assignments_by_category
    ON assignments (category, is_peak DESC, typicality DESC, photo, is_confirmed, probability);

-- What a person says a photo is, for what follows to build on.
CREATE TABLE labels (
    photo INTEGER PRIMARY KEY REFERENCES photos,
    category INTEGER NOT NULL REFERENCES categories,
    stage INTEGER NOT NULL REFERENCES stages,
    source TEXT NOT NULL CHECK (source IN ('given', 'confirmed'))
);
CREATE INDEX labels_by_category ON labels (category);

-- The known categories a discovered one is most like.
CREATE TABLE nearest (
    category INTEGER NOT NULL REFERENCES categories,
    known INTEGER NOT NULL REFERENCES categories,
    similarity REAL NOT NULL,
    PRIMARY KEY (category, known)
) WITHOUT ROWID;

-- Where photos stand on the map of a stage.
CREATE TABLE places (
    stage INTEGER NOT NULL REFERENCES stages,
    photo INTEGER NOT NULL REFERENCES photos,
    x REAL NOT NULL,
    y REAL NOT NULL,
    PRIMARY KEY (stage, photo)
) WITHOUT ROWID;

-- The replay buffer R after each accepted stage; position 0 is the most important. Earlier versions also wrote S.
CREATE TABLE kept (
    stage INTEGER NOT NULL REFERENCES stages,
    role TEXT NOT NULL CHECK (role IN ('support', 'replay')),
    category INTEGER NOT NULL REFERENCES categories,
    position INTEGER NOT NULL,
    photo INTEGER NOT NULL REFERENCES photos,
    PRIMARY KEY (stage, role, category, position)
) WITHOUT ROWID;

CREATE TABLE decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    author TEXT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,   -- JSON: what was decided
    before TEXT NOT NULL,    -- JSON: the rows it changed, as they were
    undone_by INTEGER REFERENCES decisions
);
CREATE TABLE decision_categories (
    decision INTEGER NOT NULL REFERENCES decisions,
    category INTEGER NOT NULL,
    PRIMARY KEY (decision, category)
) WITHOUT ROWID;
CREATE INDEX decisions_by_category ON decision_categories (category, decision);
"""

VERSION_2 = """
-- The most probable categories of a photo nobody has confirmed, place 0 first.
CREATE TABLE alternatives (
    photo INTEGER NOT NULL REFERENCES photos,
    place INTEGER NOT NULL,
    category INTEGER NOT NULL,
    probability REAL NOT NULL,
    PRIMARY KEY (photo, place)
) WITHOUT ROWID;

-- Photos that need a look, in groups that are alike; groups are numbered by what teaches most.
CREATE TABLE looks (photo INTEGER PRIMARY KEY REFERENCES photos, look INTEGER NOT NULL);
CREATE INDEX looks_by_group ON looks (look);

-- Given labels that are more likely wrong than right, by all the other labels, as the last discovery saw them.
CREATE TABLE doubts (
    photo INTEGER PRIMARY KEY REFERENCES photos,
    category INTEGER NOT NULL,      -- the label
    probability REAL NOT NULL,      -- that the label is right
    other INTEGER NOT NULL,         -- the most probable other category
    other_probability REAL NOT NULL
);

-- How a photo looks, measured when it is embedded: mean brightness and sharpness of its edges.
CREATE TABLE qualities (photo INTEGER PRIMARY KEY REFERENCES photos, brightness REAL NOT NULL, sharpness REAL NOT NULL);

-- When and where a photo was taken, from its EXIF data or a table.
CREATE TABLE shots (photo INTEGER PRIMARY KEY REFERENCES photos, taken TEXT, latitude REAL, longitude REAL);
"""

VERSION_3 = """
-- With a million photos, what is asked most often must not read the whole table.
CREATE INDEX broken_photos ON photos (stage) WHERE broken IS NOT NULL;
CREATE INDEX unconfirmed ON assignments (probability, photo, category) WHERE NOT is_confirmed;
"""

_TALLIED = """
-- What is counted of a photo, each 0 or 1.
CREATE VIEW tallied AS
SELECT p.id AS photo, p.stage, 1 AS n_photos, p.broken IS NOT NULL AS n_broken,
    p.near_duplicate_of IS NOT NULL AS n_near_duplicates, a.photo IS NOT NULL AS n_assigned,
    COALESCE(a.is_confirmed, 0) AS n_confirmed,
    a.photo IS NOT NULL AND a.category IS NULL AND NOT a.is_confirmed AS n_unsure,
    l.photo IS NOT NULL AS n_given, l.photo IS NOT NULL AND COALESCE(a.is_confirmed, 0) AS n_given_confirmed
FROM photos p LEFT JOIN assignments a ON a.photo = p.id LEFT JOIN labels l ON l.photo = p.id AND l.source = 'given';

-- Its sums by stage, kept by triggers: with a million photos, counting them takes seconds.
CREATE TABLE tallies (
    stage INTEGER PRIMARY KEY,
    n_photos INTEGER NOT NULL DEFAULT 0,
    n_broken INTEGER NOT NULL DEFAULT 0,
    n_near_duplicates INTEGER NOT NULL DEFAULT 0,
    n_assigned INTEGER NOT NULL DEFAULT 0,
    n_confirmed INTEGER NOT NULL DEFAULT 0,
    n_unsure INTEGER NOT NULL DEFAULT 0,
    n_given INTEGER NOT NULL DEFAULT 0,
    n_given_confirmed INTEGER NOT NULL DEFAULT 0
);
INSERT INTO tallies (stage) SELECT stage FROM stages;
UPDATE tallies SET n_photos = t.n_photos, n_broken = t.n_broken, n_near_duplicates = t.n_near_duplicates,
    n_assigned = t.n_assigned, n_confirmed = t.n_confirmed, n_unsure = t.n_unsure, n_given = t.n_given,
    n_given_confirmed = t.n_given_confirmed
FROM (SELECT stage, SUM(n_photos) AS n_photos, SUM(n_broken) AS n_broken, SUM(n_near_duplicates) AS n_near_duplicates,
    SUM(n_assigned) AS n_assigned, SUM(n_confirmed) AS n_confirmed, SUM(n_unsure) AS n_unsure, SUM(n_given) AS n_given,
    SUM(n_given_confirmed) AS n_given_confirmed FROM tallied GROUP BY stage) t WHERE t.stage = tallies.stage;
CREATE TRIGGER tally_new_stage AFTER INSERT ON stages BEGIN INSERT INTO tallies (stage) VALUES (NEW.stage); END;
CREATE TRIGGER tally_old_stage AFTER DELETE ON stages BEGIN DELETE FROM tallies WHERE stage = OLD.stage; END;
"""


def _tally_triggers(table: str, key: str, changing: str, columns: str) -> str:
    """Triggers that take what is counted of a photo off its stage before a row changes, and add it again after.

    `columns` are those that change with the table. A row that is inserted had none of them before: an insert that turns
    into an update fires the triggers of both, and only those after an insert are spared.
    """

    def add(sign: str, row: str) -> str:
        sums = ", ".join(f"{name} = tallies.{name} {sign} t.{name}" for name in columns.split())
        return f"UPDATE tallies SET {sums} FROM tallied t WHERE t.photo = {row}.{key} AND t.stage = tallies.stage;"

    return f"""
CREATE TRIGGER tally_insert_{table} AFTER INSERT ON {table} BEGIN {add("+", "NEW")} END;
CREATE TRIGGER tally_delete_{table} BEFORE DELETE ON {table} BEGIN {add("-", "OLD")} END;
CREATE TRIGGER tally_before_{table} BEFORE UPDATE OF {changing} ON {table} BEGIN {add("-", "OLD")} END;
CREATE TRIGGER tally_after_{table} AFTER UPDATE OF {changing} ON {table} BEGIN {add("+", "NEW")} END;
"""


_OF_LABEL = "n_given n_given_confirmed"
_OF_ASSIGNMENT = "n_assigned n_confirmed n_unsure n_given_confirmed"
_OF_PHOTO = "n_photos n_broken n_near_duplicates n_assigned n_confirmed n_unsure n_given n_given_confirmed"

VERSION_4 = (
    _TALLIED
    + _tally_triggers("photos", "id", "stage, broken, near_duplicate_of", _OF_PHOTO)
    + _tally_triggers("assignments", "photo", "category, is_confirmed", _OF_ASSIGNMENT)
    + _tally_triggers("labels", "photo", "source", _OF_LABEL)
)

VERSION_5 = """
-- Figures of categories are sums along this index, which holds all that they need and in their order.
CREATE INDEX figures_of_categories ON assignments (category, is_confirmed, probability);
"""

MIGRATIONS: tuple[str, ...] = (VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5)
"""Entry v - 1 leads from version v - 1 to version v. A released entry is never edited: a change is a new entry."""


def schema_version(db: sqlite3.Connection) -> int:
    """The version of the tables; 0 where there are none."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def check_version(db: sqlite3.Connection, *, migrations: Sequence[str] = MIGRATIONS) -> int:
    """The version of a catalog that this program can read; raises where it is newer or no catalog at all."""
    version = schema_version(db)
    application: int = db.execute("PRAGMA application_id").fetchone()[0]
    if version and application != APPLICATION_ID:
        raise IgcdError("catalog.sqlite is a database of another program; give the folder of an igcd workspace")
    if version > len(migrations):
        raise IgcdError(
            f"this workspace has version {version}, this igcd reads up to version {len(migrations)}; update igcd, "
            "nothing was changed"
        )
    return version


def migrate(db: sqlite3.Connection, *, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Brings the tables to the newest version, step by step. To be called inside a transaction: all of it or nothing.

    The statements run one by one because `executescript` would end the transaction first.
    """
    for version in range(check_version(db, migrations=migrations), len(migrations)):
        for statement in _statements(migrations[version]):
            try:
                db.execute(statement)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # such as a full disk
                    raise
                raise IgcdError(
                    f"the tables of a catalog must be those of its version, {version}, but {error}; it is damaged, "
                    "use a copy of it"
                ) from None
        db.execute(f"PRAGMA user_version = {version + 1}")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _statements(script: str) -> list[str]:
    """The statements of a script: SQLite itself says where each is complete."""
    statements, pending = [], ""
    for part in script.split(";")[:-1]:
        pending += f"{part};"
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    return statements
