"""GCD: contrastive fine-tuning, then semi-supervised k-means on the feature, stage after stage.

Read top to bottom: `learn` is a stage, `_loss` the contrastive objective, `_keep` what later k-means are given of it.
GCD itself knows one stage; the few images kept of each category, clamped in later k-means, carry it on.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Unpack

import torch
from torch import Tensor, nn

from igcd.encoders.trunk_views import TrunkViews
from igcd.functional.grouping import distinct
from igcd.methods.base import StageOptions
from igcd.methods.centers import CenterMethod, Known
from igcd.methods.feature_space import Features, FeatureSpace
from igcd.methods.kept_images import ImageBuffer
from igcd.methods.method import Context, Kept
from igcd.methods.projector import Projector, TailAndProjector
from igcd.methods.stage_views import LabeledViews, labeled_and_replayed
from igcd.methods.states import State, part_of
from igcd.methods.two_views import contrastive_loss, two_views
from igcd.training import Batch
from igcd.types import Stage


class Gcd(CenterMethod):
    """Contrastive learning and k-means with clamped images. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        features: Features = "tuned",
        labeled_weight: float = 0.35,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
        n_starts: int = 10,
        n_replay: int = 8,
        frozen_weight: float = 0.5,
        n_components: int = 128,
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, n_starts=n_starts, **stages)
        self._labeled_weight, self._tau_u, self._tau_c = labeled_weight, tau_u, tau_c
        backbone = self._encoder.backbone
        projector = Projector(backbone.n_features, generator=torch.Generator().manual_seed(context.seed))
        self._model = TailAndProjector(backbone.new_tail(), projector)
        self._space = FeatureSpace(
            features, self._encoder, self._model.tail, n_components=n_components, frozen_weight=frozen_weight
        )
        self._replay = ImageBuffer(n_per_cluster=n_replay, size=self._encoder.transform.canvas)  # R
        self._n_images: dict[int, int] = {}  # of each cluster in R, how many images it had when they were chosen

    def learn(self, stage: Stage) -> None:
        """Trains on labeled ∪ R and unlabeled images, clusters the unlabeled around them, and keeps a few of each."""
        self._forget(self._take_in_labels(stage))  # their guessed images
        labeled = labeled_and_replayed(self._encoder, stage.labeled, self._book.of(stage.labels), self._replay)
        unlabeled = self._encoder.training_views(stage.unlabeled)
        self._train(stage, labeled, unlabeled)

        if not self._space.is_fitted:
            self._space.fit(labeled.views, unlabeled)
        known, x = Known(self._compared(labeled.views), labeled.clusters), self._compared(unlabeled)
        clusters_of_x = self._cluster(stage, self._clamped(known), known, x)
        self._record_opened(stage, unlabeled, x)
        self._keep(stage, labeled, known, unlabeled, Known(x, clusters_of_x))

    # Contrastive fine-tuning ---------------------------------------------------------------------------------------

    def _train(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews) -> None:
        if self._space.features == "frozen":
            return
        self._run_training(
            self._model,
            lambda model, batch, _epoch: self._loss(model, batch, labeled, unlabeled),
            stage=stage.index,
            n_labeled=len(labeled.clusters),
            n_unlabeled=len(unlabeled.usable_idx),
        )

    def _loss(self, model: nn.Module, batch: Batch, labeled: LabeledViews, unlabeled: TrunkViews) -> Tensor:
        """(1 − λ) InfoNCE + λ SupCon, on two views of each image."""
        views = two_views(model, batch, labeled.views, labeled.clusters, unlabeled, labeled_apart=True)
        return contrastive_loss(views, labeled_weight=self._labeled_weight, tau_u=self._tau_u, tau_c=self._tau_c)

    # What later stages are given -----------------------------------------------------------------------------------

    def _clamped(self, known: Known) -> Known:
        """Each category at the mean of the images there are, which counts for as many as it once had.

        A few images herded of many have the mean of all, and stand for all: k-means reads no more of them than that.
        """
        ids, rows = distinct(known.clusters)
        counts = torch.bincount(rows, minlength=len(ids))
        means = known.x.new_zeros(len(ids), known.x.shape[1]).index_add(0, rows, known.x) / counts[:, None]
        counts = torch.maximum(counts, torch.tensor([self._n_images.get(cluster, 0) for cluster in ids.tolist()]))
        return Known(means.repeat_interleave(counts, dim=0), ids.repeat_interleave(counts))

    def _count(self, clusters: Tensor) -> None:
        """Notes how many images of each cluster there are now, unless there were more. (n,)."""
        ids, rows = distinct(clusters)
        for cluster, n_images in zip(ids.tolist(), torch.bincount(rows).tolist(), strict=True):
            self._n_images[cluster] = max(n_images, self._n_images.get(cluster, 0))

    def _keep(self, stage: Stage, labeled: LabeledViews, known: Known, unlabeled: TrunkViews, clustered: Known) -> None:
        """Herds a few images of each category labeled now and of each cluster opened now into R."""
        rows = labeled.is_of_stage.nonzero()[:, 0]
        chosen = rows[self._replay.herd(known.x[rows], known.clusters[rows])]
        idx = labeled.views.usable_idx[chosen.numpy()]
        self._replay.add(labeled.images, idx, known.clusters[chosen], pseudo_labeled=False)
        self._count(known.clusters[rows])

        opened = [cluster for cluster, discovery in self._book.found.items() if discovery.stage == stage.index]
        rows = torch.isin(clustered.clusters, torch.tensor(opened, dtype=torch.int64)).nonzero()[:, 0]
        chosen = rows[self._replay.herd(clustered.x[rows], clustered.clusters[rows])]
        idx = unlabeled.usable_idx[chosen.numpy()]
        self._replay.add(stage.unlabeled, idx, clustered.clusters[chosen], pseudo_labeled=True)
        self._count(clustered.clusters[rows])

    def _compared(self, views: TrunkViews) -> Tensor:
        return self._space.compared(views).cpu()

    # What others ask -----------------------------------------------------------------------------------------------

    def kept(self) -> Kept:
        """What is held of past images."""
        return self._replay.kept()

    def _forget(self, clusters: Iterable[int]) -> None:
        clusters = set(clusters)
        self._replay.remove(clusters)
        self._n_images = {cluster: n for cluster, n in self._n_images.items() if cluster not in clusters}

    def _state_parts(self) -> dict[str, State]:
        return super()._state_parts() | {
            "model": (self._model.state_dict(), {}),
            "projection": (self._space.state_dict(), {}),
            "replay": self._replay.state_dict(),
            "counts": ({}, {"n_images": json.dumps(sorted(self._n_images.items()))}),
        }

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._model.load_state_dict(part_of(tensors, "model"))
        self._space.load_state_dict(part_of(tensors, "projection"))
        self._replay = ImageBuffer.from_state_dict(part_of(tensors, "replay"), part_of(metadata, "replay"))
        self._n_images = dict(json.loads(metadata["counts.n_images"]))
