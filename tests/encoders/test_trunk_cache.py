"""Cached trunk outputs are the live ones in half precision, computed once, never trusted when damaged."""

import json
import multiprocessing
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from igcd.data.images import ArrayImages, FileImages
from igcd.data.quarantine import Quarantine
from igcd.encoders import trunk_cache
from igcd.encoders.backbone import Backbone, build_backbone
from igcd.encoders.row_index import row_keys
from igcd.encoders.trunk_cache import TrunkCache
from igcd.encoders.trunk_views import embed
from igcd.encoders.views import UNO_SMALL, Transform
from igcd.errors import IgcdError

TRANSFORM = Transform(32)


def make_backbone(seed: int = 0) -> Backbone:
    return build_backbone("tf_efficientnet_lite0", weights="random", size=32, seed=seed)


def make_images(n: int = 10, seed: int = 0) -> ArrayImages:
    pixels = np.random.default_rng(seed).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    return ArrayImages([f"{seed}-{i}" for i in range(n)], pixels)


class CountedTrunk:
    """Counts the images that go through a trunk."""

    def __init__(self, backbone: Backbone, monkeypatch: pytest.MonkeyPatch) -> None:
        self.n_images = 0
        forward = backbone.trunk.forward

        def counted(images):
            self.n_images += len(images)
            return forward(images)

        monkeypatch.setattr(backbone.trunk, "forward", counted)


@pytest.fixture
def counted(backbone, monkeypatch) -> CountedTrunk:
    return CountedTrunk(backbone, monkeypatch)


def everything(views) -> torch.Tensor:
    """All views of all images, (n, 1 + n_views, ...)."""
    rows = views.usable_idx
    columns = [views.gather(rows, np.full(len(rows), view)) for view in range(views.n_views)]
    return torch.stack([*views.looks(rows), *columns], dim=1)


def test_cached_views_are_the_live_ones_in_half_precision(cache, backbone):
    images = make_images()
    cached = cache.views(backbone, images, TRANSFORM, n_views=3, seed=5)
    live = cache.live(backbone, images, TRANSFORM, seed=5)
    rows, views = np.array([7, 0, 7, 3]), np.array([2, 0, 1, 1])
    expected = live.gather(rows, views)
    found = cached.gather(rows, views)
    assert found.dtype == torch.float32
    # Half precision keeps 11 bits; below 6e-5 its steps are 6e-8. The last term is for batches of another size.
    bound = expected.abs() * 2**-11 + 2**-25 + 1e-5 * expected.abs().max()
    assert ((found - expected).abs() <= bound).all()
    assert not torch.allclose(found[0], found[2])


def test_a_hit_does_not_touch_the_trunk(cache, backbone, counted):
    images = make_images()
    first = everything(cache.views(backbone, images, TRANSFORM, n_views=2))
    assert counted.n_images == 10 * 3 + 1  # one to learn the size of a row
    counted.n_images = 0
    again = everything(cache.views(backbone, images, TRANSFORM, n_views=2))
    assert counted.n_images == 0
    assert torch.equal(first, again)


def test_other_sets_orders_and_more_views_compute_only_what_is_new(cache, backbone, counted):
    images = make_images()
    full = everything(cache.views(backbone, images, TRANSFORM, n_views=2))
    counted.n_images = 0
    part = cache.views(backbone, images.take([8, 2, 5]), TRANSFORM, n_views=2)
    assert counted.n_images == 0
    assert torch.equal(everything(part), full[[8, 2, 5]])
    cache.views(backbone, images.take([8, 2, 5]), TRANSFORM, n_views=3)
    assert counted.n_images == 3 + 1
    counted.n_images = 0
    cache.views(backbone, images, Transform(32, recipe=UNO_SMALL), n_views=1)
    assert counted.n_images == 10 + 1  # the plain view is the same under every recipe


def test_weights_seed_and_content_are_told_apart(cache, backbone):
    images = make_images()
    base = everything(cache.views(backbone, images, TRANSFORM, n_views=1))
    other_weights = everything(cache.views(make_backbone(seed=1), images, TRANSFORM, n_views=1))
    other_seed = everything(cache.views(backbone, images, TRANSFORM, n_views=1, seed=1))
    other_content = everything(cache.views(backbone, make_images(seed=1), TRANSFORM, n_views=1))
    assert not torch.allclose(base[:, 0], other_weights[:, 0], rtol=1e-2)
    assert torch.equal(base[:, 0], other_seed[:, 0])
    assert not torch.allclose(base[:, 1], other_seed[:, 1], rtol=1e-2)
    assert not torch.allclose(base[:, 0], other_content[:, 0], rtol=1e-2)


