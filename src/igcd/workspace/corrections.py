"""What discovery said of a photo and what a person said of it since."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from igcd.workspace.catalog import Catalog


@dataclass(frozen=True)
class Verdict:
    """Photos that discovery put into one category (None: unsure) and a person into another, or the same."""

    said: int | None
    decided: int
    photos: tuple[int, ...]

    @property
    def is_right(self) -> bool:
        """Whether the person left them where discovery had put them."""
        return self.said == self.decided


def verdicts(catalog: Catalog) -> list[Verdict]:
    """The photos a person has decided about, by what was said before the first decision; the most frequent first.

    Labels that were given with the photos are not among them: nothing was said of those.
    """
    with catalog.snapshot() as db:
        said = _said_before(db)
        decided = {
            row["photo"]: row["category"]
            for row in db.execute("SELECT photo, category FROM assignments WHERE is_confirmed AND category IS NOT NULL")
        }
    photos: dict[tuple[int | None, int], list[int]] = {}
    for photo in sorted(said.keys() & decided.keys()):
        photos.setdefault((said[photo], decided[photo]), []).append(photo)
    found = [Verdict(before, after, tuple(members)) for (before, after), members in photos.items()]
    return sorted(found, key=lambda verdict: (-len(verdict.photos), verdict.said or 0, verdict.decided))


def _said_before(db: sqlite3.Connection) -> Mapping[int, int | None]:
    """The category of each photo before the first decision that touched it and was not undone."""
    said: dict[int, int | None] = {}
    for row in db.execute("SELECT before FROM decisions WHERE undone_by IS NULL AND kind <> 'undo' ORDER BY id"):
        for photo, assignment in json.loads(row["before"]).get("assignments", ()):
            if assignment is not None and not assignment["is_confirmed"]:
                said.setdefault(photo, assignment["category"])
    return said
