"""A floor: semi-supervised k-means on the pretrained feature. Nothing is trained, nothing but centers is kept.

What k-means reads of clamped images is the sum and the number of each category. So a mean that counts for n images does
what the n images would do, and the images need not be kept.
"""

from collections.abc import Iterable, Mapping
from typing import Unpack

import torch
from torch import Tensor

from igcd.encoders.encoder import encode
from igcd.encoders.trunk_views import TrunkViews
from igcd.methods.base import StageOptions, name_of
from igcd.methods.centers import CenterMethod, Known
from igcd.methods.method import Context, Kept
from igcd.methods.states import State, part_of
from igcd.types import Images, Stage


class KMeans(CenterMethod):
    """k-means on a feature that stands still. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        n_starts: int = 10,
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, n_starts=n_starts, **stages)
        self._clamped = torch.empty(0, dtype=torch.int64)  # (c,) clusters that stay where they are
        self._sums = torch.empty(0, self._encoder.backbone.n_features)  # (c, d) over their images
        self._counts = torch.empty(0, dtype=torch.int64)  # (c,)
        self._last_labeled = ""  # a digest of the labeled images learned last

    def learn(self, stage: Stage) -> None:
        """Adds labeled images to the means of their categories, then clusters the unlabeled ones around them."""
        self._forget(self._take_in_labels(stage))  # the means of guessed images
        labeled, unlabeled = (self._encoder.plain_views(images) for images in (stage.labeled, stage.unlabeled))
        x_labeled, x = self._compared(labeled), self._compared(unlabeled)
        clusters = self._book.of(stage.labels)[torch.from_numpy(labeled.usable_idx)]
        self._add_labeled(stage.labeled, x_labeled, clusters)

        means = self._sums / self._counts[:, None]
        clamped = Known(means.repeat_interleave(self._counts, dim=0), self._clamped.repeat_interleave(self._counts))
        is_absent = ~torch.isin(self._clamped, clusters)  # a category without images at this stage is known by its mean
        known = Known(torch.cat([x_labeled, means[is_absent]]), torch.cat([clusters, self._clamped[is_absent]]))
        clusters_of_x = self._cluster(stage, clamped, known, x)

        self._record_opened(stage, unlabeled, x)
        is_discovered = ~torch.isin(clusters_of_x, self._clamped)
        self._add(x[is_discovered], clusters_of_x[is_discovered])

    def _add_labeled(self, images: Images, x: Tensor, clusters: Tensor) -> None:
        """IGCD-l shows the labeled images of stage 0 again at stage 1: the same images are not counted twice."""
        name = name_of(images)
        if name != self._last_labeled and len(clusters):
            self._last_labeled = name
            self._add(x, clusters)

    def _add(self, x: Tensor, clusters: Tensor) -> None:
        new = sorted(set(clusters.tolist()) - set(self._clamped.tolist()))
        self._clamped = torch.cat([self._clamped, torch.tensor(new, dtype=torch.int64)])
        row_of = {cluster: row for row, cluster in enumerate(self._clamped.tolist())}
        rows = torch.tensor([row_of[cluster] for cluster in clusters.tolist()], dtype=torch.int64)
        sums = torch.cat([self._sums, torch.zeros(len(new), self._sums.shape[1])])
        counts = torch.cat([self._counts, torch.zeros(len(new), dtype=torch.int64)])
        self._sums = sums.index_add(0, rows, x)
        self._counts = counts + torch.bincount(rows, minlength=len(counts))

    def _forget(self, clusters: Iterable[int]) -> None:
        stays = ~torch.isin(self._clamped, torch.tensor(sorted(clusters), dtype=torch.int64))
        self._clamped, self._sums, self._counts = self._clamped[stays], self._sums[stays], self._counts[stays]

    def _compared(self, views: TrunkViews) -> Tensor:
        """The pretrained feature, (n, d)."""
        return encode(views, self._encoder.backbone.tail, n_features=self._encoder.backbone.n_features).cpu()

    def kept(self) -> Kept:
        """No image; the bytes are those of the means."""
        n_bytes = sum(part.numel() * part.element_size() for part in (self._sums, self._counts))
        return Kept(replay_images=0, support_images=0, images=0, pseudo_labeled=0, bytes=n_bytes)

    def _state_parts(self) -> dict[str, State]:
        means = {"clamped": self._clamped, "sums": self._sums, "counts": self._counts}
        return super()._state_parts() | {"means": (means, {"last_labeled": self._last_labeled})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        means = part_of(tensors, "means")
        self._clamped, self._sums, self._counts = means["clamped"], means["sums"], means["counts"]
        self._last_labeled = metadata["means.last_labeled"]
