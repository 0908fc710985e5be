"""Photos that show the same thing twice: a burst, a copy at another size or quality.

Two photos are near-duplicates when their difference hashes (256 bits: is each spot brighter than the one left of it, on
a 17 × 16 gray version) differ in at most 24 bits and their features have a cosine of at least 0.85. The hash alone
would join photos of an empty sky, the feature alone photos of the same species. A group forms around its first photo:
each later photo joins the earliest one it is a near-duplicate of that is not itself in a group, so that groups never
change when photos are added.
"""

import sqlite3
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from PIL import Image

from igcd.types import IntArray, Pixels
from igcd.workspace.catalog import table_of
from igcd.workspace.feature_store import Features, read_features

HASH_SIDE = 16
MAX_BITS = 24
"""Of 256. Among 3,000 different photos of birds one pair of 4.5 million is that close; 9 in 10 copies at JPEG
quality 50 are, and 19 in 20 at another size or brightness."""
MIN_COSINE = 0.85
_COMPARED_AT_A_TIME = 2**18
_COST_OF_SORTING = 10
"""Sorting hashes by one piece takes as long as so many comparisons of each."""

_PIECES = np.arange(256).reshape(4, 4, 4, 4).transpose(1, 3, 0, 2).reshape(16, 16)
"""Bits of each piece: every fourth spot of every fourth line, because neighbors say nearly the same."""

HashBytes = npt.NDArray[np.uint8]


def picture_hash(pixels: Pixels) -> HashBytes:
    """The difference hash of an image, (h, w, 3) -> (32,): 256 bits.

    >>> int(picture_hash(np.zeros((8, 8, 3), np.uint8)).sum())
    0
    """
    gray = Image.fromarray(pixels).convert("L").resize((HASH_SIDE + 1, HASH_SIDE), Image.Resampling.BOX)
    levels = np.asarray(gray, dtype=np.int16)
    return np.packbits(levels[:, 1:] > levels[:, :-1])


def similar_pairs(hashes: HashBytes, new_rows: IntArray, *, max_bits: int = MAX_BITS) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of rows whose hashes differ in few bits, where the later is one of `new_rows`. (n, 32).

    Of the 16 pieces of two such hashes one differs in at most a sixteenth of those bits. So a hash is compared only
    with those that have such a piece, unless that would be more work than comparing it with all.
    """
    words = np.ascontiguousarray(hashes).view(np.uint64)
    n_all = len(new_rows) * len(hashes)
    flips = _flips(max_bits // len(_PIECES))
    n_compared = len(_PIECES) * (_COST_OF_SORTING * len(hashes) + len(flips) * len(new_rows))
    columns = np.ascontiguousarray(hashes.T)
    pieces = [] if n_compared >= n_all else [_codes(columns, bits) for bits in _PIECES]
    for codes in pieces:
        n_with = np.bincount(codes, minlength=2**16)
        n_compared += sum(int(n_with[codes[new_rows] ^ flip].sum()) for flip in flips)
    if n_compared >= n_all:
        pieces, flips = [np.zeros(len(hashes), dtype=np.uint16)], flips[:1]
    found = [pairs for codes in pieces for pairs in _similar_by_piece(words, codes, flips, new_rows, max_bits)]
    both = np.unique(np.concatenate([np.empty((0, 2), dtype=np.int64), *found]), axis=0)
    return [(earlier, later) for later, earlier in both.tolist()]


def _flips(n_bits: int) -> npt.NDArray[np.uint16]:
    """What 16 bits can be changed with so that at most `n_bits` of them change; first what changes none.

    >>> _flips(1).tolist()[:4]
    [0, 1, 2, 4]
    """
    all_flips = np.arange(2**16, dtype=np.uint64)
    return all_flips[_n_bits(all_flips) <= n_bits].astype(np.uint16)


def _codes(columns: HashBytes, bits: IntArray) -> npt.NDArray[np.uint16]:
    """Some bits of each hash as a number. (32, n), (16,) -> (n,)."""
    codes = np.zeros(columns.shape[1], dtype=np.uint16)
    for bit in bits.tolist():
        codes <<= 1
        codes |= columns[bit // 8] >> (7 - bit % 8) & 1
    return codes


def _similar_by_piece(
    words: npt.NDArray[np.uint64],
    codes: npt.NDArray[np.uint16],
    flips: npt.NDArray[np.uint16],
    new_rows: IntArray,
    max_bits: int,
) -> Iterator[IntArray]:
    """Pairs (later, earlier) of rows whose codes differ by one of the flips, some at a time.

    (n, 4), (n,), (f,), (m,) -> (p, 2).
    """
    order = codes.argsort(kind="stable")
    first_words = words[order, 0]
    n_with = np.bincount(codes, minlength=2**16)
    first_with = np.cumsum(n_with) - n_with
    for flip in flips:
        wanted = codes[new_rows] ^ flip
        starts, n_others = first_with[wanted], n_with[wanted]
        place = np.cumsum(n_others)
        done = 0
        while done < len(new_rows):
            last = max(done + 1, int(np.searchsorted(place, place[done] - n_others[done] + _COMPARED_AT_A_TIME)))
            part = slice(done, last)
            own_words = np.repeat(words[new_rows[part], 0], n_others[part])
            before = np.repeat(place[part] - n_others[part] - starts[part], n_others[part])
            near = np.arange(place[done] - n_others[done], place[last - 1]) - before
            is_near = _n_bits(own_words ^ first_words[near]) <= max_bits  # few are left whose first 64 bits are alike
            later, earlier = np.repeat(new_rows[part], n_others[part])[is_near], order[near[is_near]]
            is_near = (_n_bits(words[later] ^ words[earlier]).sum(axis=1) <= max_bits) & (earlier < later)
            yield np.stack([later[is_near], earlier[is_near]], axis=1)
            done = last


def _n_bits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """How many bits of each word are set: sums of two neighbors, of four, of eight, then of the eight bytes.

    >>> _n_bits(np.array([0, 255, 2**63 + 1], dtype=np.uint64)).tolist()
    [0, 8, 2]
    """
    odd, pairs, nibbles, ones = (np.uint64(0x0101010101010101 * byte) for byte in (0x55, 0x33, 0x0F, 0x01))
    words = words - ((words >> np.uint64(1)) & odd)
    words = (words & pairs) + ((words >> np.uint64(2)) & pairs)
    words = (words + (words >> np.uint64(4))) & nibbles
    return np.asarray((words * ones) >> np.uint64(56))


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
    usable = "FROM photos WHERE picture_hash IS NOT NULL AND broken IS NULL"
    photos = table_of(db, f"SELECT id, stage = ?, picture_hash {usable} ORDER BY id", "i8,?,V32", (stage,))
    new_rows = np.flatnonzero(photos["f1"])
    if not len(new_rows):
        return {}
    hashes = np.ascontiguousarray(photos["f2"]).view(np.uint8).reshape(len(photos), -1)
    ids = photos["f0"].tolist()
    pairs = [(ids[earlier], ids[later]) for earlier, later in similar_pairs(hashes, new_rows)]
    features = read_features(db, encoder_key, {photo for pair in pairs for photo in pair})
    alike = [pair for pair in pairs if _cosine(features, pair) >= MIN_COSINE]
    former = db.execute(
        f"SELECT id, near_duplicate_of {usable} AND near_duplicate_of IS NOT NULL AND stage <> ?", (stage,)
    )
    return group(alike, {row["id"]: row["near_duplicate_of"] for row in former})


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
