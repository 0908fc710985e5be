"""What a method sees the images through: backbone, views and cache in one."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from igcd.data.quarantine import Quarantine
from igcd.encoders.backbone import Backbone
from igcd.encoders.trunk_cache import Progress, TrunkCache
from igcd.encoders.trunk_views import CachedViews, TrunkViews, embed
from igcd.encoders.views import Transform
from igcd.types import Images


@dataclass(frozen=True)
class Encoder:
    """A backbone with the views it is trained on. `n_views` of each image are cached; None draws fresh ones."""

    backbone: Backbone
    transform: Transform
    cache: TrunkCache
    n_views: int | None
    seed: int = 0
    quarantine: Quarantine = field(default_factory=Quarantine)
    progress: Progress | None = None

    def training_views(self, images: Images) -> TrunkViews:
        """Augmented views and the plain one."""
        if self.n_views is not None:
            return self._cached(images, self.n_views)
        broken = Quarantine(self.quarantine.limit)
        views = self.cache.live(
            self.backbone, images, self.transform, seed=self.seed, quarantine=broken, progress=self.progress
        )
        self._set_aside(broken, images)
        return views

    def plain_views(self, images: Images) -> CachedViews:
        """The plain view alone, and the middle where that is seen as well: for predicting."""
        return self._cached(images, 0)

    def _cached(self, images: Images, n_views: int) -> CachedViews:
        broken = Quarantine(self.quarantine.limit)
        views = self.cache.views(
            self.backbone,
            images,
            self.transform,
            n_views=n_views,
            seed=self.seed,
            quarantine=broken,
            progress=self.progress,
        )
        self._set_aside(broken, images)
        return views

    def _set_aside(self, broken: Quarantine, images: Images) -> None:
        """Notes what could not be decoded, and stops where that is too much of a set."""
        for image_id, reason in broken.reasons.items():
            self.quarantine.add(image_id, reason)
        broken.check(len(images))


def encode(views: TrunkViews, tail: nn.Module, *, n_features: int) -> Tensor:
    """Features h of the plain views of all usable images, in order: (n, d), rows of length 1."""
    if len(views.usable_idx) == 0:
        return torch.empty(0, n_features)
    return normalize(embed(views, tail), dim=1)
