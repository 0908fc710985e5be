"""What methods that end in semi-supervised k-means share: one center per cluster, an image goes to the nearest."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.encoders.trunk_cache import TrunkViews
from igcd.errors import IgcdError
from igcd.functional.kmeans import semi_supervised_kmeans
from igcd.functional.nearest_center import nearest_center
from igcd.methods.clusters import ClusterBook
from igcd.methods.method import Assignment, Discovery, Surroundings
from igcd.methods.novel_count import CountNovel
from igcd.methods.states import State, join, part_of
from igcd.types import UNLABELED, Images, Stage

N_MEMBERS = 12
"""Images named for a discovery, the most probable first."""


@dataclass(frozen=True)
class Known:
    """Images that stay in their cluster, or what stands for them."""

    x: Tensor  # (n, d)
    clusters: Tensor  # (n,)


class CenterMethod(ABC):
    """A book of clusters with a center each. What `igcd.methods.method.Method` asks but `learn` and `kept`."""

    def __init__(self, surroundings: Surroundings, *, count_novel: CountNovel, n_starts: int) -> None:
        self._given, self._encoder = surroundings, surroundings.encoder
        self._count_novel, self._n_starts = count_novel, n_starts
        self._book = ClusterBook()
        self._clusters = torch.empty(0, dtype=torch.int64)  # (c,) whose centers they are
        self._centers = torch.empty(0, 0)  # (c, d)

    @abstractmethod
    def _compared(self, views: TrunkViews) -> Tensor:
        """The features that are clustered, (n, d)."""

    def _take_in_labels(self, stage: Stage) -> set[int]:
        """Gives each newly labeled category a cluster, an earlier discovery or a new one.

        Returns the discoveries whose guessed images are of no use any more: they turned out to be nothing, or have
        true ones now.
        """
        named_before = set(self._book.cluster_of.values())
        unnamed = set(self._clusters.tolist()) - named_before
        predicted = self.predict(stage.labeled).cluster.numpy() if unnamed and len(stage.labels) else stage.labels
        dropped = self._book.take_in_labels(stage.labels, predicted, unnamed)
        self._book.drop(dropped)
        return dropped | (set(self._book.cluster_of.values()) - named_before)

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
        found = semi_supervised_kmeans(
            clamped.x,
            clamped.clusters,
            x,
            n_clusters=n_known + n_novel,
            generator=torch.Generator().manual_seed((self._given.seed << 20) + stage.index),
            n_starts=self._n_starts,
        )
        novel = torch.tensor(self._book.open(n_novel), dtype=torch.int64)
        self._clusters, self._centers = torch.cat([found.category_ids, novel]), found.centers
        return self._clusters[found.clusters]

    def _record(self, stage: Stage, unlabeled: TrunkViews, x: Tensor) -> None:
        """Notes clusters opened at this stage as discoveries, each with its most probable images."""
        is_novel = ~torch.isin(self._clusters, torch.tensor([*self._book.cluster_of.values(), *self._book.found]))
        if not is_novel.any():
            return
        rows, probs = nearest_center(x, self._centers)
        by_probability = probs.argsort(descending=True, stable=True)
        unit = normalize(self._centers, dim=1)
        likeness = (unit @ unit.T).masked_fill(is_novel, -torch.inf)
        for row in is_novel.nonzero()[:, 0].tolist():
            cluster = int(self._clusters[row])
            chosen = by_probability[rows[by_probability] == row][:N_MEMBERS]
            ids = tuple(stage.unlabeled.ids[i] for i in unlabeled.usable_idx[chosen.numpy()].tolist())
            nearest = None if is_novel.all() else int(self._clusters[likeness[row].argmax()])
            self._book.found[cluster] = Discovery(cluster, stage.index, ids, nearest)

    def predict(self, images: Images) -> Assignment:
        """The cluster of the nearest center, and how probable it is beside the others."""
        if len(self._clusters) == 0:
            raise IgcdError("the method has learned nothing yet; let it learn a stage before it predicts")
        views = self._encoder.plain_views(images)
        cluster = torch.full((len(images),), UNLABELED, dtype=torch.int64)
        probability = torch.zeros(len(images))
        if len(views.usable_idx):
            rows, probs = nearest_center(self._compared(views), self._centers)
            cluster[views.usable_idx], probability[views.usable_idx] = self._clusters[rows], probs
        return Assignment(cluster, probability)

    def clusters_of_categories(self) -> dict[int, int]:
        """For each category id of the stages so far, the cluster that stands for it."""
        return dict(self._book.cluster_of)

    def discoveries(self) -> list[Discovery]:
        """The categories found so far without a label, in the order they were found."""
        return list(self._book.found.values())

    def state_dict(self) -> State:
        """All of it as tensors and text, as safetensors stores them."""
        centers = {"clusters": self._clusters, "centers": self._centers}
        return join({"centers": (centers, {}), "book": ({}, self._book.state_dict())})

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        centers = part_of(tensors, "centers")
        self._clusters, self._centers = centers["clusters"], centers["centers"]
        self._book = ClusterBook.from_state_dict(part_of(metadata, "book"))
