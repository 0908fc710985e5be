"""What a method keeps of past images when it keeps none of them: the mean and the variance of each cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Unpack

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.encoders.trunk_views import TrunkViews
from igcd.functional.grouping import distinct
from igcd.functional.losses import labeled_loss
from igcd.functional.novel_start import NovelStart
from igcd.functional.prototypes import CategoryStatistics, category_statistics, join_categories
from igcd.methods.base import StageOptions
from igcd.methods.method import Context, Kept
from igcd.methods.parametric import ParametricMethod
from igcd.methods.stage_views import LabeledViews
from igcd.methods.states import State, part_of
from igcd.types import Stage


class KeptStatistics:
    """Mean and variance of the features of each cluster, (c, d); row i belongs to cluster `clusters[i]`."""

    def __init__(self, n_features: int) -> None:
        self.clusters = torch.empty(0, dtype=torch.int64)
        nothing = torch.empty(0, n_features)
        self.of = CategoryStatistics(nothing, nothing, torch.empty(0, dtype=torch.int64))

    def __len__(self) -> int:
        return len(self.clusters)

    def put(self, features: Tensor, clusters: Tensor) -> None:
        """Takes those of these images for their clusters, unless it has those of more images. (n, d), (n,).

        They are not added up: the feature has moved since, and the images may be the same ones.
        """
        ids, rows = distinct(clusters.cpu())
        counts_before = dict(zip(self.clusters.tolist(), self.of.counts.tolist(), strict=True))
        is_better = torch.bincount(rows, minlength=len(ids)) >= torch.tensor(
            [counts_before.get(cluster, 0) for cluster in ids.tolist()]
        )
        if not is_better.any():
            return
        is_taken = is_better[rows]
        ids, rows = distinct(clusters.cpu()[is_taken])
        self.remove(ids.tolist())
        self.of = join_categories(self.of, category_statistics(features.cpu()[is_taken], rows, n_categories=len(ids)))
        self.clusters = torch.cat([self.clusters, ids])

    def remove(self, clusters: Iterable[int]) -> None:
        """Forgets these clusters."""
        stays = ~torch.isin(self.clusters, torch.tensor(sorted(clusters), dtype=torch.int64))
        self.clusters = self.clusters[stays]
        self.of = CategoryStatistics(self.of.means[stays], self.of.variances[stays], self.of.counts[stays])

    def kept(self) -> Kept:
        """No image at all."""
        n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in self.state_dict().values())
        return Kept(replay_images=0, support_images=0, images=0, pseudo_labeled=0, bytes=n_bytes)

    def state_dict(self) -> dict[str, Tensor]:
        """All of it as tensors."""
        return {
            "clusters": self.clusters,
            "means": self.of.means,
            "variances": self.of.variances,
            "counts": self.of.counts,
        }

    @classmethod
    def from_state_dict(cls, tensors: Mapping[str, Tensor]) -> "KeptStatistics":
        """The inverse of `state_dict`."""
        kept = cls(tensors["means"].shape[1])
        kept.clusters = tensors["clusters"]
        kept.of = CategoryStatistics(tensors["means"], tensors["variances"], tensors["counts"])
        return kept


class StatisticsMethod(ParametricMethod):
    """A parametric method that keeps statistics of its clusters, and learns from features drawn of them."""

    def __init__(
        self, context: Context, *, tau: float, novel_start: NovelStart = "split", **stages: Unpack[StageOptions]
    ) -> None:
        super().__init__(context, tau=tau, novel_start=novel_start, **stages)
        self._statistics = KeptStatistics(self._n_features)

    def _take_in_labels(self, stage: Stage) -> set[int]:
        """Statistics of guessed images are dropped where labels arrive, however many images they were of."""
        confirmed = super()._take_in_labels(stage)
        self._statistics.remove(confirmed)
        return confirmed

    def _remember(self, labeled: LabeledViews, unlabeled: TrunkViews, novel: Sequence[int]) -> None:
        """Statistics of the categories labeled now, and of the novel clusters by what is predicted.

        Those of earlier categories stay as they were, unless as many labeled images of them have come back.
        """
        self._statistics.put(self._h(labeled.views), labeled.clusters)
        if novel:
            h = self._h(unlabeled)
            clusters, _ = self._classify(h)
            is_novel = torch.isin(clusters, torch.tensor(novel))
            self._statistics.put(h.cpu()[is_novel], clusters[is_novel])

    def _replay_loss(self, drawn: Tensor, rows: Tensor) -> Tensor:
        """Cross entropy of features drawn of the clusters at these rows of the statistics. (n, d), (n,) -> ()."""
        head = self._model.head
        cosines = self._joined(head(normalize(drawn, dim=1).to(head.prototypes))[:, head.is_open])
        columns = (head.is_open.cumsum(0) - 1)[self._statistics.clusters[rows].to(cosines.device)]
        return labeled_loss((cosines / self._tau).log_softmax(dim=1), columns)

    def _joined(self, cosines: Tensor) -> Tensor:
        """The cosines with all open clusters, without a gradient where a method keeps prototypes. (n, c) -> (n, c)."""
        return cosines

    def _forget(self, clusters: Iterable[int]) -> None:
        super()._forget(clusters)
        self._statistics.remove(clusters)

    def kept(self) -> Kept:
        """Statistics, no image."""
        return self._statistics.kept()

    def _state_parts(self) -> dict[str, State]:
        return super()._state_parts() | {"statistics": (self._statistics.state_dict(), {})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._statistics = KeptStatistics.from_state_dict(part_of(tensors, "statistics"))
