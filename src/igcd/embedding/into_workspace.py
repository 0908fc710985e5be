"""Features that `igcd embed` has computed, taken into a workspace: its photos need not be looked at again."""

from itertools import islice
from pathlib import Path

import numpy as np

from igcd.embedding.shards import EmbeddedFolder
from igcd.errors import IgcdError
from igcd.workspace.catalog import Catalog
from igcd.workspace.feature_store import write_features
from igcd.workspace.features import PhotoEncoder

ROWS_AT_A_TIME = 4096


def take_features(catalog: Catalog, encoder: PhotoEncoder, folder: Path) -> int:
    """Keeps the features of photos that are in the workspace, by content; returns of how many.

    The encoder of the workspace must be the one that they were computed with.
    """
    embedded = EmbeddedFolder.open(folder)
    if embedded.about.encoder != encoder.key:
        raise IgcdError(
            f"the features in {folder} must be of the workspace's encoder, {encoder.key}, they are of "
            f"{embedded.about.encoder}; embed again with the options of `igcd init`"
        )
    features = embedded.features()
    hashes = np.load(folder / "hashes.npy", mmap_mode="r", allow_pickle=False)
    n_taken = 0
    rows_left = enumerate(embedded.rows())
    while part := list(islice(rows_left, ROWS_AT_A_TIME)):
        row_of = {key: row for row, (_, key) in part}
        with catalog.transaction() as db:
            marks = ",".join("?" * len(row_of))
            found = db.execute(
                f"SELECT content_hash FROM photos WHERE content_hash IN ({marks}) AND broken IS NULL",  # noqa: S608
                list(row_of),
            )
            keys = [row["content_hash"] for row in found]
            rows = [row_of[key] for key in keys]
            write_features(db, encoder.key, keys, np.asarray(features[rows], dtype=np.float32))
            db.executemany(
                "UPDATE photos SET picture_hash = ? WHERE content_hash = ? AND picture_hash IS NULL",
                [(hashes[row].tobytes(), key) for row, key in zip(rows, keys, strict=True)],
            )
        n_taken += len(keys)
    return n_taken
