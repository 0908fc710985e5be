"""What methods that end in semi-supervised k-means share: one center per cluster, an image goes to the nearest."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.encoders.trunk_views import TrunkViews
from igcd.errors import IgcdError
from igcd.functional.grouping import distinct
from igcd.functional.kmeans import Clustering, nearest_centers, semi_supervised_kmeans
from igcd.functional.nearest_center import nearest_center
from igcd.functional.novel_start import is_alone, novel_centers
from igcd.methods.base import BaseMethod, StageOptions
from igcd.methods.method import Context
from igcd.methods.states import State
from igcd.training import numbered_generator
from igcd.types import Stage


@dataclass(frozen=True)
class Known:
    """Images that stay in their cluster, or what stands for them."""

    x: Tensor  # (n, d)
    clusters: Tensor  # (n,)


class CenterMethod(BaseMethod):
    """Clusters with a center each. What `igcd.methods.method.Method` asks but `learn` and `kept`."""

    def __init__(
        self,
        context: Context,
        *,
        n_starts: int,
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, **stages)
        self._n_starts = n_starts
        self._clusters = torch.empty(0, dtype=torch.int64)  # (c,) whose centers they are
        self._centers = torch.empty(0, 0)  # (c, d)

    @abstractmethod
    def _compared(self, views: TrunkViews) -> Tensor:
        """The features that are clustered, (n, d)."""

    def _cluster(self, stage: Stage, clamped: Known, known: Known, x: Tensor) -> Tensor:
        """Semi-supervised k-means: moves the centers and opens novel clusters; the clusters of the unlabeled, (n,).

        `clamped` stays where it is, `known` is what the number of novel categories is estimated from.
        """
        n_novel = 0
        if len(x):
            n_novel = min(self._count_novel(stage.index, known.x, known.clusters, x), len(x))
        n_known = len(set(clamped.clusters.tolist()))
        if n_known + n_novel == 0:
            raise IgcdError("there is no category to learn; the first stage must have labels, or novel categories")
        found = self._without_odd_images(clamped, x, n_novel, numbered_generator(self._context.seed, stage.index))
        novel = torch.tensor(self._book.open(n_novel), dtype=torch.int64)
        self._clusters, self._centers = torch.cat([found.category_ids, novel]), found.centers
        return self._clusters[nearest_centers(x, found.centers)]

    def _without_odd_images(self, clamped: Known, x: Tensor, n_novel: int, generator: torch.Generator) -> Clustering:
        """Semi-supervised k-means in which no novel cluster is a single image, while there are others to take.

        Such an image is odd rather than a category: it is left out, and the others are clustered again.
        """
        n_known = len(set(clamped.clusters.tolist()))
        while True:
            found = semi_supervised_kmeans(
                clamped.x,
                clamped.clusters,
                x,
                n_clusters=n_known + n_novel,
                generator=generator,
                initial_centers=self._first_centers(clamped, x, n_novel, generator),
            )
            is_odd = is_alone(found.clusters) & (found.clusters >= n_known)
            if not is_odd.any() or int((~is_odd).sum()) < 2 * n_novel:
                return found
            x = x[~is_odd]

    def _first_centers(self, clamped: Known, x: Tensor, n_novel: int, generator: torch.Generator) -> Tensor:
        """The means of the known clusters, and novel ones among the images these explain worst. -> (c, d).

        k-means++ draws outliers instead, which keep a cluster to themselves.
        """
        ids, rows = distinct(clamped.clusters)
        means = x.new_zeros(len(ids), x.shape[1]).index_add(0, rows, clamped.x) / torch.bincount(rows)[:, None]
        if n_novel == 0:
            return means
        novel = novel_centers(x, means, n_novel, generator=generator, n_starts=self._n_starts)
        return torch.cat([means, novel])

    def _record_opened(self, stage: Stage, unlabeled: TrunkViews, x: Tensor) -> None:
        """Notes clusters opened at this stage as discoveries; x, (n, d), is what was clustered of the unlabeled."""
        is_novel = ~torch.isin(self._clusters, torch.tensor([*self._book.cluster_of.values(), *self._book.found]))
        if not is_novel.any():
            return
        unit = normalize(self._centers, dim=1)
        likeness = (unit @ unit.T).masked_fill(is_novel, -torch.inf)
        nearest_known = {
            int(self._clusters[row]): None if is_novel.all() else int(self._clusters[likeness[row].argmax()])
            for row in is_novel.nonzero()[:, 0].tolist()
        }
        self._record(stage, unlabeled, self._nearest(x), nearest_known)

    def _assign(self, views: TrunkViews) -> tuple[Tensor, Tensor]:
        """The cluster of the nearest center, and how probable it is beside the others."""
        return self._nearest(self._compared(views))

    def _nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows, probs = nearest_center(x, self._centers)
        return self._clusters[rows], probs

    def _state_parts(self) -> dict[str, State]:
        return {"centers": ({"clusters": self._clusters, "centers": self._centers}, {})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._clusters, self._centers = tensors["centers.clusters"], tensors["centers.centers"]
