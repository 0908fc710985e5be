"""Broken images are set aside, counted and written down; too many of them stop the run."""

import csv
import errno
import os

import numpy as np
import pytest

from igcd.data.images import ArrayImages, FileImages
from igcd.data.quarantine import Quarantine, inspect
from igcd.errors import IgcdError


def with_broken(n_broken: int, limit: float = 0.05) -> Quarantine:
    quarantine = Quarantine(limit)
    for number in range(n_broken):
        quarantine.add(f"{number}.jpg", "truncated" if number % 3 else "file is empty")
    return quarantine


def test_five_percent_pass_and_more_do_not():
    with_broken(5).check(100)
    with_broken(0).check(0)
    with pytest.raises(IgcdError) as caught:
        with_broken(6).check(100)
    sentence = str(caught.value)
    for part in ("6 of 100", "6.0%", "limit is 5.0%", "--max-broken"):
        assert part in sentence
    assert caught.value.details == ("'0.jpg': file is empty", "'1.jpg': truncated", "'2.jpg': truncated")


@pytest.mark.parametrize(("limit", "n_broken"), [(0.0, 0), (0.5, 50), (1.0, 100)])
def test_the_limit_can_be_set(limit, n_broken):
    with_broken(n_broken, limit).check(100)
    if n_broken < 100:
        with pytest.raises(IgcdError):
            with_broken(n_broken + 1, limit).check(100)


@pytest.mark.parametrize("limit", [-0.1, 5, float("nan")])
def test_the_limit_is_a_share(limit):
    with pytest.raises(IgcdError, match="share from 0 to 1"):
        Quarantine(limit)


def test_an_image_counts_once_with_its_first_reason():
    quarantine = with_broken(2)
    quarantine.add("1.jpg", "something else")
    assert len(quarantine) == 2
    assert quarantine.reasons["1.jpg"] == "truncated"
    assert "1.jpg" in quarantine
    assert "9.jpg" not in quarantine


def test_reasons_are_counted_the_most_frequent_first():
    assert list(with_broken(5).counts().items()) == [("truncated", 3), ("file is empty", 2)]
    assert with_broken(1).summary() == "1 image set aside: file is empty 1"
    assert with_broken(0).summary() == "no images set aside"


def test_the_list_is_written_as_plain_csv(tmp_path):
    quarantine = with_broken(2)
    quarantine.add('say "a, b"\n.jpg', "truncated")
    quarantine.add(os.fsdecode(b"h\xe9ron.jpg"), "truncated")
    path = tmp_path / "quarantine.csv"
    path.write_text("old")
    quarantine.write(path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[:3] == [["image_id", "reason"], ["0.jpg", "file is empty"], ["1.jpg", "truncated"]]
    assert rows[3] == ['say "a, b"\n.jpg', "truncated"]
    assert rows[4] == ["h\\udce9ron.jpg", "truncated"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "quarantine.csv"
    path.write_text("old")

    def fail(_):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(IgcdError, match="disk full"):
        with_broken(2).write(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("n_workers", [1, 3])
def test_inspect_finds_every_broken_image(tmp_path, paint, photo, n_workers):
    names = [f"{i:02d}.jpg" for i in range(30)]
    for i, name in enumerate(names):
        paint(tmp_path / name, i)
    photo(300, 200).save(tmp_path / "07.jpg")
    (tmp_path / "07.jpg").write_bytes((tmp_path / "07.jpg").read_bytes()[:-500])
    (tmp_path / "13.jpg").write_bytes(b"")
    (tmp_path / "29.jpg").unlink()
    paint(tmp_path / "a\tb.jpg")
    quarantine, progress = Quarantine(), []
    usable = inspect(
        FileImages(tmp_path, [*names, "a\tb.jpg"]), quarantine, n_workers=n_workers, on_progress=progress.append
    )
    assert usable.tolist() == [i for i in range(30) if i not in (7, 13, 29)]
    assert usable.dtype == np.int64
    assert quarantine.reasons["07.jpg"] == "truncated"
    assert quarantine.reasons["13.jpg"] == "file is empty"
    assert quarantine.reasons["29.jpg"] == "file is missing"
    assert quarantine.reasons["a\tb.jpg"].startswith("name with a tab")
    assert progress == sorted(progress)
    assert progress[-1] == 31
    with pytest.raises(IgcdError, match="4 of 31 images"):
        quarantine.check(31)


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\rb", "a\x1bb", "a\u2028b", "a\udce9b", "\x7f"])
def test_names_that_fit_on_no_line_are_set_aside(name):
    quarantine = Quarantine()
    usable = inspect(ArrayImages([name, "good"], np.zeros((2, 2, 2, 3), np.uint8)), quarantine)
    assert usable.tolist() == [1]
    assert name in quarantine


@pytest.mark.parametrize("name", ["a b", "héron", "木.jpg", "🦊", "a\u202fb", "1,2;3"])
def test_unusual_but_plain_names_stay(name):
    quarantine = Quarantine()
    assert inspect(ArrayImages([name], np.zeros((1, 2, 2, 3), np.uint8)), quarantine).tolist() == [0]


def test_nothing_to_inspect():
    assert inspect(ArrayImages([], np.zeros((0, 2, 2, 3), np.uint8)), Quarantine()).tolist() == []
