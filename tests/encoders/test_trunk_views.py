"""Views read from the cache or drawn afresh, and the features of plain views."""

import numpy as np
import pytest
import torch

from igcd.data.images import ArchiveImages, ArrayImages
from igcd.encoders.backbone import build_backbone
from igcd.encoders.trunk_cache import TrunkCache
from igcd.encoders.trunk_views import draw_two, embed
from igcd.encoders.views import Transform
from igcd.errors import IgcdError

TRANSFORM = Transform(32)


def make_images(n: int) -> ArrayImages:
    pixels = np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    return ArrayImages([str(i) for i in range(n)], pixels)


def test_fresh_views_differ_each_time_and_follow_the_generator(cache, backbone):
    live = cache.live(backbone, make_images(4), TRANSFORM)
    rows = np.array([2, 0])
    generator = torch.Generator().manual_seed(0)
    first, second = live.two_views(rows, generator)
    third, _ = live.two_views(rows, generator)
    assert first.shape == (2, 192, 1, 1)
    assert not torch.allclose(first, second, rtol=1e-2)
    assert not torch.allclose(first, third, rtol=1e-2)
    again, _ = live.two_views(rows, torch.Generator().manual_seed(0))
    assert torch.equal(first, again)
    assert live.n_views is None


def test_two_views_are_different_and_every_pair_is_as_likely():
    first, second = draw_two(12000, 4, torch.Generator().manual_seed(0))
    assert (first != second).all()
    pairs = np.bincount(first * 4 + second, minlength=16).reshape(4, 4)
    assert pairs.diagonal().sum() == 0
    off_diagonal = pairs[~np.eye(4, dtype=bool)]
    assert abs(off_diagonal - 1000).max() < 150


def test_a_view_that_was_not_cached_is_refused(cache, backbone):
    views = cache.views(backbone, make_images(3), TRANSFORM, n_views=1)
    with pytest.raises(IgcdError, match="view numbers"):
        views.gather(np.array([0]), np.array([1]))
    with pytest.raises(IgcdError, match="at least 2 views"):
        views.two_views(np.array([0]), torch.Generator())


def test_embedding_is_the_backbone_on_plain_views(cache, backbone):
    images = make_images(5)
    found = embed(cache.views(backbone, images, TRANSFORM, n_views=0), backbone.tail, batch_size=2)
    pixels = torch.from_numpy(np.stack([images.pixels(i) for i in range(5)])).permute(0, 3, 1, 2).float() / 255
    mean, std = (torch.tensor(v)[:, None, None] for v in (backbone.normalization.mean, backbone.normalization.std))
    expected = backbone((pixels - mean) / std)
    assert torch.allclose(found, expected, rtol=1e-2, atol=2e-3 * expected.abs().max())


def test_pretrained_features_tell_real_categories_apart(shared_data):
    archive = np.load(shared_data / "cifar100.npz", allow_pickle=False)
    categories = archive["y_train"]
    idx = np.concatenate([np.flatnonzero(categories == category)[:20] for category in range(10)])
    all_images = ArchiveImages([str(i) for i in range(len(categories))], archive["webp_train"], archive["off_train"])
    pretrained = build_backbone(size=64)
    views = TrunkCache(None).views(pretrained, all_images.take(idx), Transform(64), n_views=0)
    features = torch.nn.functional.normalize(embed(views, pretrained.tail), dim=1)
    similarity = (features @ features.T).fill_diagonal_(-1)
    labels = categories[idx]
    accuracy = (labels[similarity.argmax(dim=1).numpy()] == labels).mean()
    assert accuracy > 0.4  # chance is 0.1
