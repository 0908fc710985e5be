import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from igcd.data.images import ArrayImages, BrokenImageError, ImageSet
from igcd.hidden import Handle
from igcd.report.picture_sheets import PER_SHEET, TILE, read_pictures
from igcd.run_pictures import PictureRecorder
from igcd.types import Stage, StageTruth, Truth


def images(names):
    array = np.stack([np.full((8, 8, 3), 20 * (number % 12), np.uint8) for number, _ in enumerate(names)])
    return ArrayImages(names, array)


def truth(part):
    n = len(part)
    return Truth(tuple(f"file-{name}" for name in part.ids), tuple("ab"[i % 2] for i in range(n)), ("Old",) * n)


def stage_of(index, *, n=30):
    labeled, unlabeled = images([f"l{index}-{i}" for i in range(n)]), images([f"u{index}-{i}" for i in range(n)])
    tested = images([f"t{i}" for i in range(10 * (index + 1))])  # those of earlier stages come back
    return (
        Stage(index, labeled, np.zeros(n, dtype=np.int64), unlabeled, ("a",)),
        StageTruth(index, truth(labeled), truth(unlabeled), tested, truth(tested)),
    )


def features_of(part):
    rows = np.random.default_rng(len(part)).normal(size=(len(part), 6)).astype(np.float32)
    return np.arange(len(part)), rows


def record(out, **options):
    recorder = PictureRecorder(Handle(out), features_of, seed=0, **options)
    for index in range(2):
        recorder.record(*stage_of(index), 2)
    recorder.finish(2)
    return read_pictures(out)


def test_every_image_has_one_picture_however_often_it_comes(tmp_path):
    pictures = record(tmp_path)
    ids = [image.image_id for image in pictures.images]
    assert len(ids) == len(set(ids)) == 4 * 30 + 20
    assert {image.stage for image in pictures.images if image.image_id.startswith("file-t")} == {0, 1}
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {
        "index.csv",
        "stage-0-0.webp",
        "stage-1-0.webp",
    }


def test_a_large_stream_shows_a_sample_that_stays_the_same(tmp_path):
    first = record(tmp_path / "first", n_pictures=40)
    assert 30 < len(first.images) <= 40
    assert {image.split for image in first.images} == {"labeled", "unlabeled", "test"}
    assert record(tmp_path / "second", n_pictures=40) == first


def test_a_map_that_is_there_is_not_drawn_again(tmp_path):
    record(tmp_path)
    before = (tmp_path / "pictures" / "index.csv").stat().st_mtime_ns
    PictureRecorder(Handle(tmp_path), features_of, seed=1).finish(2)
    assert (tmp_path / "pictures" / "index.csv").stat().st_mtime_ns == before


def test_a_run_that_an_earlier_version_began(tmp_path):
    recorder = PictureRecorder(Handle(tmp_path), features_of, seed=0)
    recorder.record(*stage_of(1), 2)
    recorder.finish(2)
    assert {image.stage for image in read_pictures(tmp_path).images} == {1}


class HalfBroken(ImageSet):
    """Every second image cannot be read."""

    def pixels(self, idx):
        if idx % 2:
            raise BrokenImageError("it is broken")
        return np.full((TILE, TILE, 3), 90, np.uint8)

    def key(self, idx):
        return str(idx)


def test_images_that_cannot_be_read_are_left_out(tmp_path):
    broken = HalfBroken([f"b{i}" for i in range(6)])
    nothing = images(["x"]).take([])
    stage = Stage(0, nothing, np.array([], dtype=np.int64), broken, ())
    recorder = PictureRecorder(Handle(tmp_path), features_of, seed=0)
    recorder.record(stage, StageTruth(0, truth(nothing), truth(broken), nothing, truth(nothing)), 1)
    recorder.finish(1)
    assert [image.image_id for image in read_pictures(tmp_path).images] == ["file-b0", "file-b2", "file-b4"]


def test_more_pictures_than_fit_into_one_sheet(tmp_path):
    many = images([f"m{i}" for i in range(PER_SHEET + 5)])
    nothing = images(["x"]).take([])
    recorder = PictureRecorder(Handle(tmp_path), features_of, seed=0)
    stage = Stage(0, nothing, np.array([], dtype=np.int64), many, ())
    recorder.record(stage, StageTruth(0, truth(nothing), truth(many), nothing, truth(nothing)), 1)
    recorder.finish(1)
    pictures = read_pictures(tmp_path)
    assert [image.sheet for image in pictures.images] == [0] * PER_SHEET + [1] * 5
    assert [image.tile for image in pictures.images[-5:]] == [0, 1, 2, 3, 4]
