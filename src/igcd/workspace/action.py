"""A decision in the making: what it changes is kept as it was, and it is noted down with the versions it leads to."""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from igcd.errors import IgcdError
from igcd.workspace.catalog import ConflictError, id_list, next_revision, now
from igcd.workspace.names import CategoryName

LIVE = ("labeled", "discovered", "accepted")
"""States of categories that photos can belong to."""
KEY_OF = {"categories": "id", "assignments": "photo", "labels": "photo"}
"""The tables whose rows decisions change, and their keys."""


@dataclass(frozen=True)
class Decision:
    """A decision as it was noted down."""

    id: int
    time: str
    author: str
    kind: str  # name, accept, merge, split, reject, unsure, move, close or undo
    payload: Mapping[str, Any]
    versions: Mapping[int, int] = field(default_factory=dict)  # of the categories it touched, as they are now


class Action:
    """A decision in the making: whatever it is going to change is kept first as it was."""

    def __init__(self, db: sqlite3.Connection, kind: str, author: str, seen: Mapping[int, int] | None) -> None:
        self.db = db
        self.kind, self.author, self.seen = kind, author, seen
        self._before: dict[str, dict[int, dict[str, Any] | None]] = {table: {} for table in KEY_OF}

    def touch(self, category_id: int, *, must_be_live: bool = True) -> dict[str, Any]:
        """The category as it is; it must exist, be alive and have the version that was seen."""
        self._keep("categories", [category_id])
        category = self._before["categories"][category_id]
        if not must_be_live:
            return category or {}
        if category is None:
            raise IgcdError(f"there is no category {category_id}; `igcd status` lists them")
        if self.seen is not None and self.seen.get(category_id) != category["version"]:
            raise ConflictError(
                f"somebody else changed category {category_id} meanwhile: reload it and decide again; nothing was done"
            )
        if category["state"] not in LIVE:
            fate = "was rejected" if category["state"] == "rejected" else f"was merged into {category['merged_into']}"
            raise ConflictError(f"category {category_id} {fate}: reload the list and decide again; nothing was done")
        return category

    def note_photos(self, photo_ids: Sequence[int]) -> None:
        """These photos are going to change."""
        self._keep("assignments", photo_ids)
        self._keep("labels", photo_ids)

    def create(self, new_name: CategoryName | None, *, stage: int) -> int:
        """A new category, with a name accepted, without one discovered."""
        cursor = self.db.execute(
            "INSERT INTO categories (name, parent, state, found_stage, version) VALUES (?, ?, ?, ?, 0)",
            (
                new_name and new_name.full,
                new_name and new_name.parent,
                "discovered" if new_name is None else "accepted",
                stage,
            ),
        )
        category_id = int(cursor.lastrowid or 0)
        self._before["categories"][category_id] = None
        return category_id

    def note(self, payload: Mapping[str, Any]) -> Decision:
        """Writes the decision down and gives the touched categories a new version."""
        category_ids, revision, time = list(self._before["categories"]), next_revision(self.db), now()
        self.db.execute(
            "UPDATE categories SET version = ? WHERE id IN (SELECT value FROM json_each(?))",
            (revision, id_list(category_ids)),
        )
        before = {table: list(rows.items()) for table, rows in self._before.items()}
        cursor = self.db.execute(
            "INSERT INTO decisions (time, author, kind, payload, before) VALUES (?, ?, ?, ?, ?)",
            (time, self.author, self.kind, json.dumps(payload), json.dumps(before)),
        )
        decision_id = int(cursor.lastrowid or 0)
        self.db.executemany(
            "INSERT INTO decision_categories VALUES (?, ?)", [(decision_id, category) for category in category_ids]
        )
        versions = dict.fromkeys(category_ids, revision)
        return Decision(decision_id, time, self.author, self.kind, payload, versions)

    def _keep(self, table: str, keys: Sequence[int]) -> None:
        key = KEY_OF[table]
        new = [value for value in keys if value not in self._before[table]]
        self._before[table] |= dict.fromkeys(new)
        query = f"SELECT * FROM {table} WHERE {key} IN (SELECT value FROM json_each(?))"
        for row in self.db.execute(query, (id_list(new),)):
            self._before[table][row[key]] = dict(row)


def liken(db: sqlite3.Connection, category_id: int, source: int) -> None:
    """What photos were taken from is like the same known categories as what was made of them."""
    db.execute(
        "INSERT OR IGNORE INTO nearest SELECT ?, known, similarity FROM nearest WHERE category = ?",
        (category_id, source),
    )
