import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from workspace.painted_photos import paint

from igcd.workspace import near_duplicates
from igcd.workspace.near_duplicates import MAX_BITS, group, picture_hash, similar_pairs


def photo(tmp_path, category, number=0):
    return np.asarray(Image.open(paint(tmp_path / f"{category}-{number}.jpg", category, number, size=112)))


def bits(one, other):
    return int(np.unpackbits(one ^ other).sum())


def test_copies_are_close_and_other_photos_are_not(tmp_path):
    original = photo(tmp_path, 0)
    buffer = io.BytesIO()
    Image.fromarray(original).save(buffer, "JPEG", quality=60)
    copies = [np.asarray(Image.open(buffer)), np.asarray(Image.fromarray(original).resize((300, 300)))]
    assert all(bits(picture_hash(original), picture_hash(copy)) <= MAX_BITS for copy in copies)
    assert bits(picture_hash(original), picture_hash(photo(tmp_path, 1))) > MAX_BITS


@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_similar_pairs_are_what_a_double_loop_finds(seed, max_bits):
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 256, (3, 32), dtype=np.uint8)
    hashes = base[rng.integers(0, 3, 8)] ^ (rng.random((8, 32)) < 0.1).astype(np.uint8)
    new_rows = np.flatnonzero(rng.random(8) < 0.6)
    expected = [
        (earlier, later)
        for later in range(8)
        for earlier in range(later)
        if later in new_rows and bits(hashes[earlier], hashes[later]) <= max_bits
    ]
    assert similar_pairs(hashes, new_rows, max_bits=max_bits) == expected


@pytest.mark.parametrize("max_bits", [12, MAX_BITS, 36])
def test_among_many_photos_those_with_a_piece_in_common_are_all_that_are_similar(monkeypatch, max_bits):
    """So many that not all are compared; copies with as many other bits as may differ, and with one more."""
    rng = np.random.default_rng(0)
    flat = rng.random((6_000, 256)) < 0.5
    new_rows = np.arange(4_400, 6_000)
    for later in new_rows:
        flat[later] = flat[later - 4_400]
        flat[later, rng.permutation(256)[: max_bits + later % 2]] ^= True
    signs = (2.0 * flat - 1).astype(np.float32)
    others = np.argwhere(signs[new_rows] @ signs.T >= 256 - 2 * max_bits)
    expected = [(earlier, later + 4_400) for later, earlier in others.tolist() if earlier < later + 4_400]
    assert len(expected) == 800
    compared = []
    count = near_duplicates._n_bits
    monkeypatch.setattr(near_duplicates, "_n_bits", lambda words: compared.append(words.size) or count(words))
    assert similar_pairs(np.packbits(flat, axis=1), new_rows, max_bits=max_bits) == expected
    assert sum(compared) < len(new_rows) * len(flat) / 5


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_groups_do_not_change_when_photos_are_added(drawn):
    """The groups of the first photos are the same whether or not later ones are there."""
    pairs = sorted({(a, b) for a, b in drawn if a < b}, key=lambda pair: (pair[1], pair[0]))
    whole = group(pairs, {})
    for end in range(8):
        early = group([pair for pair in pairs if pair[1] < end], {})
        assert early == {photo: first for photo, first in whole.items() if photo < end}
    assert not set(whole.values()) & set(whole)  # the first photo of a group is in no other group


@pytest.mark.parametrize(("pairs", "former", "joined"), [([(1, 5)], {1: 0}, {}), ([(0, 5), (1, 5)], {1: 0}, {5: 0})])
def test_a_photo_joins_the_first_of_a_group_only(pairs, former, joined):
    assert group(pairs, former) == joined
