"""An image seen twice, as a whole and its middle enlarged, by every method."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import normalize

from igcd.config import read_recipe
from igcd.data.decoding import decode
from igcd.data.images import ArrayImages
from igcd.encoders.encoder import Encoder, encode
from igcd.encoders.middle import cut, half_way, smaller
from igcd.encoders.trunk_cache import TrunkCache
from igcd.encoders.trunk_views import embed
from igcd.encoders.views import Transform
from igcd.workspace.features import FrozenEncoder
from igcd.workspace.middle import as_seen

TWICE = Transform(32, sees_middle=True)


def make_images(n: int = 6, side: int = 43) -> ArrayImages:
    pixels = np.random.default_rng(0).integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    return ArrayImages([str(i) for i in range(n)], pixels)


def test_the_whole_is_made_smaller_as_pillow_does_it():
    pixels = np.random.default_rng(0).integers(0, 256, size=(3, 43, 43, 3), dtype=np.uint8)
    for image, shrunk in zip(pixels, smaller(pixels, 32), strict=True):
        twin = np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR))
        assert np.abs(shrunk.astype(int) - twin).max() <= 1  # they round in another order


def test_the_middle_has_the_same_margin_all_around():
    for side, size in ((299, 224), (347, 260), (43, 32)):
        image = np.zeros((1, side, side, 1), dtype=np.uint8)
        margin = (side - size) // 2
        image[:, margin, margin] = image[:, margin + size - 1, margin + size - 1] = 1
        (middle,) = cut(image, size)
        assert middle.shape == (size, size, 1)
        assert middle[0, 0] == middle[-1, -1] == 1


def test_of_one_look_the_feature_stays_as_it_is():
    feature = torch.tensor([[3.0, 4.0]])
    assert half_way([feature]) is feature
    # However long the features are, each look counts alike.
    torch.testing.assert_close(
        half_way([10 * feature, torch.tensor([[4.0, -3.0]])]), torch.tensor([[1.4, 0.2]]) / 2**0.5
    )


def test_both_looks_are_cached_before_the_augmented_views(cache, backbone):
    images = make_images()
    views = cache.views(backbone, images, TWICE, n_views=2, seed=3)
    looks, rows = views.looks(np.arange(6)), np.arange(6)
    pixels = np.stack([images.pixels(i) for i in range(6)])
    for look, seen in zip(looks, (smaller(pixels, 32), cut(pixels, 32)), strict=True):
        alone = ArrayImages([f"{i}" for i in range(6)], seen)
        (expected,) = cache.views(backbone, alone, Transform(32), n_views=0).looks(rows)
        torch.testing.assert_close(look, expected, rtol=1e-2, atol=1e-3)
    live = cache.live(backbone, images, TWICE, seed=3)
    for view in (0, 1):
        number = np.full(6, view)
        torch.testing.assert_close(views.gather(rows, number), live.gather(rows, number), rtol=1e-2, atol=1e-3)
    assert all(torch.equal(one, other) for one, other in zip(live.looks(rows), looks, strict=True))


def test_who_looks_once_and_who_looks_twice_share_no_rows(cache, backbone):
    images = make_images()
    twice, once = (
        embed(cache.views(backbone, images, transform, n_views=0), backbone.tail)
        for transform in (TWICE, Transform(32))
    )
    assert not torch.allclose(normalize(twice, dim=1), normalize(once, dim=1), atol=1e-3)
    again = embed(cache.views(backbone, images, TWICE, n_views=0), backbone.tail, batch_size=4)
    torch.testing.assert_close(again, twice)


@pytest.mark.parametrize("sees_middle", [False, True])
def test_methods_and_workspaces_see_an_image_alike(backbone, sees_middle):
    images = make_images()
    encoder = Encoder(backbone, replace(TWICE, sees_middle=sees_middle), TrunkCache(None), n_views=2)
    by_methods = encode(encoder.plain_views(images), backbone.tail, n_features=backbone.n_features)
    photographs = as_seen(encoder, FrozenEncoder(encoder))
    ((_, pixels),) = decode(images, photographs.size, quarantine=encoder.quarantine)
    torch.testing.assert_close(by_methods, torch.from_numpy(photographs(pixels)), rtol=0, atol=2e-3)


def test_a_recipe_may_ask_for_it():
    assert not read_recipe("cifar100-mi").encoder.middle
    assert read_recipe("cifar100-mi", ["encoder.middle=true"]).encoder.middle