def rows_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/shard-*/rows.npy"))


def truncate(folder: Path) -> None:
    path = rows_files(folder)[0]
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_bit(folder: Path) -> None:
    path = rows_files(folder)[0]
    content = bytearray(path.read_bytes())
    content[-500] ^= 1
    path.write_bytes(content)


def swap_keys(folder: Path) -> None:
    path = rows_files(folder)[0].with_name("keys.npy")
    np.save(path, np.load(path)[::-1])


def garble_header(folder: Path) -> None:
    path = rows_files(folder)[0]
    path.write_bytes(b"\x93NUMPY" + path.read_bytes()[6:].replace(b"'shape'", b"'shapf'"))


def remove_rows(folder: Path) -> None:
    rows_files(folder)[0].unlink()


def empty_keys(folder: Path) -> None:
    rows_files(folder)[0].with_name("keys.npy").write_bytes(b"")


def garble_checksum(folder: Path) -> None:
    rows_files(folder)[0].with_name("shard.json").write_text(json.dumps({"checksum": "0" * 32}))


@pytest.mark.parametrize(
    "damage", [truncate, flip_a_bit, swap_keys, garble_header, remove_rows, empty_keys, garble_checksum]
)
def test_a_damaged_file_is_rebuilt_and_never_trusted(tmp_path, backbone, counted, damage):
    images = make_images(6)
    row_bytes = 2 * backbone.trunk(torch.zeros(1, 3, 32, 32)).numel()
    expected = everything(TrunkCache(tmp_path, shard_bytes=4 * row_bytes).views(backbone, images, TRANSFORM, n_views=1))
    assert len(rows_files(tmp_path)) == 3  # two images of two views each
    damage(tmp_path)
    counted.n_images = 0
    found = everything(TrunkCache(tmp_path).views(backbone, images, TRANSFORM, n_views=1))  # as a new process would
    assert counted.n_images == 4 + 1  # only what the damaged shard held
    assert torch.allclose(found, expected, rtol=1e-2, atol=1e-4)
    assert len(rows_files(tmp_path)) == 3


def test_leftovers_of_a_killed_process_are_swept(tmp_path, backbone):
    cache = TrunkCache(tmp_path)
    cache.views(backbone, make_images(2), TRANSFORM, n_views=0)
    store = next(path for path in tmp_path.iterdir() if path.is_dir())
    (store / "unfinished-abc").mkdir()
    (store / "unfinished-abc" / "rows.npy").write_bytes(b"half a file")
    cache.views(backbone, make_images(4), TRANSFORM, n_views=0)
    assert not list(store.glob("unfinished-*"))


def test_the_bound_holds_and_the_least_recently_used_go_first(tmp_path, backbone, counted):
    sets = [make_images(4, seed=seed) for seed in range(3)]
    TrunkCache(tmp_path).views(backbone, sets[0], TRANSFORM, n_views=0)
    one_set = TrunkCache(tmp_path).n_bytes()
    cache = TrunkCache(tmp_path, max_bytes=int(2.5 * one_set))
    cache.views(backbone, sets[1], TRANSFORM, n_views=0)
    cache.views(backbone, sets[0], TRANSFORM, n_views=0)  # now set 1 is the one not used for longest
    kept = cache.views(backbone, sets[1], TRANSFORM, n_views=0)
    before = everything(kept)
    cache.views(backbone, sets[0], TRANSFORM, n_views=0)
    cache.views(backbone, sets[2], TRANSFORM, n_views=0)
    assert cache.n_bytes() <= 2.5 * one_set
    counted.n_images = 0
    cache.views(backbone, sets[0], TRANSFORM, n_views=0)
    cache.views(backbone, sets[2], TRANSFORM, n_views=0)
    assert counted.n_images == 0
    assert torch.equal(everything(kept), before)  # a run that still holds removed views can go on reading them
    cache.views(backbone, sets[1], TRANSFORM, n_views=0)
    assert counted.n_images == 4 + 1


def test_a_request_beyond_the_bound_is_refused_before_computing(tmp_path, backbone, counted):
    with pytest.raises(IgcdError, match="max_bytes"):
        TrunkCache(tmp_path, max_bytes=1000).views(backbone, make_images(), TRANSFORM, n_views=4)
    assert counted.n_images == 1


