"""A small backbone, and a cache on disk or in memory."""

import pytest

from igcd.encoders.backbone import Backbone, build_backbone
from igcd.encoders.trunk_cache import TrunkCache


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    return build_backbone("tf_efficientnet_lite0", weights="random", size=32)


@pytest.fixture(params=["disk", "memory"])
def cache(request, tmp_path) -> TrunkCache:
    return TrunkCache(tmp_path / "cache" if request.param == "disk" else None, batch_size=4)
