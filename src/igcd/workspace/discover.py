"""`igcd discover`: embed what is new, find out what it is, write it down in one transaction, say it in a sentence."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from igcd.functional.landscape import lay_out
from igcd.types import UNLABELED
from igcd.workspace.again import found_again
from igcd.workspace.catalog import Catalog, ConflictError, current_revision, id_list, next_revision, now
from igcd.workspace.evidence import Evidence, former_categories, gather_evidence, n_fresh_labels, with_features
from igcd.workspace.feature_store import Features
from igcd.workspace.features import PhotoEncoder, Progress, embed_missing
from igcd.workspace.findings import Findings, look
from igcd.workspace.near_duplicates import find_near_duplicates, write_near_duplicates
from igcd.workspace.outlook import VERY_LIKELY, counted, in_words
from igcd.workspace.queries import setting

MAX_ATTEMPTS = 3
PLACES = """
SELECT p.photo, p.x, p.y, MAX(p.stage) AS stage FROM stages s CROSS JOIN json_each(?) wanted
CROSS JOIN places p ON p.stage = s.stage AND p.photo = wanted.value GROUP BY p.photo
"""
"""The last place of some photos; SQLite takes the other columns from the row of the maximum."""


@dataclass(frozen=True)
class Report:
    """What a discovery found. Figures are of the new photos and of those decided again."""

    stage: int
    n_new: int
    n_anew: int = 0  # looked at before, confirmed by nobody, decided again
    n_recognized: int = 0  # of known categories
    n_likely: int = 0  # of those, very likely
    n_known: int = 0  # known categories they are of
    n_categories: int = 0  # known categories in all
    n_in_novel: int = 0
    n_novel: int = 0  # categories without a decision that hold such photos
    n_unsure: int = 0
    n_labeled: int = 0  # photos with a label that were looked at for the first time
    n_near_duplicates: int = 0
    broken: Mapping[str, int] = field(default_factory=dict)  # reason -> photos set aside now

    @property
    def n_to_look(self) -> int:
        """Photos that somebody should look at: unsure ones, and those of a known category that are not very likely."""
        return self.n_unsure + self.n_recognized - self.n_likely

    def sentence(self) -> str:
        """One line for people.

        >>> Report(1, 412, n_recognized=371, n_likely=340, n_categories=18, n_in_novel=35, n_novel=4).sentence()
        '412 new photos: about 340 are very likely of your 18 categories, 4 new categories with 35 photos, 31 need a \
look.'
        >>> Report(0, 0, n_labeled=30).sentence()
        'no new photos; 30 labeled ones were looked at.'
        >>> Report(0, 0, n_anew=2, n_unsure=2).sentence()
        '2 photos that you have not confirmed were decided again: no new category, 2 need a look.'
        """
        if not self.n_new and not self.n_anew:
            labeled = f"; {self.n_labeled:,} labeled ones were looked at" if self.n_labeled else "; add some first"
            return f"no new photos{labeled}."
        parts = []
        if self.n_new:
            parts.append(counted(self.n_new, "new photo"))
        if self.n_anew:
            were = "was" if self.n_anew == 1 else "were"
            photos = f"{self.n_anew:,} more" if self.n_new else counted(self.n_anew, "photo")
            parts.append(f"{photos} that you have not confirmed {were} decided again")
        found = in_words(
            n_likely=self.n_likely,
            n_categories=self.n_categories,
            n_novel=self.n_novel,
            n_in_novel=self.n_in_novel,
            n_to_look=self.n_to_look,
        )
        text = f"{', '.join(parts)}: {found}."
        if self.broken:
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in self.broken.items())
            text += f" {sum(self.broken.values()):,} set aside: {reasons}."
        return text


def discover(
    catalog: Catalog,
    encoder: PhotoEncoder,
    *,
    adapted: Path | None = None,
    granularity: float | None = None,
    embedding: Progress | None = None,
    working: Callable[[str], None] = lambda _what: None,
) -> Report:
    """Looks at all photos that nobody has looked at yet, and decides again about those nobody has confirmed.

    Everything but the features is written in one transaction at the end. Where somebody decided something meanwhile,
    the search is done again with what was decided. `adapted` is the file the encoder's tail came from, if it did.
    `granularity` moves the number of new categories, from coarse (negative) to fine; None: as the last time.
    """
    for _ in range(MAX_ATTEMPTS):
        with catalog.snapshot() as db:
            stage = _last_stage(db)
            wanted = _photos_to_embed(db, stage)
        unreadable = embed_missing(catalog, encoder, wanted, progress=embedding)
        broken = dict(Counter(unreadable.reasons.values()))
        working("looking for near-duplicates")
        with catalog.snapshot() as db:
            first_of = find_near_duplicates(db, stage, encoder.key)
        with catalog.transaction() as db:
            write_near_duplicates(db, stage, first_of)
        with catalog.snapshot() as db:
            revision = current_revision(db)
            fineness = (setting(db, "granularity") or 0.0) if granularity is None else granularity
            evidence, features = with_features(db, gather_evidence(db, stage, again=True), encoder.key)
            former = former_categories(db, stage)
            is_known = _is_known(db)
            n_labeled = n_fresh_labels(db, stage)
            is_same = _is_as_discovered(db, stage, encoder.key, fineness)
        if not len(evidence) or is_same:
            return Report(stage, 0, n_near_duplicates=len(first_of), broken=broken)
        working("looking for categories")
        findings = look(evidence, features, is_known=is_known, granularity=fineness)
        working("drawing the map")
        places = _map(evidence, features, stage, catalog)
        working("writing it down")
        with catalog.transaction() as db:
            if current_revision(db) != revision:
                continue
            report = _write(db, evidence, findings, places, is_known, former)
            report = replace(report, n_labeled=n_labeled, n_near_duplicates=len(first_of), broken=broken)
            file = None if adapted is None else adapted.relative_to(catalog.folder).as_posix()
            summary = {
                "sentence": report.sentence(),
                "revision": current_revision(db),
                "granularity": fineness,
                **asdict(report),
            }
            db.execute(
                "UPDATE stages SET state = 'discovered', discovered = ?, encoder = ?, adapted = COALESCE(?, adapted), "
                "summary = ? WHERE stage = ?",
                (now(), encoder.key, file, json.dumps(summary), stage),
            )
            db.execute("INSERT OR REPLACE INTO settings VALUES ('granularity', ?)", (json.dumps(fineness),))
            return report
    raise ConflictError("decisions were made while photos were being compared; discover again when nobody is deciding")


def _is_as_discovered(db: sqlite3.Connection, stage: int, encoder_key: str, granularity: float) -> bool:
    """Whether a stage is accepted, or nothing has changed since it was discovered: then there is nothing to do."""
    row = db.execute("SELECT state, encoder, summary FROM stages WHERE stage = ?", (stage,)).fetchone()
    if row["state"] != "discovered":
        return bool(row["state"] == "accepted")
    summary = json.loads(row["summary"] or "{}")
    then = (summary.get("revision"), row["encoder"], summary.get("granularity", 0.0))
    return then == (current_revision(db), encoder_key, granularity)


def _map(evidence: Evidence, features: Features, stage: int, catalog: Catalog) -> list[tuple[int, int, float, float]]:
    """Rows of the table of places: who has one keeps it. Near-duplicates take their representative's position."""
    with catalog.snapshot() as db:
        rows_there = db.execute(PLACES, (id_list(evidence.photo_ids.tolist()),))
        known = {row["photo"]: (row["x"], row["y"]) for row in rows_there}
    former = [known.get(photo, (np.nan, np.nan)) for photo in evidence.photo_ids.tolist()]
    places = lay_out(features, np.array(former, dtype=np.float64).reshape(-1, 2))
    rows = []
    for photo, (x, y) in zip(evidence.photo_ids.tolist(), places.tolist(), strict=True):
        rows += [(stage, twin, x, y) for twin in (photo, *evidence.twins.get(photo, ()))]
    placed = {photo: (x, y) for _, photo, x, y in rows}
    with catalog.snapshot() as db:
        firsts = db.execute(
            "SELECT id, near_duplicate_of AS first FROM photos WHERE id IN (SELECT value FROM json_each(?))",
            (id_list(evidence.same_as_label),),
        )
        rows += [(stage, row["id"], *placed[row["first"]]) for row in firsts if row["first"] in placed]
    return rows


