"""`igcd discover`: embed what is new, find out what it is, write it down in one transaction, say it in a sentence."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from igcd.discoverer import CategoryDiscoverer
from igcd.functional.landscape import lay_out
from igcd.types import UNLABELED, BoolArray, FloatArray, IntArray
from igcd.workspace.catalog import Catalog, ConflictError, current_revision, id_list, next_revision, now
from igcd.workspace.evidence import Evidence, gather_evidence, n_fresh_labels, with_features
from igcd.workspace.feature_store import Features
from igcd.workspace.features import PhotoEncoder, Progress, embed_missing
from igcd.workspace.near_duplicates import find_near_duplicates, write_near_duplicates

N_NEAREST = 5
"""Known categories noted beside each discovered one."""
MAX_ATTEMPTS = 3
_ROWS_AT_A_TIME = 2048


@dataclass(frozen=True)
class Report:
    """What a discovery found."""

    stage: int
    n_new: int
    n_recognized: int  # of known categories
    n_known: int  # known categories they are of
    n_in_novel: int
    n_novel: int  # categories without a decision that hold new photos
    n_unsure: int
    n_labeled: int  # photos with a label that were looked at for the first time
    n_near_duplicates: int
    broken: Mapping[str, int] = field(default_factory=dict)  # reason -> photos set aside now

    def sentence(self) -> str:
        """One line for people.

        >>> Report(1, 412, 371, 18, 35, 4, 6, 0, 0).sentence()
        '412 new photos: 371 of 18 known categories, 35 in 4 new ones, 6 unsure.'
        >>> Report(0, 0, 0, 0, 0, 0, 0, 30, 0).sentence()
        'no new photos; 30 labeled ones were looked at.'
        """
        if not self.n_new:
            labeled = f"; {self.n_labeled:,} labeled ones were looked at" if self.n_labeled else "; add some first"
            return f"no new photos{labeled}."
        parts = [
            f"{self.n_recognized:,} of {self.n_known:,} known {'category' if self.n_known == 1 else 'categories'}",
            f"{self.n_in_novel:,} in {self.n_novel:,} new {'one' if self.n_novel == 1 else 'ones'}",
            f"{self.n_unsure:,} unsure",
        ]
        text = f"{self.n_new:,} new photo{'' if self.n_new == 1 else 's'}: {', '.join(parts)}."
        if self.broken:
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in self.broken.items())
            text += f" {sum(self.broken.values()):,} set aside: {reasons}."
        return text


@dataclass(frozen=True)
class Findings:
    """What the classifier says about the rows of the evidence, in arrays."""

    categories: IntArray  # (n,) catalog id; a number of `novel` for one that has none yet; -1 for unsure
    probability: FloatArray  # (n,)
    typicality: FloatArray  # (n,) similarity to the mean of its category, 0 where unsure
    is_peak: BoolArray  # (n,)
    novel: tuple[int, ...]  # numbers of categories found now, in the order they were found
    nearest: Mapping[int, list[tuple[int, float]]]  # undecided category -> known categories and similarity


def discover(
    catalog: Catalog,
    encoder: PhotoEncoder,
    *,
    adapted: Path | None = None,
    embedding: Progress | None = None,
    working: Callable[[str], None] = lambda _what: None,
) -> Report:
    """Looks at all photos that nobody has looked at yet.

    Everything but the features is written in one transaction at the end. Where somebody decided something meanwhile,
    the search is done again with what was decided. `adapted` is the file the encoder's tail came from, if it did.
    """
    for _ in range(MAX_ATTEMPTS):
        with catalog.snapshot() as db:
            stage = _last_stage(db)
            wanted = _photos_to_embed(db, stage)
        unreadable = embed_missing(catalog, encoder, wanted, progress=embedding)
        working("looking for near-duplicates")
        with catalog.snapshot() as db:
            first_of = find_near_duplicates(db, stage, encoder.key)
        with catalog.transaction() as db:
            write_near_duplicates(db, stage, first_of)
        with catalog.snapshot() as db:
            revision = current_revision(db)
            evidence, features = with_features(db, gather_evidence(db, stage), encoder.key)
            is_known = _is_known(db)
            n_labeled = n_fresh_labels(db, stage)
        if not len(evidence) or not (evidence.fresh or n_labeled):
            return Report(stage, 0, 0, 0, 0, 0, 0, 0, len(first_of), _counts(unreadable.reasons.values()))
        working("looking for categories")
        findings = look(evidence, features, is_known=is_known)
        working("drawing the map")
        places = _map(evidence, features, stage, catalog)
        with catalog.transaction() as db:
            if current_revision(db) != revision:
                continue
            report = _write(db, evidence, findings, places, is_known)
            report = Report(
                **{
                    **asdict(report),
                    "n_labeled": n_labeled,
                    "n_near_duplicates": len(first_of),
                    "broken": _counts(unreadable.reasons.values()),
                }
            )
            file = None if adapted is None else adapted.relative_to(catalog.folder).as_posix()
            db.execute(
                "UPDATE stages SET state = 'discovered', discovered = ?, encoder = ?, adapted = COALESCE(?, adapted), "
                "summary = ? WHERE stage = ?",
                (now(), encoder.key, file, json.dumps({"sentence": report.sentence(), **asdict(report)}), stage),
            )
            return report
    raise ConflictError("decisions kept coming in while photos were looked at; discover again when nobody is deciding")


def look(evidence: Evidence, features: Features, *, is_known: Mapping[int, bool]) -> Findings:
    """Categories of all rows. (n, d)."""
    return describe(fit_classifier(evidence, features), evidence, features, is_known)


def fit_classifier(evidence: Evidence, features: Features) -> CategoryDiscoverer:
    """A classifier that knows what the evidence knows, and has looked for categories among the other rows. (n, d).

    Guesses of earlier stages count as labels: their categories are there, and stay.
    """
    labels = np.where(evidence.guesses != UNLABELED, evidence.guesses, evidence.labels)
    model = CategoryDiscoverer(unlabeled=UNLABELED).fit(features, labels)
    for category in sorted(set(evidence.rejected) & set(evidence.guesses.tolist())):
        model.reject(category)
    return model


def describe(
    model: CategoryDiscoverer, evidence: Evidence, features: Features, is_known: Mapping[int, bool]
) -> Findings:
    """The answers of a fitted classifier, as they are written into the catalog."""
    given = np.where(evidence.guesses != UNLABELED, evidence.guesses, evidence.labels)
    given = np.where(np.isin(given, evidence.rejected), UNLABELED, given)
    assigned = np.where(given != UNLABELED, given, model.assign(features))
    probability, typicality = _closeness(model, features, assigned)
    peaks = {discovery.id: discovery.peak for discovery in model.discoveries_}
    novel = [(int(model.ledger_.categories[found].label), peaks[found]) for found in model.ledger_.live("novel")]
    novel = [(label, peak) for label, peak in novel if (assigned == label).any()]  # some hold only what speaks for them
    is_peak = np.zeros(len(evidence), dtype=bool)
    for label, peak in novel:
        if assigned[peak] == label:
            is_peak[peak] = True
    known = [category for category, known in is_known.items() if known]
    return Findings(
        categories=assigned.astype(np.int64),
        probability=probability,
        typicality=typicality,
        is_peak=is_peak,
        novel=tuple(label for label, _ in novel),
        nearest=_nearest(model, known),
    )


def _closeness(model: CategoryDiscoverer, features: Features, assigned: IntArray) -> tuple[FloatArray, FloatArray]:
    """Probability of the category each row is assigned to, or of the best one where unsure, and its typicality."""
    columns = {int(label): column for column, label in enumerate(model.categories_.tolist())}
    probability, typicality = np.zeros(len(features)), np.zeros(len(features))
    if not columns:
        return probability, typicality
    for start in range(0, len(features), _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        probs, similarity = model.predict_proba(features[rows]), model.transform(features[rows])
        column = np.array([columns.get(int(category), -1) for category in assigned[rows]])
        at = np.arange(len(probs))
        probability[rows] = np.where(column >= 0, probs[at, column], probs.max(axis=1))
        typicality[rows] = np.where(column >= 0, similarity[at, column], 0.0)
    return probability, typicality


def _nearest(model: CategoryDiscoverer, known: Iterable[int]) -> dict[int, list[tuple[int, float]]]:
    """For each category that is not known the known ones whose mean is most like its own."""
    labels = model.categories_.astype(np.int64)
    means = model.means_ / np.maximum(np.linalg.norm(model.means_, axis=1, keepdims=True), 1e-12)
    is_known = np.isin(labels, sorted(known))
    nearest = {}
    for row in np.flatnonzero(~is_known).tolist() if is_known.any() else []:
        similarity = means[is_known] @ means[row]
        best = np.argsort(-similarity, kind="stable")[:N_NEAREST]
        nearest[int(labels[row])] = [(int(labels[is_known][column]), float(similarity[column])) for column in best]
    return nearest


def _map(evidence: Evidence, features: Features, stage: int, catalog: Catalog) -> list[tuple[int, int, float, float]]:
    """Rows of the table of places; near-duplicates take their representative's position."""
    places = lay_out(features)
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
) -> Report:
    """All that was found, inside a transaction."""
    revision, stage = next_revision(db), evidence.stage
    id_of = {number: _open_category(db, stage, revision) for number in findings.novel}
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
    for number, known in findings.nearest.items():
        category = id_of.get(number, number)
        db.execute("DELETE FROM nearest WHERE category = ?", (category,))
        db.executemany(
            "INSERT INTO nearest VALUES (?, ?, ?)", [(category, other, similarity) for other, similarity in known]
        )
    db.execute(
        "DELETE FROM places WHERE stage = ? AND photo IN (SELECT value FROM json_each(?))",
        (
            stage,
            id_list(photo for _, photo, _, _ in places),
        ),
    )
    db.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", places)
    extended = sorted({row[2] for row in new_rows if row[2] is not None})
    db.execute(
        "UPDATE categories SET version = ? WHERE id IN (SELECT value FROM json_each(?))", (revision, id_list(extended))
    )
    fresh = [row[2] for row in new_rows if row[0] in evidence.fresh]
    in_known = [category for category in fresh if category is not None and is_known.get(category, False)]
    in_novel = [category for category in fresh if category is not None and not is_known.get(category, False)]
    return Report(
        stage=stage,
        n_new=len(fresh),
        n_recognized=len(in_known),
        n_known=len(set(in_known)),
        n_in_novel=len(in_novel),
        n_novel=len(set(in_novel)),
        n_unsure=len(fresh) - len(in_known) - len(in_novel),
        n_labeled=0,
        n_near_duplicates=0,
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
    return sorted({*(row["id"] for row in of_stage), *gather_evidence(db, stage).photo_ids.tolist()})


def _is_known(db: sqlite3.Connection) -> dict[int, bool]:
    """Whether a category is one a person has named, confirmed or labeled."""
    return {
        row["id"]: row["state"] in ("labeled", "accepted") for row in db.execute("SELECT id, state FROM categories")
    }


def _counts(reasons: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return counts
