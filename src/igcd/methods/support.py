"""S as a method keeps it: the images, and where they are asked for, means of the space that training does not move."""

from collections import Counter
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.encoders.encoder import Encoder
from igcd.encoders.trunk_views import TrunkViews
from igcd.memory.support_set import SupportSet
from igcd.methods.feature_space import FeatureSpace
from igcd.methods.kept_images import ImageBuffer
from igcd.methods.kept_statistics import KeptStatistics
from igcd.methods.stage_views import LabeledViews
from igcd.methods.states import State, part_of


class SupportImages(ImageBuffer):
    """A few images of each cluster, encoded again whenever the feature has changed.

    With `keeps_means`, each image takes the position of its cluster's mean in the frozen space: five images describe a
    category worse than the mean of all that were labeled.
    """

    def __init__(self, encoder: Encoder, space: FeatureSpace, *, n_per_cluster: int, keeps_means: bool) -> None:
        super().__init__(n_per_cluster=n_per_cluster, size=encoder.transform.canvas)
        self._encoder, self._space, self._keeps_means = encoder, space, keeps_means
        self.means = KeptStatistics(0)

    @property
    def views(self) -> TrunkViews:
        """The plain views of all images."""
        return self._encoder.plain_views(self.images())

    def with_images_of(self, labeled: LabeledViews) -> tuple[Tensor, Tensor]:
        """Where peaks are looked for, features and clusters of the labeled set, R and S. (n, d), (n,).

        An image that is in several of them counts once, or it would be among the closest to a peak three times.
        """
        in_support = set(self.entries.image_ids)
        ids = [labeled.images.ids[i] for i in labeled.views.usable_idx.tolist()]
        rest = torch.tensor([image_id not in in_support for image_id in ids], dtype=torch.bool)
        h = torch.cat([self._space.for_peaks(labeled.views)[rest], self._space.for_peaks(self.views)])
        return h, torch.cat([labeled.clusters[rest], self.clusters])

    def note_means(self, views: TrunkViews, rows: Tensor, clusters: Tensor) -> None:
        """Keeps the mean of the frozen feature of each cluster's images, (m,), (m,), where means are asked for."""
        if self._keeps_means and len(rows):
            h = self._space.for_peaks(views)[rows]
            if len(self.means) == 0:
                self.means = KeptStatistics(h.shape[1])
            self.means.put(h, clusters)

    def note_labeled_means(self, labeled: LabeledViews) -> None:
        """Means of the categories labeled now, unless there is one of more images."""
        clusters = labeled.clusters[labeled.is_of_stage]
        n_kept = dict(zip(self.means.clusters.tolist(), self.means.of.counts.tolist(), strict=True))
        n_now = Counter(clusters.tolist())
        is_better = torch.tensor([n_now[c] >= n_kept.get(c, 0) for c in clusters.tolist()], dtype=torch.bool)
        rows = labeled.is_of_stage.nonzero()[:, 0][is_better]
        self.note_means(labeled.views, rows, labeled.clusters[rows])

    def encoded(self, features: Callable[[TrunkViews], Tensor]) -> SupportSet:
        """S with these features of its images."""
        h, support = features(self.views), SupportSet(n_per_category=self.entries.n_per_category)
        for pseudo in (False, True):
            rows = (self.entries.is_pseudo == pseudo).nonzero()[:, 0]
            ids = [self.entries.image_ids[row] for row in rows.tolist()]
            support.add(h[rows], self.entries.categories[rows], ids, pseudo_labeled=pseudo)
        return support

    def compared(self) -> SupportSet:
        """S as the classifier compares with it."""
        support = self.encoded(self._space.compared)
        row_of = {cluster: row for row, cluster in enumerate(self.means.clusters.tolist())}
        rows = torch.tensor([row_of.get(cluster, -1) for cluster in support.categories.tolist()])
        if row_of:
            has_mean, h = rows >= 0, support.features.clone()
            means = normalize(self.means.of.means, dim=1)[rows[has_mean]]
            h[has_mean] = self._space.with_frozen(h[has_mean], means)
            support.refresh(h)
        return support

    def state_parts(self) -> dict[str, State]:
        """The images and the means."""
        return {"support_images": self.state_dict(), "means": (self.means.state_dict(), {})}

    def load_state_parts(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_parts`."""
        stored = ImageBuffer.from_state_dict(part_of(tensors, "support_images"), part_of(metadata, "support_images"))
        self.entries, self._key_of = stored.entries, stored._key_of
        self.means = KeptStatistics.from_state_dict(part_of(tensors, "means"))