def _write(
    db: sqlite3.Connection,
    evidence: Evidence,
    findings: Findings,
    places: list[tuple[int, int, float, float]],
    is_known: Mapping[int, bool],
    former: Mapping[int, int],
) -> Report:
    """All that was found, inside a transaction."""
    revision, stage = next_revision(db), evidence.stage
    members: dict[int, list[int]] = {number: [] for number in findings.novel}
    for photo, category in zip(evidence.photo_ids.tolist(), findings.categories.tolist(), strict=True):
        if category in members:
            members[category].append(photo)
    again = found_again(members, former)
    id_of = {number: again.get(number) or _open_category(db, stage, revision) for number in findings.novel}
    categories = [id_of.get(number, number) for number in findings.categories.tolist()]
    new_rows, known_rows = [], []
    for row, photo in enumerate(evidence.photo_ids.tolist()):
        category = None if categories[row] == UNLABELED else categories[row]
        typicality, probability = float(findings.typicality[row]), float(findings.probability[row])
        if not evidence.is_new[row]:
            known_rows.append((typicality, photo))
            continue
        for twin in (photo, *evidence.twins.get(photo, ())):
            is_peak = bool(findings.is_peak[row]) and twin == photo
            new_rows.append((twin, stage, category, probability, typicality, is_peak))
    for photo, category in evidence.same_as_label.items():
        new_rows.append((photo, stage, category, 1.0, 0.0, False))
    db.executemany(
        "INSERT INTO assignments (photo, stage, category, probability, typicality, is_peak) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (photo) DO UPDATE SET category = excluded.category, probability = excluded.probability, "
        "typicality = excluded.typicality, is_peak = excluded.is_peak",
        new_rows,
    )
    db.executemany("UPDATE assignments SET typicality = ? WHERE photo = ? AND category IS NOT NULL", known_rows)
    _write_likeness(db, findings, id_of)
    _write_hints(db, evidence, findings, id_of, is_known)
    db.execute(
        "DELETE FROM places WHERE stage = ? AND photo IN (SELECT value FROM json_each(?))",
        (
            stage,
            id_list(photo for _, photo, _, _ in places),
        ),
    )
    db.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", places)
    changed = {row[2] for row in new_rows if row[2] is not None} | set(former.values())
    db.execute(
        "UPDATE categories SET version = ? WHERE id IN (SELECT value FROM json_each(?))",
        (revision, id_list(sorted(changed))),
    )
    in_known = [row for row in new_rows if row[2] is not None and is_known.get(row[2], False)]
    in_novel = [row[2] for row in new_rows if row[2] is not None and not is_known.get(row[2], False)]
    n_new = sum(row[0] in evidence.fresh for row in new_rows)
    return Report(
        stage=stage,
        n_new=n_new,
        n_anew=len(new_rows) - n_new,
        n_recognized=len(in_known),
        n_likely=sum(row[3] >= VERY_LIKELY for row in in_known),
        n_known=len({row[2] for row in in_known}),
        n_categories=sum(is_known.values()),
        n_in_novel=len(in_novel),
        n_novel=len(set(in_novel)),
        n_unsure=len(new_rows) - len(in_known) - len(in_novel),
    )


