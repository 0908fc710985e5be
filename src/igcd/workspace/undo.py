"""Decisions taken back: the rows they changed are put back as they were, which is noted down as a decision itself."""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from igcd.errors import IgcdError
from igcd.workspace.action import KEY_OF, Action, Decision, liken
from igcd.workspace.catalog import Catalog, ConflictError, id_list


def undo(catalog: Catalog, decision_id: int | None = None, *, author: str) -> Decision:
    """Takes a decision back, the last one by default. To take back an undo, give its id."""
    with catalog.transaction() as db:
        target = _to_be_undone(db, decision_id)
        before: dict[str, list[tuple[int, dict[str, Any] | None]]] = json.loads(target["before"])
        _require_not_built_upon(db, target, before)
        action = Action(db, "undo", author, seen=None)
        touched = db.execute("SELECT category FROM decision_categories WHERE decision = ?", (target["id"],)).fetchall()
        for row in touched:
            action.touch(row["category"], must_be_live=False)
        action.note_photos([photo for photo, _ in before["assignments"]])
        for table, rows in before.items():
            _restore(db, table, rows)
        _restore_likeness(db, [row["category"] for row in touched])
        payload = json.loads(target["payload"])
        if target["kind"] == "close":
            _reopen(db, payload["stage"])
        if target["kind"] == "undo":
            db.execute("UPDATE decisions SET undone_by = NULL WHERE id = ?", (payload["decision"],))
        noted = action.note({"decision": target["id"], "kind": target["kind"], "undone": payload})
        db.execute("UPDATE decisions SET undone_by = ? WHERE id = ?", (noted.id, target["id"]))
        return noted


def _to_be_undone(db: sqlite3.Connection, decision_id: int | None) -> sqlite3.Row:
    if decision_id is None:
        row = db.execute(
            "SELECT * FROM decisions WHERE undone_by IS NULL AND kind <> 'undo' ORDER BY id DESC LIMIT 1"
        ).fetchone()
        if row is None:
            raise IgcdError("there is no decision to undo")
    else:
        row = db.execute("SELECT * FROM decisions WHERE id = ?", (decision_id,)).fetchone()
        if row is None:
            raise IgcdError(f"there is no decision {decision_id} to undo; `igcd status` shows the last ones")
        if row["undone_by"] is not None:
            raise IgcdError(f"decision {decision_id} was undone already; undo decision {row['undone_by']} to redo it")
        if row["kind"] == "undo" and json.loads(row["payload"])["kind"] == "close":
            raise IgcdError("a stage that was opened again is closed again by `igcd accept`")
    found: sqlite3.Row = row
    return found


def _require_not_built_upon(db: sqlite3.Connection, target: sqlite3.Row, before: Mapping[str, Any]) -> None:
    """Raises where a later decision rests on the one to be undone: it has to be undone first.

    A later undo rests on it, too, unless what it took back is itself later: those two cancel.
    """
    own_categories = {category for category, _ in before["categories"]}
    own_photos = {photo for photo, _ in before["assignments"]}
    later = db.execute(
        "SELECT id, before FROM decisions WHERE id > ?1 AND undone_by IS NULL "
        "AND (kind <> 'undo' OR json_extract(payload, '$.decision') <= ?1) ORDER BY id DESC",
        (target["id"],),
    )
    for row in later:
        changed = json.loads(row["before"])
        shares_category = any(category in own_categories for category, _ in changed["categories"])
        if shares_category or any(photo in own_photos for photo, _ in changed["assignments"]):
            raise ConflictError(
                f"decision {row['id']} was made after decision {target['id']} about the same photos; undo it first"
            )


def _restore(db: sqlite3.Connection, table: str, rows: Sequence[tuple[int, dict[str, Any] | None]]) -> None:
    """Puts rows back as they were; those that were not there are removed."""
    key, keys = KEY_OF[table], id_list(key for key, _ in rows)
    present = [row for _, row in rows if row is not None]
    db.execute(f"DELETE FROM {table} WHERE {key} IN (SELECT value FROM json_each(?))", (keys,))
    if present:
        columns = list(present[0])
        marks = ", ".join("?" * len(columns))
        db.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})",
            [tuple(row[column] for column in columns) for row in present],
        )


def _restore_likeness(db: sqlite3.Connection, category_ids: Iterable[int]) -> None:
    """A category that is gone is like nothing; one that is back is like what it was split from."""
    for category_id in category_ids:
        if db.execute("SELECT 1 FROM categories WHERE id = ?", (category_id,)).fetchone() is None:
            db.execute("DELETE FROM nearest WHERE ?1 IN (category, known)", (category_id,))
            continue
        made = db.execute(
            "SELECT json_extract(payload, '$.from[0]') AS source FROM decisions "
            "WHERE kind = 'split' AND json_extract(payload, '$.new') = ?",
            (category_id,),
        ).fetchone()
        if made is not None and made["source"] is not None:
            liken(db, category_id, made["source"])


def _reopen(db: sqlite3.Connection, stage: int) -> None:
    """Undoes the closing of a stage; photos that were added since belong to it again."""
    later = db.execute("SELECT stage, state FROM stages WHERE stage > ? ORDER BY stage", (stage,)).fetchall()
    if any(row["state"] != "open" for row in later):
        raise ConflictError(
            f"stage {later[0]['stage']} was discovered since stage {stage} was accepted and builds on it; correct "
            "single names or photos instead"
        )
    for table in ("photos", "labels", "assignments"):
        db.execute(f"UPDATE {table} SET stage = ?1 WHERE stage > ?1", (stage,))
    db.execute("DELETE FROM stages WHERE stage > ?", (stage,))
    db.execute("DELETE FROM kept WHERE stage = ?", (stage,))
    db.execute(
        "UPDATE stages SET state = CASE WHEN discovered IS NULL THEN 'open' ELSE 'discovered' END, accepted = NULL "
        "WHERE stage = ?",
        (stage,),
    )