def share_cache(folder: Path, start, results) -> None:
    torch.set_num_threads(1)
    backbone = make_backbone()
    n_images = 0
    forward = backbone.trunk.forward

    def counted(images):
        nonlocal n_images
        n_images += len(images)
        return forward(images)

    backbone.trunk.forward = counted
    images = make_images(12)
    start.wait()
    row_bytes = 2 * 192
    views = TrunkCache(folder, shard_bytes=6 * row_bytes).views(backbone, images, TRANSFORM, n_views=1)
    results.put((n_images, everything(views).numpy()))


@pytest.mark.slow  # two processes that import PyTorch
def test_two_processes_share_the_work(tmp_path):
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(2), context.Queue()
    processes = [context.Process(target=share_cache, args=(tmp_path, start, results)) for _ in range(2)]
    for process in processes:
        process.start()
    (n_first, first), (n_second, second) = results.get(timeout=120), results.get(timeout=120)
    for process in processes:
        process.join(timeout=60)
    assert n_first + n_second in (24 + 1, 24 + 2)  # every view once, and each may have asked for the size of a row
    assert np.array_equal(first, second)


def test_waiting_is_reported_and_what_nobody_computes_is_computed_first(tmp_path, backbone, counted, monkeypatch):
    """Another process has claimed the first images and goes on as soon as this one waits for it."""
    images, reported = make_images(8), []
    cache = TrunkCache(tmp_path)
    store = cache._store(backbone, TRANSFORM)
    keys = row_keys([images.key(idx) for idx in range(8)], ["plain"])
    other = store.claim(keys[:5], 5)
    other.__enter__()
    monkeypatch.setattr(trunk_cache.time, "sleep", lambda _seconds: other.__exit__(None, None, None))
    views = cache.views(backbone, images, TRANSFORM, n_views=0, progress=lambda *state: reported.append(state))
    assert (3, 8, 5) in reported and reported[-1] == (8, 8)
    assert [state for state in reported if len(state) == 3] == [(3, 8, 5)]
    assert views.usable_idx.tolist() == list(range(8)) and counted.n_images == 8 + 1


def test_broken_images_are_left_out_and_reported(tmp_path, cache, backbone):
    from PIL import Image

    folder = tmp_path / "photos"
    folder.mkdir()
    for i, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (5, 40, 50, 3), dtype=np.uint8)):
        Image.fromarray(pixels).save(folder / f"{i}.png")
    (folder / "2.png").write_bytes(b"")
    images = FileImages(folder, [f"{i}.png" for i in range(5)])
    quarantine = Quarantine()
    done: list[tuple[int, int]] = []
    views = cache.views(
        backbone, images, TRANSFORM, n_views=2, quarantine=quarantine, progress=lambda *state: done.append(state)
    )
    assert views.usable_idx.tolist() == [0, 1, 3, 4]
    assert dict(quarantine.reasons) == {"2.png": "file is empty"}
    assert done[-1] == (5, 5)
    assert embed(views, backbone.tail).shape == (4, 1280)
    with pytest.raises(IgcdError, match="usable_idx"):
        views.looks(np.array([1, 2]))
    with pytest.raises(IgcdError, match="limit"):
        cache.views(backbone, images, TRANSFORM, n_views=2)  # without a quarantine, one of five is too many


def test_values_that_half_precision_cannot_hold_are_refused(cache, backbone, monkeypatch):
    monkeypatch.setattr(backbone.trunk, "forward", lambda images: images.flatten(1) * 1e6)
    with pytest.raises(IgcdError, match="half precision"):
        cache.views(backbone, make_images(3), TRANSFORM, n_views=0)


def test_an_adapter_caches_embeddings(cache):
    backbone = build_backbone("tf_efficientnet_lite0", weights="random", size=32, tail="adapter")
    views = cache.views(backbone, make_images(3), TRANSFORM, n_views=2)
    assert views.looks(np.array([0, 2]))[0].shape == (2, 1280)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(IgcdError, match="cannot be made"):
        TrunkCache(tmp_path / "file" / "cache")


def test_a_full_disk_is_one_sentence(tmp_path, backbone, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(IgcdError, match="no space left"):
        TrunkCache(tmp_path).views(backbone, make_images(2), TRANSFORM, n_views=0)


def test_removing_the_folder_of_a_running_cache_is_survived(tmp_path, backbone):
    cache = TrunkCache(tmp_path / "cache")
    expected = everything(cache.views(backbone, make_images(3), TRANSFORM, n_views=1))
    shutil.rmtree(tmp_path / "cache")
    found = everything(cache.views(backbone, make_images(3), TRANSFORM, n_views=1))
    assert torch.allclose(found, expected, rtol=1e-2, atol=1e-4)
