"""What all methods share: the book of clusters, taking in labels, training, filling predictions, recording discoveries.

A method brings `learn`, `_assign` (how it classifies), `_forget` (what it drops together with a cluster), `kept`, and
the parts of its state.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TypedDict

import torch
from torch import Tensor, nn

from igcd.data.images import digest
from igcd.encoders.trunk_views import TrunkViews
from igcd.errors import IgcdError
from igcd.methods.clusters import ClusterBook
from igcd.methods.method import Assignment, Context, Discovery
from igcd.methods.novel_count import CountNovel
from igcd.methods.states import State, join, part_of
from igcd.training import Batch, Optimization, train
from igcd.types import UNLABELED, Images, Stage

N_MEMBERS = 12
"""Images named for a discovery, the most probable first."""


def name_of(images: Images) -> str:
    """A name for a set of images, whatever their order: methods that add up statistics ask whether they know it."""
    return digest("\n".join(sorted(images.ids)).encode())


class StageOptions(TypedDict):
    """What every method is made with, beside its own options. One that trains nothing ignores the first two."""

    first_stage: Optimization
    later_stages: Optimization
    count_novel: CountNovel


class BaseMethod(ABC):
    """The verbs of `igcd.methods.method.Method` that are the same for every method."""

    def __init__(
        self, context: Context, *, first_stage: Optimization, later_stages: Optimization, count_novel: CountNovel
    ) -> None:
        self._context, self._encoder = context, context.encoder
        self._first_stage, self._later_stages, self._count_novel = first_stage, later_stages, count_novel
        self._book = ClusterBook()

    # What a method brings ------------------------------------------------------------------------------------------

    @abstractmethod
    def learn(self, stage: Stage) -> None:
        """Learns from a stage: labeled images, unlabeled images, and what was kept of earlier stages."""

    @abstractmethod
    def _assign(self, views: TrunkViews) -> tuple[Tensor, Tensor]:
        """The most probable cluster of each usable image and its probability, (n,), (n,), on the CPU."""

    @abstractmethod
    def _forget(self, clusters: Iterable[int]) -> None:
        """Drops what is kept of these clusters; the book has dropped them already."""

    def _state_parts(self) -> dict[str, State]:
        """What a state holds besides the book, part by part."""
        return {}

    # Learning ------------------------------------------------------------------------------------------------------

    def _take_in_labels(self, stage: Stage) -> set[int]:
        """Gives each newly labeled category a cluster: the discovery that mostly holds its images, or a new one.

        Discoveries that no label confirms are discarded. Returns those that have become a category: what was guessed
        about them is out of date.
        """
        discovered = set(self._book.found) - set(self._book.cluster_of.values())
        predicted = self.predict(stage.labeled).cluster.numpy() if discovered and len(stage.labels) else stage.labels
        self._discard(self._book.take_in_labels(stage.labels, predicted, discovered))
        return discovered & set(self._book.cluster_of.values())

    def _discard(self, clusters: Iterable[int]) -> None:
        """Closes clusters for good."""
        clusters = set(clusters)
        self._book.drop(clusters)
        self._forget(clusters)

    def _optimization_of(self, stage: int) -> Optimization:
        """How long and how fast a stage trains."""
        return self._first_stage if stage == 0 else self._later_stages

    def _run_training(
        self,
        model: nn.Module,
        loss: Callable[[nn.Module, Batch, int], Tensor],
        *,
        stage: int,
        n_labeled: int,
        n_unlabeled: int,
        optimization: Optimization | None = None,
        before_epoch: Callable[[int], None] = lambda _epoch: None,
    ) -> None:
        """The one training loop, by default as long as the stage asks for."""
        train(
            model,
            loss,
            n_labeled=n_labeled,
            n_unlabeled=n_unlabeled,
            optimization=optimization or self._optimization_of(stage),
            fabric=self._context.fabric,
            seed=self._context.seed * 1000 + stage,
            before_epoch=before_epoch,
            after_epoch=self._context.after_epoch,
            checkpoint=self._context.checkpoint,
        )

    def _record(
        self,
        stage: Stage,
        unlabeled: TrunkViews,
        assigned: tuple[Tensor, Tensor],
        nearest_known: Mapping[int, int | None],
    ) -> None:
        """Notes the clusters opened at this stage as discoveries, each with its most probable images.

        `assigned` are the cluster and the probability of each unlabeled image, (n,), (n,); `nearest_known` names for
        each opened cluster the known one most like it.
        """
        cluster, probability = assigned
        by_probability = probability.argsort(descending=True, stable=True)
        own = cluster[by_probability]
        for opened, nearest in nearest_known.items():
            rows = by_probability[own == opened][:N_MEMBERS].numpy()
            members = tuple(stage.unlabeled.ids[i] for i in unlabeled.usable_idx[rows].tolist())
            self._book.found[opened] = Discovery(opened, stage.index, members, nearest)

    # What others ask -----------------------------------------------------------------------------------------------

    def predict(self, images: Images) -> Assignment:
        """The most probable cluster of each image and its probability; UNLABELED and 0 where it cannot be read."""
        if self._book.n_clusters == 0:
            raise IgcdError("the method has learned nothing yet; let it learn a stage before it predicts")
        views = self._encoder.plain_views(images)
        cluster = torch.full((len(images),), UNLABELED, dtype=torch.int64)
        probability = torch.zeros(len(images))
        if len(views.usable_idx):
            cluster[views.usable_idx], probability[views.usable_idx] = self._assign(views)
        return Assignment(cluster, probability)

    def clusters_of_categories(self) -> dict[int, int]:
        """For each category id of the stages so far, the cluster that stands for it."""
        return dict(self._book.cluster_of)

    def discoveries(self) -> list[Discovery]:
        """The categories found so far without a label, in the order they were found."""
        return list(self._book.found.values())

    def state_dict(self) -> State:
        """All of it as tensors and text, as safetensors stores them."""
        return join({"book": ({}, self._book.state_dict())} | self._state_parts())

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:  # noqa: ARG002
        """The inverse of `state_dict`; a method takes its parts from it besides."""
        self._book = ClusterBook.from_state_dict(part_of(metadata, "book"))