def _write_likeness(db: sqlite3.Connection, findings: Findings, id_of: Mapping[int, int]) -> None:
    """The known categories each undecided one is most like."""
    for number, known in findings.nearest.items():
        category = id_of.get(number, number)
        db.execute("DELETE FROM nearest WHERE category = ?", (category,))
        db.executemany(
            "INSERT INTO nearest VALUES (?, ?, ?)", [(category, other, similarity) for other, similarity in known]
        )


def _write_hints(
    db: sqlite3.Connection,
    evidence: Evidence,
    findings: Findings,
    id_of: Mapping[int, int],
    is_known: Mapping[int, bool],
) -> None:
    """What helps a person to decide: alternatives, groups of what needs a look, labels in doubt."""
    db.execute("DELETE FROM alternatives")
    db.execute("DELETE FROM looks")
    db.execute("DELETE FROM doubts")
    alternatives, looks = [], []
    for row, photo in enumerate(evidence.photo_ids.tolist()):
        if not evidence.is_new[row]:
            continue
        best = zip(findings.alternatives[row].tolist(), findings.alternative_probability[row].tolist(), strict=True)
        for place, (number, probability) in enumerate(best):
            if number not in id_of and number not in is_known:  # it holds no photo, or there are fewer categories
                continue
            twins = (photo, *evidence.twins.get(photo, ()))
            alternatives += [(twin, place, id_of.get(number, number), probability) for twin in twins]
        if findings.looks[row] != UNLABELED:
            looks += [(twin, int(findings.looks[row])) for twin in (photo, *evidence.twins.get(photo, ()))]
    db.executemany("INSERT INTO alternatives VALUES (?, ?, ?, ?)", alternatives)
    db.executemany("INSERT INTO looks VALUES (?, ?)", looks)
    db.executemany(
        "INSERT INTO doubts VALUES (?, ?, ?, ?, ?)",
        [
            (int(evidence.photo_ids[row]), int(evidence.labels[row]), probability, other, other_probability)
            for row, (probability, other, other_probability) in findings.doubts.items()
        ],
    )


def _open_category(db: sqlite3.Connection, stage: int, revision: int) -> int:
    cursor = db.execute(
        "INSERT INTO categories (state, found_stage, version) VALUES ('discovered', ?, ?)", (stage, revision)
    )
    return int(cursor.lastrowid or 0)


def _last_stage(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT MAX(stage) FROM stages").fetchone()[0])


def _photos_to_embed(db: sqlite3.Connection, stage: int) -> list[int]:
    """All photos of the stage, and those of earlier ones that take part."""
    of_stage = db.execute("SELECT id FROM photos WHERE stage = ? AND broken IS NULL", (stage,))
    return sorted({*(row["id"] for row in of_stage), *gather_evidence(db, stage, again=True).photo_ids.tolist()})


def _is_known(db: sqlite3.Connection) -> dict[int, bool]:
    """Whether a category is one a person has named, confirmed or labeled."""
    return {
        row["id"]: row["state"] in ("labeled", "accepted") for row in db.execute("SELECT id, state FROM categories")
    }
