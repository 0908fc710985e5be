"""What the catalog knows that a discovery builds on, as arrays: who is labeled, who was guessed, who is new.

The catalog is the truth and the classifier a function of it: what a person names, merges, splits, rejects or undoes
counts from the next discovery on, with no other state to bring along.
"""

# ruff: noqa: S608 - SQL is put together from texts of this module; values go in as parameters

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from igcd.types import UNLABELED, BoolArray, IntArray
from igcd.workspace.catalog import id_list
from igcd.workspace.feature_store import Features, find_damaged, read_features

N_GUESSED = 50
"""Of a category nobody has decided about, or rejected, so many typical photos stand for it."""
MADE_BY_PERSON = """
SELECT CASE kind WHEN 'split' THEN json_extract(payload, '$.new') WHEN 'move' THEN json_extract(payload, '$.to')
    ELSE json_extract(payload, '$.into') END
FROM decisions WHERE undone_by IS NULL AND kind IN ('split', 'move', 'merge')
"""
"""Categories that hold what a person put into them, also where they have no name yet: no discovery takes them apart."""


@dataclass(frozen=True)
class Evidence:
    """Photos to learn from and photos to look at, one row each."""

    stage: int  # the open one
    photo_ids: IntArray  # (n,)
    labels: IntArray  # (n,) category by a person's word, -1 for none
    guesses: IntArray  # (n,) category by an earlier discovery, of those nobody decided about or rejected; -1 for none
    is_new: BoolArray  # (n,) to be assigned now
    fresh: frozenset[int]  # photos nobody has looked at; the other new ones were unsure before
    rejected: tuple[int, ...]  # categories a person rejected
    twins: dict[int, list[int]]  # new photo -> its new near-duplicates, which go where it goes
    same_as_label: dict[int, int]  # new photo -> category, where it is a near-duplicate of a labeled photo

    def __len__(self) -> int:
        return len(self.photo_ids)


def gather_evidence(db: sqlite3.Connection, stage: int, *, again: bool = False) -> Evidence:
    """Everything a discovery at this stage may use.

    Labels of the stage and photos confirmed in it count in full; of accepted stages what R holds. New are the photos
    without an assignment, and those an earlier discovery was unsure of; `again`: all photos of the stage nobody has
    confirmed, except in categories that a person made. Of near-duplicates one speaks for all.
    """
    label_of = _labels(db, stage)
    new = _new_photos(db, stage, again=again)
    guess_of = {photo: category for photo, category in _guesses(db, stage, again=again).items() if photo not in new}
    rejected = _rejected(db)
    for category, photos in rejected.items():
        guess_of |= dict.fromkeys(photos[:N_GUESSED], category)
    representatives, twins, same_as_label = _by_group(db, [photo for photo in new if photo not in label_of])
    ids = sorted({*label_of, *guess_of, *representatives})
    return Evidence(
        stage=stage,
        photo_ids=np.array(ids, dtype=np.int64),
        labels=np.array([label_of.get(photo, UNLABELED) for photo in ids], dtype=np.int64),
        guesses=np.array(
            [UNLABELED if photo in label_of else guess_of.get(photo, UNLABELED) for photo in ids], dtype=np.int64
        ),
        is_new=np.isin(ids, representatives),
        fresh=frozenset(photo for photo, is_fresh in new.items() if is_fresh and photo not in label_of),
        rejected=tuple(sorted(rejected)),
        twins=twins,
        same_as_label=same_as_label,
    )


def former_categories(db: sqlite3.Connection, stage: int) -> dict[int, int]:
    """The category of each photo in those found at this stage that may be decided again: nobody has decided on them."""
    rows = db.execute(
        f"SELECT a.photo, a.category FROM assignments a JOIN categories c ON c.id = a.category "
        f"WHERE NOT a.is_confirmed AND c.state = 'discovered' AND c.found_stage = ? AND c.id NOT IN ({MADE_BY_PERSON})",
        (stage,),
    )
    return {row["photo"]: row["category"] for row in rows}


def with_features(db: sqlite3.Connection, evidence: Evidence, encoder_key: str) -> tuple[Evidence, Features]:
    """The evidence of photos that have a feature that is not damaged, and the features, (n, d)."""
    found = read_features(db, encoder_key, evidence.photo_ids.tolist())
    for photo in find_damaged(found):
        del found[photo]
    has_one = np.array([photo in found for photo in evidence.photo_ids.tolist()], dtype=bool)
    rows = [found[photo] for photo in evidence.photo_ids[has_one].tolist()]
    features: npt.NDArray[np.float32] = np.stack(rows) if rows else np.empty((0, 0), dtype=np.float32)
    kept = replace(
        evidence,
        photo_ids=evidence.photo_ids[has_one],
        labels=evidence.labels[has_one],
        guesses=evidence.guesses[has_one],
        is_new=evidence.is_new[has_one],
    )
    return kept, features


def n_fresh_labels(db: sqlite3.Connection, stage: int) -> int:
    """Labeled photos of the stage that no discovery has placed on the map yet."""
    row = db.execute(
        "SELECT COUNT(*) FROM labels l JOIN photos p ON p.id = l.photo WHERE l.stage = ?1 AND p.stage = ?1 "
        "AND p.broken IS NULL AND NOT EXISTS (SELECT 1 FROM places m WHERE m.stage = ?1 AND m.photo = l.photo)",
        (stage,),
    ).fetchone()
    return int(row[0])


