"""A photo seen twice: as a whole, and its middle enlarged."""

from dataclasses import replace

import numpy as np
import pytest
from workspace.painted_photos import paint_categories

from igcd.data.quarantine import Quarantine
from igcd.embedding.engines import photo_encoder
from igcd.encoders.backbone import build_backbone
from igcd.encoders.encoder import Encoder
from igcd.encoders.middle import cut, smaller
from igcd.encoders.trunk_cache import TrunkCache
from igcd.encoders.views import Transform
from igcd.training import Optimization
from igcd.workspace.adapt import adapt_tail, current_encoder
from igcd.workspace.catalog import open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.features import AdaptedEncoder, FrozenEncoder, encoder_of, open_tail
from igcd.workspace.init import init_workspace
from igcd.workspace.middle import WholeAndMiddle, as_seen


class MeanColor:
    """A stand-in for a network: the mean color of what it sees, of length 1."""

    key = "mean color"
    size = 6

    def __call__(self, pixels):
        assert pixels.shape[1:] == (6, 6, 3)
        means = pixels.reshape(len(pixels), -1, 3).mean(axis=1)
        return (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def encoder():
    backbone = build_backbone("resnet10t", weights="random", size=32, tail="adapter", adapter_width=16)
    return Encoder(
        backbone, Transform(32, sees_middle=True), TrunkCache(None), n_views=2, quarantine=Quarantine(limit=1.0)
    )


def test_the_feature_points_half_way_between_both_looks():
    """Red all around, green in the middle: the whole is mostly red, the middle mostly green."""
    photo = np.zeros((1, 8, 8, 3), dtype=np.uint8)
    photo[..., 0] = 200
    photo[:, 2:6, 2:6] = (0, 200, 0)
    twice = WholeAndMiddle(MeanColor())
    assert (twice.size, twice.key) == (8, "mean color-middle")
    (feature,) = twice(photo)
    looks = []
    for low, high in ((0, 8), (1, 7)):
        reds = greens = 0
        for y in range(low, high):
            for x in range(low, high):
                reds, greens = reds + int(photo[0, y, x, 0] > 0), greens + int(photo[0, y, x, 1] > 0)
        looks.append(np.array([reds, greens, 0]) / np.hypot(reds, greens))
    expected = looks[0] + looks[1]
    np.testing.assert_allclose(feature, expected / np.linalg.norm(expected), atol=0.01)  # a whole is made smaller


def test_a_plain_photo_looks_the_same_twice():
    pixels = np.full((2, 8, 8, 3), 90, dtype=np.uint8)
    np.testing.assert_allclose(WholeAndMiddle(MeanColor())(pixels), MeanColor()(pixels[:, :6, :6]), atol=1e-6)


def test_rows_do_not_depend_on_their_batch(encoder):
    pixels = np.random.default_rng(1).integers(0, 256, size=(5, 43, 43, 3), dtype=np.uint8)
    twice = photo_encoder(encoder, "torch")
    features = twice(pixels)
    assert features.shape == (5, 512)
    assert features.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(twice(pixels[[3, 0]]), features[[3, 0]], atol=1e-5)
    once = FrozenEncoder(encoder)
    looks = once(smaller(pixels, 32)) + once(cut(pixels, 32))
    np.testing.assert_allclose(features, looks / np.linalg.norm(looks, axis=1, keepdims=True), atol=1e-6)


def test_only_who_is_asked_to_looks_twice(encoder):
    once = FrozenEncoder(encoder)
    assert as_seen(replace(encoder, transform=Transform(32)), once) is once
    assert as_seen(encoder, once).key == f"{once.key}-middle"


def test_a_workspace_looks_twice_from_the_first_discovery_to_an_adapted_one(tmp_path, encoder):
    kinds = {"ash": (0, range(8)), "beech": (1, range(8)), "unlabeled": (7, range(10))}
    paint_categories(tmp_path / "photos", kinds)
    init_workspace(tmp_path / "ws", tmp_path / "photos", from_folders=True)
    with open_catalog(tmp_path / "ws") as catalog:
        assert encoder_of(catalog).transform.sees_middle  # the default
        frozen = current_encoder(catalog, encoder)
        path = adapt_tail(catalog, encoder, first_stage=Optimization(1, learning_rate=0.05, batch_size=32))
        assert discover(catalog, frozen).n_new == 10
        adapted = current_encoder(catalog, encoder, adapted=path)
        assert adapted.key == f"{AdaptedEncoder(encoder, open_tail(encoder, path)).key}-middle"
        assert adapted.size == frozen.size == 43
        discover(catalog, adapted, adapted=path)
        assert current_encoder(catalog, encoder).key == adapted.key
        with catalog.snapshot() as db:
            keys = {row["encoder"] for row in db.execute("SELECT DISTINCT encoder FROM features")}
        assert keys == {frozen.key, adapted.key}
