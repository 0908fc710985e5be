"""Images that cannot be read are set aside; a category that has none left is no trouble to the others."""

import numpy as np
import pytest
import torch
from PIL import Image

from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.encoders.backbone import build_backbone
from igcd.encoders.encoder import Encoder
from igcd.encoders.trunk_cache import TrunkCache
from igcd.encoders.views import Transform
from igcd.methods.density_gaussian import DensityGaussian
from igcd.methods.gcd import Gcd
from igcd.methods.kmeans import KMeans
from igcd.types import UNLABELED, Stage


@pytest.fixture(scope="module")
def lenient():
    backbone = build_backbone("resnet10t", weights="random", size=32, tail="adapter", adapter_width=16)
    return Encoder(backbone, Transform(32), TrunkCache(None), n_views=2, quarantine=Quarantine(limit=1.0))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (DensityGaussian, {"features": "dual"}),
        (Gcd, {"features": "dual", "n_starts": 1}),
        (KMeans, {"n_starts": 1}),
    ],
)
def test_broken_images_are_set_aside(make_method, lenient, tmp_path, kind, options):
    rng = np.random.default_rng(0)
    for i in range(8):
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(tmp_path / f"{i}.png")
    for name in ("broken", "other"):
        (tmp_path / f"{name}.png").write_bytes(b"no image")
    images = FileImages(tmp_path, ["broken.png", *(f"{i}.png" for i in range(8)), "other.png"])
    labels = np.array([1, 0, 0, 0, 0], dtype=np.int64)  # all there is of category 1 is broken
    stage = Stage(0, images.take(range(5)), labels, images.take([9, 5, 6, 7, 8]), ("seen", "broken"))
    method = make_method(kind, counts=(1,), encoder=lenient, **options)
    method.learn(stage)
    assignment = method.predict(images)
    assert (assignment.cluster == UNLABELED).tolist() == [True, *[False] * 8, True]
    assert assignment.probability[[0, 9]].tolist() == [0.0, 0.0] and torch.isfinite(assignment.probability).all()
    assert method.clusters_of_categories()[1] not in assignment.cluster.tolist()
    assert {image_id for found in method.discoveries() for image_id in found.members} <= {
        f"{i}.png" for i in range(4, 8)
    }
    assert method.discoveries() or kind is DensityGaussian  # four pictures of noise need not be a category
