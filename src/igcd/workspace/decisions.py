"""What a person decides about categories and photos: each decision one transaction, noted down, and undone at will.

A decision says which version of the categories it has seen. Where somebody else changed one of them meanwhile, nothing
is done and a `ConflictError` says so. The rows a decision changes are kept as they were, so that `undo` can put them
back.
"""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from igcd.errors import IgcdError
from igcd.memory.merging import Standing, merged
from igcd.workspace.action import Action, Decision, liken
from igcd.workspace.catalog import Catalog, ConflictError, current_revision, id_list, now
from igcd.workspace.names import CategoryName, parse_name


@dataclass(frozen=True)
class Kept:
    """A photo in R."""

    category: int
    position: int  # 0 is the most important of its category
    photo: int


def name(
    catalog: Catalog, category_id: int, text: str, *, author: str, seen: Mapping[int, int] | None = None
) -> Decision:
    """Gives a category a name; a discovered one is thereby accepted, with the photos it holds now."""
    new_name = parse_name(text)
    with catalog.transaction() as db:
        return _give_name(Action(db, "name", author, seen), category_id, new_name)


def accept_category(
    catalog: Catalog, category_id: int, *, author: str, seen: Mapping[int, int] | None = None
) -> Decision:
    """Confirms a discovered category with the photos it holds now; a name can come later."""
    with catalog.transaction() as db:
        action = Action(db, "accept", author, seen)
        if action.touch(category_id)["state"] == "discovered":
            db.execute("UPDATE categories SET state = 'accepted', is_deferred = 0 WHERE id = ?", (category_id,))
        _confirm_all(action, category_id)
        return action.note({"category": category_id})


def merge(
    catalog: Catalog, category_id: int, into_id: int, *, author: str, seen: Mapping[int, int] | None = None
) -> Decision:
    """Puts all photos of a category into another. The id of the first stays, and leads to the other forever.

    The survivor is known if either was, under the name of the known one (`igcd.memory.merging.merged`). With a known
    category, the photos of a discovered one are confirmed, whichever of the two goes into the other.
    """
    if category_id == into_id:
        raise IgcdError(f"category {category_id} cannot be merged into itself; choose another one")
    with catalog.transaction() as db:
        action = Action(db, "merge", author, seen)
        gone, into = action.touch(category_id), action.touch(into_id)
        photo_ids = _photos_in(db, category_id)
        action.note_photos(photo_ids)
        standing = merged(_standing(into), _standing(gone))
        for category in (gone, into):
            if standing.is_known and category["state"] == "discovered":
                _confirm_all(action, category["id"])
        db.execute("UPDATE categories SET state = 'merged', merged_into = ? WHERE id = ?", (into_id, category_id))
        name_of = into if into["name"] == standing.name else gone
        db.execute(
            "UPDATE categories SET name = ?, parent = ?, state = ?, is_deferred = ? WHERE id = ?",
            (
                *(name_of["name"], name_of["parent"]),
                max(into["state"], gone["state"], key=("discovered", "accepted", "labeled").index),
                into["is_deferred"] and not standing.is_known,
                into_id,
            ),
        )
        db.execute("UPDATE assignments SET category = ?, is_peak = 0 WHERE category = ?", (into_id, category_id))
        db.execute("UPDATE labels SET category = ? WHERE category = ?", (into_id, category_id))
        return action.note({"category": category_id, "into": into_id, "n_photos": len(photo_ids)})


def split(
    catalog: Catalog,
    photo_ids: Iterable[int],
    *,
    author: str,
    name: str | None = None,
    seen: Mapping[int, int] | None = None,
    with_near_duplicates: bool = True,
) -> Decision:
    """Makes a new category of these photos; its id is in the payload as `new`. With a name it is accepted at once.

    Where they are all photos of a discovered category, it is that one which gets the name.
    """
    new_name = None if name is None else parse_name(name)
    with catalog.transaction() as db:
        action = Action(db, "split", author, seen)
        photos, sources = _chosen(action, photo_ids, with_near_duplicates=with_near_duplicates)
        for source in sources:
            if set(_photos_in(db, source)) == set(photos):  # gathered from several places, a category may end up empty
                if new_name is not None and action.touch(source)["state"] == "discovered":
                    action.kind = "name"
                    return _give_name(action, source, new_name)
                raise IgcdError(
                    f"all photos of category {source} were chosen, which leaves none behind; name or merge the category"
                )
        if new_name is not None:
            _require_free_name(db, new_name, except_for=None)
        new_id = action.create(new_name, stage=_stage_of(db, photos))
        db.execute(
            "UPDATE assignments SET category = ?, is_peak = 0, is_confirmed = ? "
            "WHERE photo IN (SELECT value FROM json_each(?))",
            (new_id, new_name is not None, id_list(photos)),
        )
        db.execute(
            "UPDATE assignments SET is_peak = 1 WHERE photo = "
            "(SELECT photo FROM assignments WHERE category = ? ORDER BY typicality DESC, photo LIMIT 1)",
            (new_id,),
        )
        _relabel(db, photos, None if new_name is None else new_id)
        if sources:
            liken(db, new_id, sources[0])
        payload = {"new": new_id, "from": sources, "n_photos": len(photos), "name": new_name and new_name.full}
        return action.note(payload)


