"""Batches: the same whoever decodes them, broken images left out, memory bounded."""

import io

import numpy as np
import pytest
from PIL import Image

from igcd.data.decoding import decode
from igcd.data.images import ArchiveImages, ArrayImages, Concatenation, FileImages, decode_image, fit
from igcd.data.quarantine import Quarantine
from igcd.errors import IgcdError


@pytest.fixture
def files(tmp_path, photo) -> FileImages:
    """Twenty-three JPEGs of different shapes, of which the images at 4, 5 and 22 are broken."""
    names = [f"{i:02d}.jpg" for i in range(23)]
    for i, name in enumerate(names):
        photo(20 + 3 * i, 60 - i, seed=i).save(tmp_path / name)
    (tmp_path / "04.jpg").write_bytes(b"")
    (tmp_path / "05.jpg").write_bytes(b"text")
    (tmp_path / "22.jpg").write_bytes((tmp_path / "21.jpg").read_bytes()[:-40])
    return FileImages(tmp_path, names)


def one_by_one(images, size):
    return {i: fit(images.pixels_at_least(i, 2 * size), size) for i in range(len(images))}


@pytest.mark.parametrize("n_workers", [1, 2, 7])
@pytest.mark.parametrize("batch_size", [1, 4, 5, 64])
def test_parallel_equals_serial_in_order_without_the_broken(files, n_workers, batch_size):
    good = [i for i in range(23) if i not in (4, 5, 22)]
    slow = one_by_one(files.take(good), 16)
    quarantine = Quarantine()
    batches = list(decode(files, 16, quarantine=quarantine, n_workers=n_workers, batch_size=batch_size))
    assert np.concatenate([idx for idx, _ in batches]).tolist() == good
    assert all(0 < len(idx) == len(pixels) <= batch_size for idx, pixels in batches)
    assert all(len({i // batch_size for i in idx.tolist()}) == 1 for idx, _ in batches)
    np.testing.assert_array_equal(np.concatenate([pixels for _, pixels in batches]), np.stack([*slow.values()]))
    assert dict(quarantine.reasons) == {"04.jpg": "file is empty", "05.jpg": "not an image", "22.jpg": "truncated"}


def test_a_square_is_the_same_however_the_images_are_wrapped(files, tmp_path):
    good = [i for i in range(23) if i not in (4, 5, 22)]
    slow = [*one_by_one(files.take(good), 16).values()]
    contents = [(tmp_path / files.ids[i]).read_bytes() for i in good]
    blob = np.frombuffer(b"".join(contents), dtype=np.uint8)
    archive = ArchiveImages(map(str, good), blob, np.cumsum([0, *map(len, contents)]))
    for images in (
        files.take(good),
        archive,
        Concatenation([archive.take(range(3)), archive.take(range(3, len(good)))]),
    ):
        np.testing.assert_array_equal(np.stack([images.square(i, 16) for i in range(len(good))]), np.stack(slow))


def test_nothing_but_broken_images_gives_no_batch(files):
    quarantine = Quarantine()
    assert list(decode(files.take([4, 5]), 8, quarantine=quarantine)) == []
    assert len(quarantine) == 2


def test_no_images_no_batches():
    assert list(decode(ArrayImages([], np.zeros((0, 8, 8, 3), np.uint8)), 8, quarantine=Quarantine())) == []


def test_arrays_of_the_size_are_sliced_not_decoded(monkeypatch):
    array = np.random.default_rng(0).integers(0, 256, (10, 8, 8, 3), dtype=np.uint8)
    images = Concatenation([ArrayImages("abcdef", array[:6]), ArrayImages("ghij", array[6:])]).take([9, *range(9)])
    monkeypatch.setattr(ArrayImages, "pixels", None)  # calling it would fail
    batches = list(decode(images, 8, quarantine=Quarantine(), batch_size=4))
    assert [len(idx) for idx, _ in batches] == [4, 4, 2]
    np.testing.assert_array_equal(np.concatenate([pixels for _, pixels in batches]), array[[9, *range(9)]])


def test_arrays_of_another_size_are_resized():
    array = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)
    [(_, pixels)] = decode(ArrayImages("abcde", array), 12, quarantine=Quarantine())
    assert pixels.shape == (5, 12, 12, 3)
    np.testing.assert_array_equal(pixels[3], fit(array[3], 12))


def test_few_images_are_read_ahead_of_the_reader():
    read = []

    class Counted(ArrayImages):
        def pixels(self, idx):
            read.append(idx)
            return super().pixels(idx)

    images = Counted([str(i) for i in range(200)], np.zeros((200, 4, 4, 3), np.uint8))
    batches = decode(images, 8, quarantine=Quarantine(), n_workers=2, batch_size=10)
    next(batches)
    batches.close()
    assert 10 <= len(read) <= 40


@pytest.mark.parametrize(("name", "value"), [("size", 0), ("batch_size", 0), ("n_workers", -1)])
def test_counts_below_one_are_refused_at_once(files, name, value):
    with pytest.raises(IgcdError, match=f"{name} must be at least 1, got {value}"):
        decode(files, **{"size": 8, "quarantine": Quarantine(), name: value})


@pytest.mark.parametrize(("width", "height"), [(90, 60), (60, 90), (64, 64), (30, 20), (10, 5)])
def test_fit_is_resize_of_the_short_side_then_center_crop(photo, width, height):
    image, size = photo(width, height), 24
    scale = size / min(width, height)
    resized = image.resize((round(width * scale), round(height * scale)), Image.Resampling.BICUBIC)
    left, top = (resized.width - size) // 2, (resized.height - size) // 2
    slow = np.asarray(resized.crop((left, top, left + size, top + size))).astype(int)
    fast = fit(np.asarray(image), size)
    np.testing.assert_allclose(fast[3:-3, 3:-3], slow[3:-3, 3:-3], atol=1)  # the crop's rim has other neighbors
    assert np.abs(fast - slow).mean() < 2


def test_fit_leaves_the_right_size_alone_and_a_plain_image_plain():
    square = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    assert fit(square, 8) is square
    assert (fit(np.full((50, 9, 3), 77, np.uint8), 20) == 77).all()


def test_fit_takes_the_middle():
    stripes = np.zeros((10, 30, 3), np.uint8)
    stripes[:, 10:20] = 200
    assert (fit(stripes, 10) == 200).all()


def test_a_very_long_image_does_not_blow_up():
    assert fit(np.zeros((1, 100_000, 3), np.uint8), 224).shape == (224, 224, 3)


def test_reducing_while_decoding_hardly_shows(photo):
    file = io.BytesIO()
    photo(1200, 900).save(file, "JPEG", quality=90)
    whole = fit(decode_image(file.getvalue()), 96).astype(int)
    reduced = fit(decode_image(file.getvalue(), at_least=192), 96)
    assert np.abs(whole - reduced).mean() < 1
