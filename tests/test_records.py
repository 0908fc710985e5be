"""Files are there whole or not at all, and on the disk before they have their names."""

import errno
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from igcd.data.images import ArrayImages
from igcd.data.sized_cache import cached_at_size
from igcd.encoders.row_index import row_keys
from igcd.encoders.row_store import DiskStore, Library
from igcd.errors import IgcdError
from igcd.records import publish, sync, write_bytes, write_json
from igcd.tensor_files import write_tensors


@pytest.fixture
def steps(monkeypatch, wait_for_the_disk):  # noqa: ARG001 - what is noted is done
    """What is synced and renamed, in order: ("sync", name) and ("rename", name)."""
    done = []
    fsync, replace = os.fsync, Path.replace

    def note_sync(handle):
        done.append(("sync", Path(f"/proc/self/fd/{handle}").readlink().name))
        fsync(handle)

    def note_rename(path, target):
        done.append(("rename", Path(target).name))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_rename)
    return done


def write_a_shard(folder):
    DiskStore(Library(folder, 10**9), "here").add(row_keys(["a"], ["plain"])[0], np.ones((1, 3), dtype=np.float16))


def write_small_copies(folder):
    cached_at_size(ArrayImages("a", np.zeros((1, 8, 8, 3), dtype=np.uint8)), 4, folder / "here")


@pytest.mark.parametrize(
    ("write", "files"),
    [
        (lambda folder: write_bytes(folder / "here" / "file", b"content"), 1),
        (lambda folder: write_json(folder / "here" / "file", {}), 1),
        (lambda folder: write_tensors(folder / "here" / "file", {"x": torch.ones(2)}, {}), 1),
        (write_a_shard, 3),
        (write_small_copies, 2),
    ],
    ids=["bytes", "json", "tensors", "shard", "small copies"],
)
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files have names in /proc on Linux alone")
def test_what_claims_to_be_written_is_on_the_disk(tmp_path, steps, write, files):
    write(tmp_path)
    (rename,) = [at for at, (step, _) in enumerate(steps) if step == "rename"]
    assert len({name for _, name in steps[:rename]}) >= files  # the content first
    assert ("sync", "here") in steps[rename:]  # then the name


def test_a_folder_is_published_with_all_that_is_in_it(tmp_path):
    (tmp_path / "new" / "deep").mkdir(parents=True)
    (tmp_path / "new" / "deep" / "file").write_text("content")
    publish(tmp_path / "new", tmp_path / "there")
    assert (tmp_path / "there" / "deep" / "file").read_text() == "content" and not (tmp_path / "new").exists()


@contextmanager
def full_disk():
    """No file may grow beyond a kilobyte: the system refuses to write more, as it does when the disk is full.

    Not a fixture: before those end, pytest writes down how the test went, perhaps to a file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_bytes(path, bytes(5000)),
        lambda path: write_tensors(path, {"x": torch.ones(5000)}, {}),
    ],
    ids=["bytes", "tensors"],
)
def test_a_file_that_cannot_be_written_is_one_sentence_and_the_old_one_stays(tmp_path, write):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with full_disk(), pytest.raises(IgcdError, match=r"file cannot be written \(File too large\); .* write elsewhere"):
        write(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"] and path.read_bytes() == b"old"


def test_a_full_disk_says_what_to_do(tmp_path, monkeypatch):
    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(IgcdError, match=r"No space left on device\); free some space"):
        write_tensors(tmp_path / "file", {"x": torch.ones(2)}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_is_named(tmp_path, monkeypatch):
    """fsync gives no name, and without one the command line has no sentence to say."""

    def fail(_handle):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        sync(tmp_path)
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, str(tmp_path))
