"""Rows come back under their keys, however many shards they lie in."""

import numpy as np
import pytest

from igcd.encoders.row_store import DiskStore, Library, MemoryStore, row_keys


@pytest.fixture(params=["disk", "memory"])
def store(request, tmp_path):
    return DiskStore(Library(tmp_path, 10**9), "store") if request.param == "disk" else MemoryStore()


def test_every_row_is_found_as_in_a_dict(store):
    random = np.random.default_rng(0)
    keys = row_keys([str(i) for i in range(60)], ["plain"])[:, 0]
    expected = {}
    for _ in range(20):  # more shards than are searched one by one; keys overlap between shards
        chosen = random.choice(50, size=4, replace=False)
        rows = random.random((4, 3)).astype(np.float16)
        store.add(keys[chosen], rows)
        for key, row in zip(keys[chosen], rows, strict=True):
            expected.setdefault(key, row)  # the first stays
    location = store.find(keys)
    for position, key in enumerate(keys):
        assert location.is_missing[position] == (key not in expected)
        if key in expected:
            row = location.shards[location.shard[position]][location.row[position]]
            assert np.array_equal(row, expected[key])
    assert location.is_missing[50:].all()


def test_another_process_sees_new_shards_and_misses_removed_ones(tmp_path):
    keys = row_keys(["a", "b"], ["plain"])[:, 0]
    writer, reader = (DiskStore(Library(tmp_path, 10**9), "store") for _ in range(2))
    assert reader.find(keys).is_missing.all()
    writer.add(keys, np.ones((2, 3), dtype=np.float16))
    assert not reader.find(keys).is_missing.any()
    Library(tmp_path, 0).remove_beyond_bound(keep=set())
    assert reader.find(keys).is_missing.all()


def test_keys_differ_by_part_and_suffix():
    assert len(np.unique(row_keys(["a", "b", "ab"], ["", "b", "plain"]))) == 9
