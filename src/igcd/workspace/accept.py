"""`igcd accept`: closes a stage. What was confirmed becomes labels; R is chosen again within its budget."""

import sqlite3

import numpy as np
import torch

from igcd.errors import IgcdError
from igcd.functional.selection import select_by_density
from igcd.workspace.action import Decision
from igcd.workspace.backup import write_backup
from igcd.workspace.catalog import Catalog, current_revision
from igcd.workspace.decisions import Kept, close_stage
from igcd.workspace.evidence import gather_evidence, with_features

N_REPLAY = 50
"""Photos per category in R. It holds no copies, the photos are the person's own; a feature takes 2.5 kB."""


def accept_stage(catalog: Catalog, *, author: str, n_replay: int = N_REPLAY) -> Decision:
    """Closes the open stage, and makes a copy of the catalog as it is then.

    Later stages learn from their own labels and from what R holds.
    """
    with catalog.snapshot() as db:
        stage, encoder_key = _stage_to_close(db)
        revision = current_revision(db)
        evidence, features = with_features(db, gather_evidence(db, stage), encoder_key)
    settled = evidence.labels >= 0
    kept = choose_kept(
        evidence.photo_ids[settled].tolist(),
        evidence.labels[settled].tolist(),
        features[settled],
        n_replay=n_replay,
    )
    decision = close_stage(catalog, stage, author=author, kept=kept, seen_revision=revision)
    try:
        write_backup(catalog)
    except IgcdError as error:
        raise IgcdError(f"stage {stage} is accepted, but {error}") from None
    return decision


def choose_kept(photo_ids: list[int], categories: list[int], features: np.ndarray, *, n_replay: int) -> list[Kept]:
    """Of each category the density peak and the photos around it, as many as the budget of R allows."""
    by_category: dict[int, list[int]] = {}
    for row, category in enumerate(categories):
        by_category.setdefault(category, []).append(row)
    kept = []
    for category, rows in sorted(by_category.items()):
        order = select_by_density(torch.from_numpy(features[rows]), n_replay).tolist()
        kept += [Kept(category, position, photo_ids[rows[row]]) for position, row in enumerate(order)]
    return kept


def _stage_to_close(db: sqlite3.Connection) -> tuple[int, str]:
    row = db.execute("SELECT stage, state, encoder FROM stages ORDER BY stage DESC LIMIT 1").fetchone()
    if row["state"] == "accepted":
        raise IgcdError(f"stage {row['stage']} is accepted already; add photos and discover them first")
    n_waiting = db.execute(
        "SELECT COUNT(*) FROM photos p LEFT JOIN assignments a ON a.photo = p.id "
        "WHERE p.stage = ? AND a.photo IS NULL AND p.broken IS NULL",
        (row["stage"],),
    ).fetchone()[0]
    if row["state"] == "open" or n_waiting:
        raise IgcdError(
            f"stage {row['stage']} has {n_waiting:,} photos that were not discovered yet; run `igcd discover` first"
        )
    return int(row["stage"]), str(row["encoder"])
