"""The labeled images of a stage together with those kept of earlier ones, as the training loop wants them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from igcd.data.images import Concatenation
from igcd.encoders.encoder import Encoder
from igcd.encoders.trunk_views import TrunkViews
from igcd.methods.kept_images import ImageBuffer
from igcd.types import Images


@dataclass(frozen=True)
class LabeledViews:
    """The labeled images of a stage, and behind them those of R."""

    images: Images
    views: TrunkViews
    clusters: Tensor  # (n,) of the usable images
    is_of_stage: Tensor  # (n,) whether labeled now, not replayed

    def joined_by(self, encoder: Encoder, images: Images, clusters: Tensor) -> "LabeledViews":
        """These and other images with their clusters, (m,), all as labeled now."""
        usable = self.images.take(self.views.usable_idx)
        return labeled_and_replayed(
            encoder, Concatenation([usable, images]), torch.cat([self.clusters, clusters]), None
        )


def labeled_and_replayed(
    encoder: Encoder, labeled: Images, clusters: Tensor, replay: ImageBuffer | None
) -> LabeledViews:
    """D^l ∪ R: the labeled images with their clusters, (n,), and what R holds besides them."""
    parts: list[Images] = [labeled]
    if replay is not None:
        labeled_ids = set(labeled.ids)
        rows = [row for row, image_id in enumerate(replay.entries.image_ids) if image_id not in labeled_ids]
        parts.append(replay.images(rows))
        clusters = torch.cat([clusters, replay.clusters[rows]])
    images = Concatenation(parts)
    views = encoder.training_views(images)
    usable_idx = torch.from_numpy(views.usable_idx)
    return LabeledViews(images, views, clusters[usable_idx], usable_idx < len(labeled))