def _labels(db: sqlite3.Connection, stage: int) -> dict[int, int]:
    """The category of each photo a person has spoken about, as far as it is still to be learned from.

    Photos of accepted stages that are not kept cost one step each: only whether they have a label is looked up, in the
    order of both tables. By an index of categories, as SQLite would choose, it takes ten times as long.
    """
    rows = db.execute(
        """
        SELECT a.photo, a.category FROM assignments a JOIN categories c ON c.id = a.category
        WHERE a.is_confirmed AND c.state IN ('labeled', 'accepted') AND a.photo IN (
            SELECT id FROM photos WHERE stage = ?1
            UNION SELECT photo FROM kept WHERE role = 'replay' AND stage = (SELECT MAX(stage) FROM kept)
            UNION SELECT s.photo FROM assignments s NOT INDEXED LEFT JOIN labels l ON l.photo = s.photo
                WHERE s.is_confirmed AND l.photo IS NULL
        ) ORDER BY a.photo
        """,
        (stage,),
    )
    return {row["photo"]: row["category"] for row in rows}


def _new_photos(db: sqlite3.Connection, stage: int, *, again: bool) -> dict[int, bool]:
    """The photos to be assigned, and whether nobody has looked at them before."""
    rows = db.execute(
        f"""
        SELECT p.id, a.photo IS NULL AS is_fresh FROM photos p LEFT JOIN assignments a ON a.photo = p.id
        LEFT JOIN categories c ON c.id = a.category
        WHERE p.broken IS NULL AND p.id IN (
            SELECT id FROM photos WHERE stage = ?1
            UNION SELECT photo FROM assignments WHERE category IS NULL AND NOT is_confirmed
        ) AND (
            a.photo IS NULL
            OR (NOT a.is_confirmed AND (
                a.category IS NULL OR (?2 AND NOT (c.state = 'discovered' AND c.id IN ({MADE_BY_PERSON})))
            ))
        ) ORDER BY p.id
        """,
        (stage, again),
    )
    return {row["id"]: bool(row["is_fresh"]) for row in rows}


def _guesses(db: sqlite3.Connection, stage: int, *, again: bool) -> dict[int, int]:
    """The most typical photos of each discovered category nobody decided about; `again`: found before this stage."""
    rows = db.execute(
        f"""
        SELECT photo, category FROM (
            SELECT a.photo, a.category,
                ROW_NUMBER() OVER (PARTITION BY a.category ORDER BY a.is_peak DESC, a.typicality DESC, a.photo) AS place
            FROM assignments a JOIN categories c ON c.id = a.category WHERE c.state = 'discovered'
            AND (NOT ?2 OR c.found_stage < ?1 OR c.id IN ({MADE_BY_PERSON}))
        ) WHERE place <= ?3
        """,
        (stage, again, N_GUESSED),
    )
    return {row["photo"]: row["category"] for row in rows}


def _rejected(db: sqlite3.Connection) -> dict[int, list[int]]:
    """The photos of each rejected category that have found no other since, the most typical first."""
    rows = db.execute(
        """
        SELECT json_extract(d.payload, '$.category') AS category, a.photo
        FROM decisions d JOIN json_each(d.before, '$.assignments') changed
        JOIN assignments a ON a.photo = json_extract(changed.value, '$[0]')
        WHERE d.kind = 'reject' AND d.undone_by IS NULL AND a.category IS NULL
        ORDER BY a.typicality DESC, a.photo
        """
    )
    photos: dict[int, list[int]] = {}
    for row in rows:
        photos.setdefault(row["category"], []).append(row["photo"])
    return photos


def _by_group(db: sqlite3.Connection, new: Sequence[int]) -> tuple[list[int], dict[int, list[int]], dict[int, int]]:
    """One new photo of each group of near-duplicates, the others it represents, and those that a label represents."""
    rows = db.execute(
        """
        SELECT p.id, COALESCE(p.near_duplicate_of, p.id) AS first FROM photos p
        WHERE p.id IN (SELECT value FROM json_each(?)) ORDER BY p.id
        """,
        (id_list(new),),
    ).fetchall()
    first_of = {row["id"]: row["first"] for row in rows}
    known = {
        row["first"]: row["category"]
        for row in db.execute(
            """
            SELECT g.first, a.category FROM (
                SELECT id, id AS first FROM photos
                WHERE id IN (SELECT value FROM json_each(?1)) AND near_duplicate_of IS NULL
                UNION ALL
                SELECT id, near_duplicate_of FROM photos WHERE near_duplicate_of IN (SELECT value FROM json_each(?1))
            ) g JOIN assignments a ON a.photo = g.id JOIN categories c ON c.id = a.category
            WHERE a.is_confirmed AND c.state IN ('labeled', 'accepted') ORDER BY a.photo
            """,
            (id_list(sorted(set(first_of.values()))),),
        )
    }
    representative_of: dict[int, int] = {}
    twins: dict[int, list[int]] = {}
    for photo, first in first_of.items():
        if first in known:
            continue
        twins.setdefault(representative_of.setdefault(first, photo), []).append(photo)
    same_as_label = {photo: known[first] for photo, first in first_of.items() if first in known}
    representatives = sorted(twins)
    return (
        representatives,
        {photo: [twin for twin in group if twin != photo] for photo, group in twins.items()},
        same_as_label,
    )
