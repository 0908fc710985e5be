"""What holds of a catalog in every state that a kill, a full disk or a crowd can leave behind."""

import json
from collections.abc import Collection

from tools.torture.judging import require

from igcd.workspace.catalog import Catalog


def check_whole(catalog: Catalog, n_photos: Collection[int] | None = None) -> None:
    """Raises where something is half done. `n_photos`: how many photos there may be, as folders are added whole."""
    with catalog.snapshot() as db:
        require(db.execute("PRAGMA integrity_check").fetchone()[0] == "ok", "the database is whole")
        lost = [tuple(row) for row in db.execute("PRAGMA foreign_key_check")]
        require(not lost, f"what is referred to is there: {sorted({(row[0], row[2]) for row in lost})}")
        n_now = db.execute("SELECT COUNT(*) FROM photos").fetchone()[0]
        require(n_photos is None or n_now in n_photos, "a folder is added whole or not at all")
        dead = (
            "SELECT 1 FROM assignments a JOIN categories c ON c.id = a.category WHERE c.state IN ('merged', 'rejected')"
        )
        require(not db.execute(dead).fetchall(), "no photo is of a category that is no more")
        for stage in db.execute("SELECT * FROM stages").fetchall():
            number = (stage["stage"],)
            waiting = db.execute(
                "SELECT COUNT(*) FROM photos p LEFT JOIN assignments a ON a.photo = p.id "
                "WHERE p.stage = ? AND a.photo IS NULL",
                number,
            ).fetchone()[0]
            n_of_stage = db.execute("SELECT COUNT(*) FROM photos WHERE stage = ?", number).fetchone()[0]
            n_labeled = db.execute("SELECT COUNT(*) FROM labels WHERE stage = ?", number).fetchone()[0]
            if stage["state"] == "open":
                require(waiting == n_of_stage - n_labeled, "a discovery is written whole or not at all")
            else:
                require(waiting == 0 and stage["summary"] is not None, "a discovery is written whole or not at all")
            kept = db.execute("SELECT COUNT(*) FROM kept WHERE stage = ?", number).fetchone()[0]
            require((kept > 0) == (stage["state"] == "accepted"), "a stage is accepted whole or not at all")
        revision = int(db.execute("SELECT value FROM settings WHERE key = 'revision'").fetchone()[0])
        versions = [row["version"] for row in db.execute("SELECT version FROM categories")]
        require(all(version <= revision for version in versions), "no version is of the future")
        for row in db.execute("SELECT * FROM decisions"):
            noted = json.loads(row["before"]).keys()
            require(noted == {"categories", "assignments", "labels"}, "a decision says what was before it")
