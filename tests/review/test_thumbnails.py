"""Small pictures: made once, kept whole, bounded, and never in the way of looking."""

import io
import os

import numpy as np
import pytest
from PIL import Image
from workspace.sample_catalog import sample_workspace

from igcd.data.images import BrokenImageError
from igcd.review import thumbnails as module
from igcd.review.thumbnails import SMALL, Thumbnails, encode, remove_oldest, write_atomically
from igcd.workspace.catalog import open_catalog
from igcd.workspace.photo_files import photo_path


@pytest.fixture
def photos(tmp_path):
    return sample_workspace(tmp_path, known={"owl": 1}, novel={"hare": 3}, size=700)


@pytest.fixture
def catalog(photos, tmp_path):  # noqa: ARG001 - they are in it
    with open_catalog(tmp_path / "ws") as opened:
        yield opened


def test_a_thumbnail_is_made_once_and_kept(catalog, photos, monkeypatch):
    thumbnails = Thumbnails(catalog)
    content = thumbnails.make_small(photos["hare"][0])
    assert Image.open(io.BytesIO(content)).size == (SMALL, SMALL)
    monkeypatch.setattr(module, "encode", lambda *_: pytest.fail("made a second time"))
    assert Thumbnails(catalog).make_small(photos["hare"][0]) == content
    assert [path.name for path in thumbnails.folder.rglob("*") if path.is_file()] == [f"{photos['hare'][0]}.jpg"]


def test_the_shape_is_kept_and_small_photos_are_not_blown_up(catalog, photos):
    path = photo_path(catalog, photos["hare"][1])
    Image.fromarray(np.zeros((400, 1200, 3), dtype=np.uint8)).save(path)
    assert Image.open(io.BytesIO(encode(catalog, photos["hare"][1], 300))).size == (300, 100)
    Image.fromarray(np.zeros((40, 60, 3), dtype=np.uint8)).save(path)
    assert Image.open(io.BytesIO(encode(catalog, photos["hare"][1], 300))).size == (60, 40)


def test_metadata_of_the_photo_stays_behind(catalog, photos):
    path = photo_path(catalog, photos["hare"][0])
    exif = Image.Exif()
    exif[0x010E] = "where the nest is"
    Image.open(path).save(path, exif=exif)
    assert b"where the nest is" in path.read_bytes()
    assert b"where the nest is" not in encode(catalog, photos["hare"][0], SMALL)


def test_a_broken_photo_is_told_apart_and_nothing_is_kept(catalog, photos):
    photo_path(catalog, photos["hare"][0]).write_bytes(b"no picture")
    thumbnails = Thumbnails(catalog)
    with pytest.raises(BrokenImageError):
        thumbnails.make_small(photos["hare"][0])
    assert not thumbnails.path(photos["hare"][0]).exists()


def test_a_disk_that_takes_nothing_does_not_stop_the_picture(catalog, photos):
    thumbnails = Thumbnails(catalog)
    thumbnails.folder.write_text("a file where the folder should be")
    assert thumbnails.make_small(photos["hare"][0]).startswith(b"\xff\xd8")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(module.Path, "replace", refuse)
    with pytest.raises(OSError, match="full"):
        write_atomically(tmp_path / "0" / "1.jpg", b"content")
    assert not list((tmp_path / "0").iterdir())


def test_what_was_used_longest_ago_goes_first(tmp_path):
    for age, name in enumerate("abcd"):
        path = tmp_path / "0" / f"{name}.jpg"
        write_atomically(path, b"x" * 100)
        os.utime(path, (1000 - age, 1000 - age))
    assert remove_oldest(tmp_path, keep_bytes=250) == 200
    assert sorted(path.name for path in tmp_path.rglob("*.jpg")) == ["a.jpg", "b.jpg"]


def test_the_cache_is_bounded(catalog, photos):
    thumbnails = Thumbnails(catalog)
    n_bytes = len(thumbnails.make_small(photos["hare"][0]))
    bounded = Thumbnails(catalog, max_bytes=int(1.5 * n_bytes))
    for photo_id in photos["hare"]:
        bounded.make_small(photo_id)
        assert sum(path.stat().st_size for path in bounded.folder.rglob("*.jpg")) <= bounded.max_bytes
