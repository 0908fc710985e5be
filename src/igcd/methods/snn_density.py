"""The paper's method: a soft nearest neighbor classifier, density peaks as support, and a replay buffer.

Read top to bottom: `learn` is a stage (section 4), `_loss` the objective (4.2), `_find_novel` the selection of support
samples (4.3), `_keep` the incremental update (4.4).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from igcd.encoders.trunk_views import TrunkViews
from igcd.errors import IgcdError
from igcd.functional import losses
from igcd.functional.granularity import Granularity, estimate_granularity
from igcd.functional.grouping import rank_within_group
from igcd.functional.novel_peaks import DiscoveryRule, find_novel_peaks
from igcd.functional.selection import Select, Selection, select_by, select_per_category
from igcd.memory.support_set import SupportSet
from igcd.methods.base import BaseMethod, StageOptions
from igcd.methods.feature_space import Features, FeatureSpace
from igcd.methods.kept_images import ImageBuffer
from igcd.methods.method import Context, Discovery, Kept
from igcd.methods.novel_count import given_number
from igcd.methods.projector import Projector, TailAndProjector
from igcd.methods.stage_views import LabeledViews, labeled_and_replayed
from igcd.methods.states import State, part_of
from igcd.methods.support import SupportImages
from igcd.methods.two_views import contrastive_loss, two_views
from igcd.training import Batch
from igcd.types import IntArray, Stage

NO_IMAGES: IntArray = np.empty(0, dtype=np.int64)
N_LEARNED = 10
"""`dual`: images around a novel peak, surest to be one category, that are learned under its pseudo-label."""


@dataclass(frozen=True)
class _Novel:
    """The images that carry the pseudo-labels of novel peaks: peak by peak, the peak first."""

    idx: IntArray  # (m,) positions in the unlabeled set
    clusters: Tensor  # (m,)
    nearest_known: dict[int, int]  # cluster -> the known cluster most like it


class SnnDensity(BaseMethod):
    """Soft nearest neighbors with density-selected support and replay. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        features: Features = "tuned",
        labeled_weight: float = 0.35,
        epsilon: float = 2.0,
        tau: float = 0.1,
        tau_u: float = 0.07,
        tau_c: float = 0.1,
        K: int | Literal["auto"] = 10,  # noqa: N803 - as the paper calls it
        K_d: int = 20,  # noqa: N803
        T: float = 0.6,  # noqa: N803
        margin: float | Literal["auto"] = 0.03,
        discovery: DiscoveryRule = "core",
        n_support: int = 5,
        n_replay: int = 3,
        support_selection: Selection = "density",
        replay_selection: Literal["density", "herding", "none"] = "density",
        frozen_support: Literal["images", "means"] = "images",
        frozen_weight: float = 0.5,
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, **stages)
        self._labeled_weight, self._epsilon = labeled_weight, epsilon
        self._tau, self._tau_u, self._tau_c = tau, tau_u, tau_c
        self._max_iou, self._discovery = T, discovery
        self._n_support, self._n_kept = n_support, n_support + n_replay  # per category: in S, in S and R
        n_kept = self._n_kept if discovery == "core" else None
        self._estimate = partial(estimate_granularity, K=K, K_d=K_d, margin=margin, max_iou=T, n_kept=n_kept)
        self._support_selection, self._replay_selection = support_selection, replay_selection
        self._generator = torch.Generator().manual_seed(context.seed)
        backbone = self._encoder.backbone
        self._model = TailAndProjector(backbone.new_tail(), Projector(backbone.n_features, generator=self._generator))
        self._space = FeatureSpace(features, self._encoder, self._model.tail, frozen_weight=frozen_weight)
        self._granularity = Granularity()  # of the last stage that had labels
        keeps_means = frozen_support == "means"
        self._support = SupportImages(self._encoder, self._space, n_per_cluster=n_support, keeps_means=keeps_means)
        self._classifier = SupportSet(n_per_category=n_support)  # S as images are compared with it
        self._replay = ImageBuffer(n_per_cluster=n_replay, size=self._encoder.transform.canvas)  # R

    # Section 4: one stage ------------------------------------------------------------------------------------------

    def learn(self, stage: Stage) -> None:
        """Learns from labeled ∪ R and unlabeled images with S as it grows, then updates S and R for later stages."""
        self._support.means.remove(self._take_in_labels(stage))  # of guessed images
        if not self._book.cluster_of:
            raise IgcdError("the first stage must have labeled images, got none; label some of each known category")
        labeled = labeled_and_replayed(self._encoder, stage.labeled, self._book.of(stage.labels), self._replay)
        unlabeled = self._encoder.training_views(stage.unlabeled)
        if not self._space.is_fitted:
            self._space.fit(labeled.views)
        self._support.note_labeled_means(labeled)
        novel = self._select_support(stage, labeled, unlabeled)
        self._train(stage.index, self._with_pseudo_labeled(stage, labeled, novel), unlabeled)
        if self._space.features == "tuned":  # the space has moved: its peaks are found again
            self._discard(novel.nearest_known)
            novel = self._select_support(stage, labeled, unlabeled)
        else:
            novel = self._choose_among_claimed(stage, unlabeled, novel)
        self._keep(stage, labeled, novel)
        self._classifier = self._support.compared()

    # Section 4.2: classifier learning ------------------------------------------------------------------------------

    def _with_pseudo_labeled(self, stage: Stage, labeled: LabeledViews, novel: _Novel) -> LabeledViews:
        """`dual`: the images closest to each novel peak join the labeled ones under its pseudo-label."""
        rows = rank_within_group(novel.clusters) < N_LEARNED
        if self._space.features != "dual" or not rows.any():
            return labeled
        return labeled.joined_by(self._encoder, stage.unlabeled.take(novel.idx[rows.numpy()]), novel.clusters[rows])

    def _train(self, stage: int, labeled: LabeledViews, unlabeled: TrunkViews) -> None:
        if self._space.features == "frozen":
            return
        self._refresh()
        n_epochs = self._optimization_of(stage).n_epochs
        row_of = {cluster: row for row, cluster in enumerate(self._classifier.category_ids.tolist())}
        targets = torch.tensor([row_of[cluster] for cluster in labeled.clusters.tolist()], dtype=torch.int64)
        self._run_training(
            self._model,
            lambda model, batch, epoch: self._loss(model, batch, epoch / n_epochs, labeled.views, targets, unlabeled),
            stage=stage,
            n_labeled=len(labeled.clusters),
            n_unlabeled=len(unlabeled.usable_idx),
            before_epoch=self._refresh,
        )

    def _refresh(self, _epoch: int = 0) -> None:
        """S with the feature as it is trained by now; no gradient goes through it."""
        self._classifier = self._support.encoded(self._space.tuned)

    def _loss(
        self,
        model: nn.Module,
        batch: Batch,
        progress: float,
        labeled: TrunkViews,
        targets: Tensor,
        unlabeled: TrunkViews,
    ) -> Tensor:
        """L = L_rep + L_cls, eq. 1 to 7, on two views of each image; λ_rep = λ_cls, the labeled weight."""
        weight, support = self._labeled_weight, self._classifier
        views = two_views(model, batch, labeled, targets, unlabeled, labeled_apart=True)
        l_rep = contrastive_loss(views, labeled_weight=weight, tau_u=self._tau_u, tau_c=self._tau_c)
        log_probs = support.log_probs(views.labeled_h, tau=self._tau)
        l_labeled = losses.labeled_loss(log_probs, views.targets.repeat(2))
        both_ways = [
            losses.unlabeled_loss(
                support.log_probs(h_target, tau=losses.target_temperature(progress)),
                support.log_probs(h_anchor, tau=self._tau),
                entropy_weight=self._epsilon,
            )
            for h_target, h_anchor in (views.unlabeled_h, views.unlabeled_h[::-1])
        ]
        l_unlabeled = (both_ways[0] + both_ways[1]) / 2
        return losses.total_loss(l_rep, losses.classifier_loss(l_labeled, l_unlabeled, labeled_weight=weight))

    # Section 4.3: support sample selection -------------------------------------------------------------------------

    def _select_support(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews) -> _Novel:
        """S again for the categories labeled now, and for those that density peaks of the unlabeled images open."""
        rows = labeled.is_of_stage
        if rows.any():  # R has too few images to say how fine categories are
            h = self._space.for_peaks(labeled.views)[rows]
            self._granularity = self._estimate(h, labeled.clusters[rows], former=self._granularity)
        self._support_labeled(labeled)
        return self._find_novel(stage, labeled, unlabeled)

    def _support_labeled(self, labeled: LabeledViews) -> tuple[IntArray, Tensor]:
        """S for the categories labeled now, such as each one's peak and its nearest; others keep what they have."""
        idx, clusters = self._select(labeled, self._n_support, self._support_selection, NO_IMAGES)
        self._support.remove(set(clusters.tolist()))
        self._support.add(labeled.images, idx, clusters, pseudo_labeled=False)
        return idx, clusters

    def _select(self, labeled: LabeledViews, n: int, way: Selection, besides: IntArray) -> tuple[IntArray, Tensor]:
        """Up to n images of each category labeled now, best first, besides others: positions and clusters."""
        rows = (labeled.is_of_stage & torch.from_numpy(~np.isin(labeled.views.usable_idx, besides))).nonzero()[:, 0]
        h, clusters = self._space.compared(labeled.views)[rows], labeled.clusters[rows]
        chosen = select_per_category(h, clusters, n, select=self._select_by(way))
        return labeled.views.usable_idx[rows[chosen].numpy()], clusters[chosen]

    def _select_by(self, way: Selection) -> Select:
        return select_by(way, n_neighbors=self._granularity.K, generator=self._generator)

    def _find_novel(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews) -> _Novel:
        """Density peaks of the unlabeled images that no known category explains; each opens a cluster in S."""
        h = self._space.for_peaks(unlabeled)
        if len(h) < 3:
            return _Novel(NO_IMAGES, torch.empty(0, dtype=torch.int64), {})
        found = find_novel_peaks(
            h,
            *self._support.with_images_of(labeled),
            self._granularity,
            n_support=self._n_support,
            n_members=max(self._n_kept, N_LEARNED) if self._space.features == "dual" else self._n_kept,
            max_iou=self._max_iou,
            by=self._discovery,
            n_novel=given_number(self._count_novel, stage.index),
        )
        opened = self._book.open(len(found.nearest))
        rows, clusters = found.members.idx, torch.tensor(opened, dtype=torch.int64)[found.members.peak]
        nearest_known = dict(zip(opened, found.nearest.tolist(), strict=True))
        novel = _Novel(unlabeled.usable_idx[rows.numpy()], clusters, nearest_known)
        self._support.add(stage.unlabeled, novel.idx, clusters, pseudo_labeled=True)
        self._support.note_means(unlabeled, rows, clusters)
        return novel

    def _choose_among_claimed(self, stage: Stage, unlabeled: TrunkViews, novel: _Novel) -> _Novel:
        """S for novel categories again, among the images the trained classifier gives to them; with none, the peak."""
        compared = self._space.compared(unlabeled)
        claimed_by, _ = self._support.compared().predict(compared, tau=self._tau)
        rows = torch.isin(claimed_by, torch.tensor(sorted(novel.nearest_known), dtype=torch.int64)).nonzero()[:, 0]
        self._support.note_means(unlabeled, rows, claimed_by[rows])
        without = ~torch.isin(novel.clusters, claimed_by[rows])
        rows = rows[~np.isin(unlabeled.usable_idx[rows.numpy()], novel.idx[without.numpy()])]  # each image once
        select = self._select_by("herding" if self._support_selection == "herding" else "density")
        rows = rows[select_per_category(compared[rows], claimed_by[rows], self._n_kept, select=select)]
        idx = np.concatenate([unlabeled.usable_idx[rows.numpy()], novel.idx[without.numpy()]])
        clusters = torch.cat([claimed_by[rows], novel.clusters[without]])
        self._support.remove(novel.nearest_known)
        self._support.add(stage.unlabeled, idx, clusters, pseudo_labeled=True)
        return _Novel(idx, clusters, novel.nearest_known)

    # Section 4.4: incremental update -------------------------------------------------------------------------------

    def _keep(self, stage: Stage, labeled: LabeledViews, novel: _Novel) -> None:
        """S chosen again with the trained feature; R outside S, and from S only where there is nothing else."""
        for cluster, nearest in novel.nearest_known.items():
            ids = [stage.unlabeled.ids[i] for i in novel.idx[(novel.clusters == cluster).numpy()].tolist()]
            self._book.found[cluster] = Discovery(cluster, stage.index, tuple(ids[: self._n_support]), nearest)
        support_idx, support_clusters = self._support_labeled(labeled)
        if self._replay_selection == "none":
            return
        idx, clusters = self._select(labeled, self._n_kept - self._n_support, self._replay_selection, support_idx)
        idx, clusters = np.concatenate([idx, support_idx]), torch.cat([clusters, support_clusters])
        self._replay.remove(set(clusters.tolist()))
        self._replay.add(labeled.images, idx, clusters, pseudo_labeled=False)
        outside_first = (rank_within_group(novel.clusters) < self._n_support).long().argsort(stable=True)
        idx, clusters = novel.idx[outside_first.numpy()], novel.clusters[outside_first]
        self._replay.add(stage.unlabeled, idx, clusters, pseudo_labeled=True)

    # What others ask -----------------------------------------------------------------------------------------------

    def _assign(self, views: TrunkViews) -> tuple[Tensor, Tensor]:
        cluster, probability = self._classifier.predict(self._space.compared(views), tau=self._tau)
        return cluster.cpu(), probability.cpu()

    def kept(self) -> Kept:
        """What is held of past images."""
        replay, support = self._replay.entries, self._support.entries
        return Kept(
            replay_images=len(replay),
            support_images=len(support),
            images=len(set(replay.image_ids) | set(support.image_ids)),
            pseudo_labeled=replay.account().pseudo_labeled,
            bytes=replay.account().bytes + support.account().bytes + self._support.means.kept().bytes,
        )

    def _forget(self, clusters: Iterable[int]) -> None:
        for part in (self._support, self._support.means, self._replay):
            part.remove(clusters)

    def _state_parts(self) -> dict[str, State]:
        granularity = {"granularity": json.dumps(asdict(self._granularity))}
        return self._support.state_parts() | {
            "model": (self._model.state_dict(), {}),
            "projection": (self._space.state_dict(), {}),
            "method": ({"generator": self._generator.get_state()}, granularity),
            "support": self._classifier.state_dict(),
            "replay": self._replay.state_dict(),
        }

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._model.load_state_dict(part_of(tensors, "model"))
        self._space.load_state_dict(part_of(tensors, "projection"))
        self._granularity = Granularity.from_dict(json.loads(metadata["method.granularity"]))
        self._generator.set_state(tensors["method.generator"])
        self._support.load_state_parts(tensors, metadata)
        self._classifier = SupportSet.from_state_dict(part_of(tensors, "support"), part_of(metadata, "support"))
        self._replay = ImageBuffer.from_state_dict(part_of(tensors, "replay"), part_of(metadata, "replay"))
