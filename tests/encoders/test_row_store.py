"""Rows come back under their keys, however many shards they lie in."""

import threading

import numpy as np
import pytest

from igcd.encoders import row_store
from igcd.encoders.row_index import row_keys
from igcd.encoders.row_store import DiskStore, Library, MemoryStore
from igcd.errors import IgcdError


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


def stores(folder, n):
    return [DiskStore(Library(folder, 10**9), "store") for _ in range(n)]


def test_what_one_claims_the_others_leave_alone(tmp_path):
    keys = row_keys([str(i) for i in range(6)], ["plain", "view"])
    one, two, three = stores(tmp_path, 3)
    one.add(keys[0], np.ones((2, 3), dtype=np.float16))
    with one.claim(keys, 2) as first, two.claim(keys[::-1], 10) as second, three.claim(keys, 10) as third:
        assert first.idx.tolist() == [1, 2] and first.is_missing.any(axis=1).tolist() == [False, *[True] * 5]
        assert second.idx.tolist() == [0, 1, 2]  # the last three
        assert third.idx.tolist() == [] and third.is_missing[1:].all()
        one.add(keys[1], np.ones((2, 3), dtype=np.float16))
    with three.claim(keys, 10) as third:
        assert third.idx.tolist() == [2, 3, 4, 5]
    assert not list((tmp_path / "store").glob("unfinished-*"))


def test_rows_that_are_stored_while_another_claims_are_not_claimed_again(tmp_path, monkeypatch):
    """The other has looked for stored rows and not yet for claims, or the other way round, when these are finished."""
    keys = row_keys(["a", "b"], ["plain"])
    one, two = stores(tmp_path, 2)
    is_written, may_finish = threading.Event(), threading.Event()
    publish, find, claimed_keys = row_store.publish, two.find, two._claimed_keys

    def publish_late(*paths):
        is_written.set()
        may_finish.wait(timeout=60)
        publish(*paths)

    def compute():
        with one.claim(keys, 2) as claim:
            assert len(claim.idx) == 2
            one.add(keys[:, 0], np.ones((2, 3), dtype=np.float16))

    monkeypatch.setattr(row_store, "publish", publish_late)
    thread = threading.Thread(target=compute)
    thread.start()
    assert is_written.wait(timeout=60)
    looks = []

    def then_finish(look):
        def looked(*args):
            found = look(*args)
            looks.append(look)
            if len(looks) == 2:  # the first of the two inside the lock; the one before it only warms up
                may_finish.set()
                thread.join(timeout=60)
            return found

        return looked

    monkeypatch.setattr(two, "find", then_finish(find))
    monkeypatch.setattr(two, "_claimed_keys", then_finish(claimed_keys))
    with two.claim(keys, 2) as claim:
        assert len(looks) == 3 and not thread.is_alive()
        assert claim.idx.tolist() == []


def test_a_claim_ends_with_the_process_that_made_it(tmp_path):
    """A folder without a lock, or with one that nobody holds, is what a killed process left."""
    keys = row_keys(["a"], ["plain"])
    (store,) = stores(tmp_path, 1)
    for name in ("unfinished-a", "unfinished-b"):
        (tmp_path / "store" / name).mkdir()
        np.save(tmp_path / "store" / name / "claim.npy", keys.ravel())
    (tmp_path / "store" / "unfinished-b" / "lock").touch()
    with store.claim(keys, 1) as claim:
        assert claim.idx.tolist() == [0]
    assert not list((tmp_path / "store").glob("unfinished-*"))


@pytest.mark.parametrize("name", ["keys.npy", "rows.npy"])
def test_a_flipped_bit_anywhere_in_a_header_is_seen(tmp_path, name):
    """Whatever the parser of headers makes of it: the shard goes, and its rows are missing."""
    keys = row_keys(["a", "b", "c"], ["plain"])[:, 0]
    rows = np.arange(9, dtype=np.float16).reshape(3, 3)
    for bit in range(0, 8 * 128, 13):
        (store,) = stores(tmp_path / str(bit), 1)
        store.add(keys, rows)
        (path,) = (tmp_path / str(bit)).glob(f"store/shard-*/{name}")
        content = bytearray(path.read_bytes())
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        (again,) = stores(tmp_path / str(bit), 1)
        assert again.find(keys).is_missing.all(), bit
        again.add(keys, rows)
        assert not again.find(keys).is_missing.any()


def test_a_shard_that_claims_to_have_no_keys_is_removed(tmp_path):
    keys, rows = row_keys(["a", "b"], ["plain"])[:, 0], np.ones((2, 3), np.float16)
    DiskStore(Library(tmp_path, 10**9), "net").add(keys, rows)
    (shard,) = (tmp_path / "net").glob("shard-*")
    np.save(shard / "keys.npy", keys[:0])
    store = DiskStore(Library(tmp_path, 10**9), "net")
    assert store.find(keys).is_missing.all() and not shard.exists()


def test_a_folder_that_may_not_be_written_to_is_one_sentence(tmp_path, monkeypatch):
    (store,) = stores(tmp_path, 1)

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(IgcdError, match=r"cannot be written \(Permission denied\); check that you may"):
        store.add(row_keys(["a"], ["plain"])[0], np.ones((1, 3), dtype=np.float16))
