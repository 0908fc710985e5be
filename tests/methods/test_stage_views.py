"""D^l ∪ R as the training loop wants it."""

import numpy as np
import pytest
import torch

from igcd.data.images import ArrayImages
from igcd.methods.kept_images import ImageBuffer
from igcd.methods.stage_views import labeled_and_replayed


@pytest.fixture
def images():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    return ArrayImages([f"image-{i}" for i in range(5)], pixels)


def replay_of(encoder, images, idx, clusters):
    replay = ImageBuffer(n_per_cluster=3, size=encoder.transform.canvas)
    replay.add(images, np.array(idx, dtype=np.int64), torch.tensor(clusters), pseudo_labeled=False)
    return replay


def test_labeled_images_first_then_those_of_r(encoder, images):
    replay = replay_of(encoder, images, [3, 4], [7, 8])
    both = labeled_and_replayed(encoder, images.take([0, 1]), torch.tensor([1, 2]), replay)
    assert list(both.images.ids) == ["image-0", "image-1", "image-3", "image-4"]
    assert both.clusters.tolist() == [1, 2, 7, 8]
    assert both.is_of_stage.tolist() == [True, True, False, False]
    assert both.views.n_views == encoder.n_views


def test_an_image_that_is_labeled_now_is_not_replayed_with_its_old_cluster(encoder, images):
    replay = replay_of(encoder, images, [1, 3], [7, 8])
    both = labeled_and_replayed(encoder, images.take([0, 1]), torch.tensor([1, 2]), replay)
    assert list(both.images.ids) == ["image-0", "image-1", "image-3"]
    assert both.clusters.tolist() == [1, 2, 8]


@pytest.mark.parametrize("is_replayed", [True, False])
def test_either_may_be_missing(encoder, images, is_replayed):
    replay = replay_of(encoder, images, [3], [7]) if is_replayed else None
    nothing = torch.empty(0, dtype=torch.int64)
    both = labeled_and_replayed(encoder, images.take([]), nothing, replay)
    assert both.clusters.tolist() == [7] * is_replayed and both.is_of_stage.tolist() == [False] * is_replayed
    alone = labeled_and_replayed(encoder, images.take([2]), torch.tensor([4]), None)
    assert alone.clusters.tolist() == [4] and alone.is_of_stage.tolist() == [True]