def reject(catalog: Catalog, category_id: int, *, author: str, seen: Mapping[int, int] | None = None) -> Decision:
    """Says that a discovered category is none; its photos are unsure again."""
    with catalog.transaction() as db:
        action = Action(db, "reject", author, seen)
        if action.touch(category_id)["state"] == "labeled":
            raise IgcdError(
                f"category {category_id} has labels and cannot be rejected; merge it, or move its photos elsewhere"
            )
        photo_ids = _photos_in(db, category_id)
        action.note_photos(photo_ids)
        db.execute("UPDATE categories SET state = 'rejected' WHERE id = ?", (category_id,))
        db.execute(
            "UPDATE assignments SET category = NULL, is_peak = 0, is_confirmed = 0 WHERE category = ?", (category_id,)
        )
        return action.note({"category": category_id, "n_photos": len(photo_ids)})


def defer(catalog: Catalog, category_id: int, *, author: str, seen: Mapping[int, int] | None = None) -> Decision:
    """Not sure about a category: it goes to the end of the queue, nothing else changes."""
    with catalog.transaction() as db:
        action = Action(db, "unsure", author, seen)
        action.touch(category_id)
        db.execute("UPDATE categories SET is_deferred = 1 WHERE id = ?", (category_id,))
        return action.note({"category": category_id})


def set_unsure(
    catalog: Catalog,
    photo_ids: Iterable[int],
    *,
    author: str,
    seen: Mapping[int, int] | None = None,
    with_near_duplicates: bool = True,
) -> Decision:
    """Not sure about photos: they leave their category, and later discoveries leave them alone."""
    with catalog.transaction() as db:
        action = Action(db, "unsure", author, seen)
        photos, sources = _chosen(action, photo_ids, with_near_duplicates=with_near_duplicates)
        _relabel(db, photos, None)
        db.execute(
            "UPDATE assignments SET category = NULL, is_peak = 0, is_confirmed = 1 "
            "WHERE photo IN (SELECT value FROM json_each(?))",
            (id_list(photos),),
        )
        return action.note({"from": sources, "n_photos": len(photos)})


def move(
    catalog: Catalog,
    photo_ids: Iterable[int],
    to_id: int,
    *,
    author: str,
    seen: Mapping[int, int] | None = None,
    with_near_duplicates: bool = True,
) -> Decision:
    """Says that photos are of a category; moving them to the one they are in confirms them."""
    with catalog.transaction() as db:
        action = Action(db, "move", author, seen)
        action.touch(to_id)
        photos, sources = _chosen(action, photo_ids, with_near_duplicates=with_near_duplicates)
        _relabel(db, photos, to_id)
        db.execute(
            "UPDATE assignments SET is_peak = CASE WHEN category = ?1 THEN is_peak ELSE 0 END, category = ?1, "
            "is_confirmed = 1 WHERE photo IN (SELECT value FROM json_each(?2))",
            (to_id, id_list(photos)),
        )
        return action.note({"to": to_id, "from": sources, "n_photos": len(photos)})


def close_stage(
    catalog: Catalog,
    stage: int,
    *,
    author: str,
    kept: Sequence[Kept] = (),
    seen_revision: int | None = None,
) -> Decision:
    """Closes a stage: accepted categories are known from now on, and their confirmed photos are labels.

    `kept` is what goes into S and R, chosen when the catalog was at `seen_revision`.
    """
    with catalog.transaction() as db:
        if seen_revision is not None and current_revision(db) != seen_revision:
            raise ConflictError("a decision was made while the stage was being closed; accept it again")
        action = Action(db, "close", author, seen=None)
        accepted = [row["id"] for row in db.execute("SELECT id FROM categories WHERE state = 'accepted' ORDER BY id")]
        for category_id in accepted:
            action.touch(category_id)
        confirmed = [
            row["photo"]
            for row in db.execute(
                "SELECT a.photo FROM assignments a JOIN categories c ON c.id = a.category "
                "WHERE a.is_confirmed AND c.state IN ('accepted', 'labeled') "
                "AND NOT EXISTS (SELECT 1 FROM labels l WHERE l.photo = a.photo)"
            )
        ]
        action.note_photos(confirmed)
        db.execute("UPDATE categories SET state = 'labeled' WHERE state = 'accepted'")
        db.execute(
            "INSERT INTO labels SELECT photo, category, ?, 'confirmed' FROM assignments "
            "WHERE photo IN (SELECT value FROM json_each(?))",
            (stage, id_list(confirmed)),
        )
        db.execute("UPDATE stages SET state = 'accepted', accepted = ? WHERE stage = ?", (now(), stage))
        db.executemany(
            "INSERT INTO kept (stage, role, category, position, photo) VALUES (?, 'replay', ?, ?, ?)",
            [(stage, entry.category, entry.position, entry.photo) for entry in kept],
        )
        return action.note({"stage": stage, "categories": accepted, "n_labels": len(confirmed)})


