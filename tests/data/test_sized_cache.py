"""Images kept at the training size."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from igcd.data import sized_cache
from igcd.data.decoding import decode
from igcd.data.images import BrokenImageError, FileImages, ImageSet
from igcd.data.quarantine import Quarantine
from igcd.data.sized_cache import cached_at_size
from igcd.errors import IgcdError

SIZE = 24


@pytest.fixture
def images(tmp_path: Path, photo: Callable[..., Image.Image]) -> FileImages:
    names = [f"{i}.{'png' if i % 2 else 'jpg'}" for i in range(9)]
    (tmp_path / "photos").mkdir()
    for i, name in enumerate(names):
        photo(60 + 40 * i, 50 + 10 * i, seed=i).save(tmp_path / "photos" / name)
    (tmp_path / "photos" / "4.jpg").write_bytes(b"")
    return FileImages(tmp_path / "photos", names)


def all_pixels(images: ImageSet) -> tuple[np.ndarray, np.ndarray]:
    batches = list(decode(images, SIZE, quarantine=Quarantine(1.0), batch_size=4))
    return np.concatenate([idx for idx, _ in batches]), np.concatenate([pixels for _, pixels in batches])


def test_the_cache_gives_what_decoding_gives(images: FileImages, tmp_path: Path):
    cached = cached_at_size(images, SIZE, tmp_path / "cache")
    for ours, theirs in zip(all_pixels(cached), all_pixels(images), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert cached.ids == images.ids
    assert cached.pixels(3).shape == (SIZE, SIZE, 3)
    with pytest.raises(BrokenImageError, match="empty"):
        cached.pixels(4)


def test_the_second_time_nothing_is_decoded(images: FileImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    done: list[int] = []
    first = cached_at_size(images, SIZE, tmp_path / "cache", on_progress=done.append)
    assert done[-1] == 9
    monkeypatch.setattr(sized_cache, "decode", None)
    again = cached_at_size(images, SIZE, tmp_path / "cache")
    np.testing.assert_array_equal(again.pixels(0), first.pixels(0))


def test_another_size_and_a_changed_file_get_their_own_cache(images: FileImages, tmp_path: Path):
    first = cached_at_size(images, SIZE, tmp_path / "cache")
    other = cached_at_size(images, SIZE + 1, tmp_path / "cache")
    assert first.key(0) != other.key(0)
    before = first.pixels(1).copy()
    Image.new("RGB", (30, 30), (9, 9, 9)).save(tmp_path / "photos" / "1.png")
    changed = cached_at_size(images, SIZE, tmp_path / "cache")
    assert (changed.pixels(1) == 9).all() and not np.array_equal(before, changed.pixels(1))
    assert len(list((tmp_path / "cache").iterdir())) == 3


def test_damage_is_seen_and_decoded_around(images: FileImages, tmp_path: Path):
    folder = tmp_path / "cache"
    sound = [cached_at_size(images, SIZE, folder).pixels(i).copy() for i in (0, 8)]
    (path,) = folder.glob("*/pixels.npy")
    content = bytearray(path.read_bytes())
    content[-1] ^= 0xFF
    path.write_bytes(content)
    damaged = cached_at_size(images, SIZE, folder)
    for i, pixels in zip((0, 8), sound, strict=True):
        np.testing.assert_array_equal(damaged.pixels(i), pixels)
    assert damaged.at_size(np.array([7, 8]), SIZE) is None
    path.write_bytes(content.replace(b"'fortran_order': False", b"'fortran_order': True ", 1))
    np.testing.assert_array_equal(cached_at_size(images, SIZE, folder).pixels(8), sound[1])
    path.write_bytes(content[:1000])
    np.testing.assert_array_equal(cached_at_size(images, SIZE, folder).pixels(8), sound[1])


def test_a_failure_leaves_nothing_half_written(images: FileImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_at_size(images, SIZE, tmp_path / "cache", on_progress=stop)
    assert list((tmp_path / "cache").iterdir()) == []
    monkeypatch.setattr(sized_cache.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 5})())
    with pytest.raises(IgcdError, match="are free; free some space"):
        cached_at_size(images, SIZE, tmp_path / "cache")
