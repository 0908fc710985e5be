"""The tables of a catalog, and how a catalog of an older version becomes one of this version."""

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

-- Given labels that the other labels speak against, as the last discovery saw them.
CREATE TABLE doubts (
    photo INTEGER PRIMARY KEY REFERENCES photos,
    category INTEGER NOT NULL,      -- the label
    probability REAL NOT NULL,      -- of the label, without this photo
    other INTEGER NOT NULL,         -- the category that is more probable
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

MIGRATIONS: tuple[str, ...] = (VERSION_1, VERSION_2, VERSION_3)
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
