"""Features as they lie in the catalog: half precision, by content hash and encoder."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from igcd.workspace.catalog import id_list

Features = npt.NDArray[np.float32]
LENGTH_TOLERANCE = 0.01
"""How far from 1 the length of a feature may be; half precision alone leads to a tenth of it."""


def write_features(db: sqlite3.Connection, encoder_key: str, content_hashes: Sequence[str], features: Features) -> None:
    """Keeps features, (n, d), in the place of those that are there."""
    rows = zip(content_hashes, features.astype("<f2"), strict=True)
    db.executemany(
        "INSERT OR REPLACE INTO features (encoder, content_hash, feature) VALUES (?, ?, ?)",
        [(encoder_key, content_hash, row.tobytes()) for content_hash, row in rows],
    )


def read_features(db: sqlite3.Connection, encoder_key: str, photo_ids: Iterable[int]) -> dict[int, Features]:
    """Features of those of the photos that have one, (d,) each; half a number is none."""
    # CROSS JOIN keeps the order of the tables: SQLite's own choice walks the list of ids once for every feature.
    rows = db.execute(
        "SELECT p.id, f.feature FROM json_each(?) wanted CROSS JOIN photos p ON p.id = wanted.value "
        "CROSS JOIN features f ON f.encoder = ? AND f.content_hash = p.content_hash",
        (id_list(photo_ids), encoder_key),
    )
    return {
        row["id"]: np.frombuffer(row["feature"], dtype="<f2").astype(np.float32)
        for row in rows
        if len(row["feature"]) % 2 == 0
    }


def find_damaged(features: Mapping[int, Features]) -> list[int]:
    """Photos whose feature is not what was written: of another size than the others, or not of length 1."""
    sizes = Counter(len(feature) for feature in features.values())
    size = max(sizes, key=lambda size: sizes[size], default=0)
    with np.errstate(over="ignore", invalid="ignore"):
        return [
            photo
            for photo, feature in features.items()
            if len(feature) != size or not abs(np.linalg.norm(feature) - 1) <= LENGTH_TOLERANCE
        ]