def _chosen(action: Action, photo_ids: Iterable[int], *, with_near_duplicates: bool) -> tuple[list[int], list[int]]:
    """The photos a decision is about and the categories they are in, the one with most of them first.

    Near-duplicates that are in the same category come along: one decision covers them.
    """
    chosen_ids = sorted(set(photo_ids))
    rows = action.db.execute(
        "SELECT a.photo, a.category FROM assignments a WHERE a.photo IN (SELECT value FROM json_each(?))",
        (id_list(chosen_ids),),
    ).fetchall()
    if not chosen_ids or len(rows) < len(chosen_ids):
        missing = sorted(set(chosen_ids) - {row["photo"] for row in rows})
        reason = f"photo {missing[0]} has no category yet or does not exist" if missing else "none was chosen"
        raise IgcdError(f"a decision about photos needs photos of this workspace: {reason}")
    if with_near_duplicates:
        rows = action.db.execute(
            """
            WITH chosen AS (
                SELECT COALESCE(p.near_duplicate_of, p.id) AS first, a.category
                FROM photos p JOIN assignments a ON a.photo = p.id
                WHERE p.id IN (SELECT value FROM json_each(?))
            ), groups AS (
                SELECT first AS photo, category FROM chosen
                UNION
                SELECT p.id, c.category FROM chosen c JOIN photos p ON p.near_duplicate_of = c.first
            )
            SELECT a.photo, a.category FROM groups g
            JOIN assignments a ON a.photo = g.photo AND a.category IS g.category
            """,
            (id_list(chosen_ids),),
        ).fetchall()
    n_from: dict[int, int] = {}
    for row in rows:
        if row["category"] is not None:
            n_from[row["category"]] = n_from.get(row["category"], 0) + 1
    for category_id in n_from:
        action.touch(category_id)
    photos = sorted(row["photo"] for row in rows)
    action.note_photos(photos)
    return photos, sorted(n_from, key=lambda category: (-n_from[category], category))


def _give_name(action: Action, category_id: int, new_name: CategoryName) -> Decision:
    before = action.touch(category_id)
    _require_free_name(action.db, new_name, except_for=category_id)
    action.db.execute(
        "UPDATE categories SET name = ?, parent = ?, is_deferred = 0, "
        "state = CASE state WHEN 'discovered' THEN 'accepted' ELSE state END WHERE id = ?",
        (new_name.full, new_name.parent, category_id),
    )
    if before["state"] == "discovered":
        _confirm_all(action, category_id)
    return action.note({"category": category_id, "name": new_name.full, "was": before["name"]})


def _standing(category: Mapping[str, Any]) -> Standing[str | None]:
    return Standing(category["state"] != "discovered", category["name"])


def _photos_in(db: sqlite3.Connection, category_id: int) -> list[int]:
    """All photos that are or were said to be of a category."""
    rows = db.execute(
        "SELECT photo FROM assignments WHERE category = ?1 UNION SELECT photo FROM labels WHERE category = ?1",
        (category_id,),
    )
    return [row["photo"] for row in rows]


def _confirm_all(action: Action, category_id: int) -> None:
    action.note_photos(_photos_in(action.db, category_id))
    action.db.execute("UPDATE assignments SET is_confirmed = 1 WHERE category = ?", (category_id,))


def _relabel(db: sqlite3.Connection, photo_ids: Sequence[int], category_id: int | None) -> None:
    """Labels follow the photos they are on; a photo that is of no settled category has none."""
    chosen = "photo IN (SELECT value FROM json_each(?))"
    if category_id is None:
        db.execute(f"DELETE FROM labels WHERE {chosen}", (id_list(photo_ids),))
    else:
        # Somebody has looked: a label that came with the photos is a confirmed one now, and in no doubt any more.
        db.execute(
            f"UPDATE labels SET category = ?, source = 'confirmed' WHERE {chosen}", (category_id, id_list(photo_ids))
        )


def _stage_of(db: sqlite3.Connection, photo_ids: Sequence[int]) -> int:
    row = db.execute(
        "SELECT MAX(stage) FROM photos WHERE id IN (SELECT value FROM json_each(?))", (id_list(photo_ids),)
    ).fetchone()
    return int(row[0])


def _require_free_name(db: sqlite3.Connection, new_name: CategoryName, *, except_for: int | None) -> None:
    row = db.execute(
        "SELECT id FROM categories WHERE name = ? AND id IS NOT ? AND state IN ('labeled', 'discovered', 'accepted')",
        (new_name.full, except_for),
    ).fetchone()
    if row is not None:
        raise IgcdError(
            f"category {row['id']} is called {new_name.full!r} already; merge into it, or choose another name"
        )
