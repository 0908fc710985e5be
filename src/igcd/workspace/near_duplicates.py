"""Photos that show the same thing twice: a burst, a copy at another size or quality.

Two photos are near-duplicates when their difference hashes (256 bits: is each spot brighter than the one left of it, on
a 17 × 16 gray version) differ in at most 24 bits and their features have a cosine of at least 0.85. The hash alone
would join photos of an empty sky, the feature alone photos of the same species. A group forms around its first photo:
each later photo joins the earliest one it is a near-duplicate of that is not itself in a group, so that groups never
change when photos are added.
"""

import sqlite3
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from igcd.types import IntArray, Pixels
from igcd.workspace.feature_store import Features, read_features

HASH_SIDE = 16
MAX_BITS = 24
"""Of 256. Among 3,000 different photos of birds one pair of 4.5 million is that close; 9 in 10 copies at JPEG
quality 50 are, and 19 in 20 at another size or brightness."""
MIN_COSINE = 0.85
_ROWS_AT_A_TIME = 256

HashBytes = npt.NDArray[np.uint8]


def picture_hash(pixels: Pixels) -> HashBytes:
    """The difference hash of an image, (h, w, 3) -> (32,): 256 bits.

    >>> picture_hash(np.zeros((8, 8, 3), np.uint8)).sum()
    np.uint64(0)
    """
    gray = Image.fromarray(pixels).convert("L").resize((HASH_SIDE + 1, HASH_SIDE), Image.Resampling.BOX)
    levels = np.asarray(gray, dtype=np.int16)
    return np.packbits(levels[:, 1:] > levels[:, :-1])


def similar_pairs(hashes: HashBytes, new_rows: IntArray, *, max_bits: int = MAX_BITS) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of rows whose hashes differ in few bits, where the later is one of `new_rows`. (n, 32)."""
    signs = torch.from_numpy(np.unpackbits(hashes, axis=1).astype(np.float32) * 2 - 1)
    n_bits = signs.shape[1]
    pairs: list[tuple[int, int]] = []
    for start in range(0, len(new_rows), _ROWS_AT_A_TIME):
        rows = new_rows[start : start + _ROWS_AT_A_TIME]
        agreement = signs[torch.from_numpy(rows)] @ signs.T  # bits that agree minus bits that do not
        at, others = np.nonzero((agreement >= n_bits - 2 * max_bits).numpy())
        pairs += [(other, row) for row, other in zip(rows[at].tolist(), others.tolist(), strict=True) if other < row]
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]))


def group(pairs: list[tuple[int, int]], first_of: Mapping[int, int]) -> dict[int, int]:
    """For each later photo of the pairs the first photo of the group it joins.

    `pairs` are (earlier, later) in the order of the later; `first_of` are the groups there are already.

    >>> group([(1, 2), (2, 3), (1, 4)], {})
    {2: 1, 4: 1}
    """
    joined: dict[int, int] = {}
    for earlier, later in pairs:
        is_first = earlier not in first_of and earlier not in joined
        if later not in joined and is_first:
            joined[later] = earlier
    return joined


def find_near_duplicates(db: sqlite3.Connection, stage: int, encoder_key: str) -> dict[int, int]:
    """For each photo of a stage that is a near-duplicate the first photo of its group, among it and all before."""
    rows = db.execute(
        "SELECT id, stage, picture_hash, near_duplicate_of FROM photos "
        "WHERE picture_hash IS NOT NULL AND broken IS NULL ORDER BY id"
    ).fetchall()
    if not rows:
        return {}
    hashes = np.stack([np.frombuffer(row["picture_hash"], dtype=np.uint8) for row in rows])
    is_new = np.array([row["stage"] == stage for row in rows])
    ids = [row["id"] for row in rows]
    pairs = [(ids[earlier], ids[later]) for earlier, later in similar_pairs(hashes, np.flatnonzero(is_new))]
    features = read_features(db, encoder_key, {photo for pair in pairs for photo in pair})
    alike = [pair for pair in pairs if _cosine(features, pair) >= MIN_COSINE]
    former = {row["id"]: row["near_duplicate_of"] for row in rows if row["near_duplicate_of"] and row["stage"] != stage}
    return group(alike, former)


def write_near_duplicates(db: sqlite3.Connection, stage: int, first_of: Mapping[int, int]) -> None:
    """Notes the groups of a stage down, in place of what was noted before."""
    db.execute("UPDATE photos SET near_duplicate_of = NULL WHERE stage = ? AND near_duplicate_of IS NOT NULL", (stage,))
    db.executemany(
        "UPDATE photos SET near_duplicate_of = ? WHERE id = ?", [(first, photo) for photo, first in first_of.items()]
    )


def _cosine(features: Mapping[int, Features], pair: tuple[int, int]) -> float:
    """1 where one of the two has no feature of this encoder: then the hash alone decides."""
    first, second = features.get(pair[0]), features.get(pair[1])
    return 1.0 if first is None or second is None else float(first @ second)
