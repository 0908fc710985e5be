"""The paper's method: a soft nearest neighbor classifier, density peaks as support, and a replay buffer.

Read top to bottom: `learn` is a stage (section 4), `_loss` the objective (4.2), `_find_novel` the selection of support
samples (4.3), `_keep` the incremental update (4.4).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from igcd.data.images import Concatenation
from igcd.encoders.trunk_cache import TrunkViews
from igcd.errors import IgcdError
from igcd.functional import losses
from igcd.functional.density import find_density_peaks, peak_members
from igcd.functional.granularity import Granularity, estimate_granularity
from igcd.functional.grouping import rank_within_group
from igcd.functional.herding import herding
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novelty import is_novel, match_known
from igcd.functional.selection import Select, select_at_random, select_by_density, select_per_category
from igcd.memory.support_set import SupportSet
from igcd.methods.base import BaseMethod
from igcd.methods.feature_space import Features, FeatureSpace
from igcd.methods.kept_images import ImageBuffer
from igcd.methods.kept_statistics import KeptStatistics
from igcd.methods.method import Context, Discovery, Kept
from igcd.methods.projector import Projector, TailAndProjector
from igcd.methods.stage_views import LabeledViews, labeled_and_replayed
from igcd.methods.states import State, part_of
from igcd.methods.two_views import two_views
from igcd.training import Batch, Optimization
from igcd.types import IntArray, Stage


@dataclass(frozen=True)
class Objective:
    """Weights and temperatures of the losses, section 4.2 and appendix."""

    lambda_rep: float = 0.35
    lambda_cls: float = 0.35
    epsilon: float = 2.0
    tau: float = 0.1
    tau_u: float = 0.07
    tau_c: float = 0.1
    target_tau_start: float = 0.07
    target_tau_end: float = 0.04
    n_warmup_epochs: int = 30
    contrast: losses.Contrast = "views"


@dataclass(frozen=True)
class DensitySelection:
    """Which images of the unlabeled set open a category, section 4.3."""

    K: int | Literal["auto"] = 10
    """auto: the K at which the labeled categories come out as one peak each; K^d is then 2 K."""
    K_d: int = 20
    T: float = 0.6
    margin: float | Literal["auto"] = 0.03
    """How much denser than similar to a known category a peak must be to be novel; see `functional.novelty`.

    auto: told by the labeled images, each category hidden in turn."""
    n_closest: int = 5
    graph: Literal["unlabeled", "joint"] = "unlabeled"
    """Whose neighbors count: those of the unlabeled images (paper), or of labeled and unlabeled ones (its code)."""
    known: Literal["rule", "none"] = "rule"
    """Whether a peak may be a known category, or each opens a new one, as in the authors' code."""


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
        first_stage: Optimization,
        later_stages: Optimization,
        features: Features = "tuned",
        objective: Objective = Objective(),  # noqa: B008 - frozen
        selection: DensitySelection = DensitySelection(),  # noqa: B008 - frozen
        n_support: int = 5,
        n_replay: int = 3,
        support_selection: Literal["density", "herding", "random"] = "density",
        replay_selection: Literal["density", "herding", "none"] = "density",
        supervise_replay: bool = True,
        n_learned: int = 0,
        novel_support: Literal["peak", "claimed"] = "peak",
        frozen_support: Literal["images", "means"] = "images",
        frozen_weight: float = 0.5,
        n_components: int = 128,
    ) -> None:
        super().__init__(context, first_stage=first_stage, later_stages=later_stages)
        self._objective, self._selection = objective, selection
        self._support_selection, self._replay_selection = support_selection, replay_selection
        self._supervise_replay, self._n_learned, self._novel_support = supervise_replay, n_learned, novel_support
        self._frozen_support = frozen_support
        self._generator = torch.Generator().manual_seed(context.seed)

        backbone, size = self._encoder.backbone, self._encoder.transform.canvas
        projector = Projector(backbone.n_features, generator=self._generator)
        self._model = TailAndProjector(backbone.new_tail(), projector)
        self._space = FeatureSpace(
            features, self._encoder, self._model.tail, n_components=n_components, frozen_weight=frozen_weight
        )
        self._granularity = Granularity()  # of the last stage that had labels
        self._support_images = ImageBuffer(n_per_cluster=n_support, size=size)  # the images of S
        self._support = SupportSet(n_per_category=n_support)  # S: their features
        self._replay = ImageBuffer(n_per_cluster=n_replay, size=size)  # R
        self._means = KeptStatistics(n_components)  # of the frozen feature, which never moves, where they are asked for

    # Section 4: one stage ------------------------------------------------------------------------------------------

    def learn(self, stage: Stage) -> None:
        """Learns from labeled ∪ R and unlabeled images with S as it grows, then updates S and R for later stages."""
        self._means.remove(self._take_in_labels(stage))  # of guessed images
        if not self._book.cluster_of:
            raise IgcdError("the first stage must have labeled images, got none; label some of each known category")
        labeled, unlabeled = self._labeled_and_replayed(stage), self._encoder.training_views(stage.unlabeled)
        if not self._space.is_fitted:
            self._space.fit(labeled.views)
            self._means = KeptStatistics(self._space.n_frozen)
        self._calibrate(labeled)
        self._support_labeled(labeled)
        self._note_labeled_means(labeled)
        novel = self._find_novel(stage, labeled, unlabeled)
        rows = np.searchsorted(unlabeled.usable_idx, novel.idx)
        self._note_means(unlabeled, torch.from_numpy(rows), novel.clusters)

        self._train(stage.index, self._with_pseudo_labeled(stage, labeled, novel), unlabeled)

        if self._space.features == "tuned":  # the space has moved: its peaks are found anew
            self._discard(novel.nearest_known)
            self._calibrate(labeled)
            self._support_labeled(labeled)
            novel = self._find_novel(stage, labeled, unlabeled)
        elif self._novel_support == "claimed":
            novel = self._choose_among_claimed(stage, unlabeled, novel)
        self._keep(stage, labeled, novel)
        self._support = self._compared_support()

    def _labeled_and_replayed(self, stage: Stage) -> LabeledViews:
        replay = self._replay if len(stage.labels) or self._supervise_replay else None
        return labeled_and_replayed(self._encoder, stage.labeled, self._book.of(stage.labels), replay)

    def _with_pseudo_labeled(self, stage: Stage, labeled: LabeledViews, novel: _Novel) -> LabeledViews:
        """The images closest to each novel peak join the labeled ones under its pseudo-label, if so wanted."""
        rows = rank_within_group(novel.clusters) < self._n_learned
        if not rows.any():
            return labeled
        usable = labeled.images.take(labeled.views.usable_idx)
        images = Concatenation([usable, stage.unlabeled.take(novel.idx[rows.numpy()])])
        return labeled_and_replayed(self._encoder, images, torch.cat([labeled.clusters, novel.clusters[rows]]), None)

    # Section 4.2: classifier learning ------------------------------------------------------------------------------

    def _train(self, stage: int, labeled: LabeledViews, unlabeled: TrunkViews) -> None:
        if self._space.features == "frozen":
            return
        support = self._encode_support(self._space.tuned)
        row_of = {cluster: row for row, cluster in enumerate(support.category_ids.tolist())}
        targets = torch.tensor([row_of[cluster] for cluster in labeled.clusters.tolist()], dtype=torch.int64)

        def refresh(_epoch: int) -> None:
            nonlocal support
            support = self._encode_support(self._space.tuned)

        self._run_training(
            self._model,
            lambda model, batch, epoch: self._loss(model, batch, epoch, labeled.views, targets, unlabeled, support),
            stage=stage,
            n_labeled=len(labeled.clusters),
            n_unlabeled=len(unlabeled.usable_idx),
            before_epoch=refresh,
        )

    def _loss(
        self,
        model: nn.Module,
        batch: Batch,
        epoch: int,
        labeled: TrunkViews,
        targets: Tensor,
        unlabeled: TrunkViews,
        support: SupportSet,
    ) -> Tensor:
        """L = L_rep + L_cls, eq. 1 to 7, on two views of each image."""
        objective = self._objective
        views = two_views(model, batch, labeled, targets, unlabeled, labeled_apart=True)
        supervised = losses.supervised_contrastive(
            *views.z_labeled, views.targets, tau=objective.tau_c, contrast=objective.contrast
        )
        self_supervised = losses.self_supervised_contrastive(*views.z, tau=objective.tau_u, contrast=objective.contrast)
        l_rep = losses.representation_loss(supervised, self_supervised, supervised_weight=objective.lambda_rep)

        log_probs = support.log_probs(views.labeled_h, tau=objective.tau)
        l_labeled = losses.labeled_loss(log_probs, views.targets.repeat(2))
        target_tau = losses.target_temperature(
            epoch,
            start=objective.target_tau_start,
            end=objective.target_tau_end,
            n_warmup_epochs=objective.n_warmup_epochs,
        )
        both_ways = [
            losses.unlabeled_loss(
                support.log_probs(h_target, tau=target_tau),
                support.log_probs(h_anchor, tau=objective.tau),
                entropy_weight=objective.epsilon,
            )
            for h_target, h_anchor in (views.unlabeled_h, views.unlabeled_h[::-1])
        ]
        l_unlabeled = (both_ways[0] + both_ways[1]) / 2
        l_cls = losses.classifier_loss(l_labeled, l_unlabeled, labeled_weight=objective.lambda_cls)
        return losses.total_loss(l_rep, l_cls)

    # Section 4.3: support sample selection -------------------------------------------------------------------------

    def _calibrate(self, labeled: LabeledViews) -> None:
        """How fine categories are: as given, or estimated from the labels of this stage; R has too few images."""
        if not labeled.is_of_stage.any():
            return
        selection = self._selection
        self._granularity = estimate_granularity(
            self._space.for_peaks(labeled.views)[labeled.is_of_stage],
            labeled.clusters[labeled.is_of_stage],
            K=selection.K,
            K_d=selection.K_d,
            margin=selection.margin,
            n_closest=selection.n_closest,
            max_iou=selection.T,
            former=self._granularity,
        )

    def _support_labeled(self, labeled: LabeledViews) -> None:
        """S for the categories labeled now: each one's density peak and its nearest neighbors.

        The others keep the images they have in S; the fewer ones in R would be a poorer choice.
        """
        idx, clusters = self._select(labeled, self._support.n_per_category, self._select_by(self._support_selection))
        self._support_images.remove(set(clusters.tolist()))
        self._support_images.add(labeled.images, idx, clusters, pseudo_labeled=False)

    def _select_by(self, way: Literal["density", "herding", "random"]) -> Select:
        """How the images of a category are chosen for S or R: around its peak, around its mean, or any."""
        if way == "herding":
            return herding
        if way == "random":
            return partial(select_at_random, generator=self._generator)
        return partial(select_by_density, n_neighbors=self._granularity.K)

    def _select(self, labeled: LabeledViews, n: int, select: Select) -> tuple[IntArray, Tensor]:
        """Up to n images of each category labeled now, best first: positions and clusters."""
        rows = labeled.is_of_stage.nonzero()[:, 0]
        clusters = labeled.clusters[rows]
        chosen = select_per_category(self._space.compared(labeled.views)[rows], clusters, n, select=select)
        return labeled.views.usable_idx[rows[chosen].numpy()], clusters[chosen]

    def _find_novel(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews) -> _Novel:
        """Density peaks of the unlabeled images that no known category explains; each opens a cluster in S."""
        selection, granularity, n_support = self._selection, self._granularity, self._support.n_per_category
        h = self._space.for_peaks(unlabeled)
        if len(h) < 3:
            return _Novel(np.empty(0, dtype=np.int64), torch.empty(0, dtype=torch.int64), {})
        # An image of the labeled set, R and S is one image, or it would count among the closest three times.
        in_support = set(self._support_images.entries.image_ids)
        ids = [labeled.images.ids[i] for i in labeled.views.usable_idx.tolist()]
        only_labeled = torch.tensor([image_id not in in_support for image_id in ids], dtype=torch.bool)
        known_h = torch.cat(
            [self._space.for_peaks(labeled.views)[only_labeled], self._space.for_peaks(self._support_views())]
        )
        known_clusters = torch.cat([labeled.clusters[only_labeled], self._support_images.clusters])
        everything = torch.cat([h, known_h]) if selection.graph == "joint" else h
        graph = neighbor_graph(everything, min(max(granularity.K, granularity.K_d, n_support), len(everything) - 1))
        found = find_density_peaks(
            graph,
            n_neighbors=min(granularity.K, graph.k),
            n_overlap_neighbors=min(granularity.K_d, graph.k),
            max_iou=selection.T,
        )
        peaks = found.idx[found.idx < len(h)]
        nearest = match_known(h[peaks], known_h, known_clusters, n_closest=selection.n_closest)
        opens = torch.ones(len(peaks), dtype=torch.bool)
        if selection.known == "rule":
            opens = is_novel(found.density[peaks], nearest.similarity, margin=granularity.margin)
        members = peak_members(peaks[opens], graph, n_members=max(n_support, self._n_learned))
        rows, peak = members.idx[members.idx < len(h)], members.peak[members.idx < len(h)]
        clusters = torch.tensor(self._book.open(int(opens.sum())), dtype=torch.int64)
        nearest_known = dict(zip(clusters.tolist(), nearest.category[opens].tolist(), strict=True))
        novel = _Novel(unlabeled.usable_idx[rows.numpy()], clusters[peak], nearest_known)
        self._support_images.add(stage.unlabeled, novel.idx, novel.clusters, pseudo_labeled=True)
        return novel

    def _choose_among_claimed(self, stage: Stage, unlabeled: TrunkViews, novel: _Novel) -> _Novel:
        """S for each novel category chosen anew among the unlabeled images that the trained classifier gives to it.

        They are chosen as those of a labeled category are. A category that claims no image keeps its peak.
        """
        self._support = self._compared_support()
        compared = self._space.compared(unlabeled)
        claimed_by, _ = self._support.predict(compared, tau=self._objective.tau)
        rows = torch.isin(claimed_by, torch.tensor(sorted(novel.nearest_known), dtype=torch.int64)).nonzero()[:, 0]
        select = self._select_by("herding" if self._support_selection == "herding" else "density")
        self._note_means(unlabeled, rows, claimed_by[rows])
        chosen = select_per_category(compared[rows], claimed_by[rows], self._support.n_per_category, select=select)
        rows = rows[chosen]
        without = ~torch.isin(novel.clusters, claimed_by[rows])
        idx = np.concatenate([unlabeled.usable_idx[rows.numpy()], novel.idx[without.numpy()]])
        clusters = torch.cat([claimed_by[rows], novel.clusters[without]])
        self._support_images.remove(novel.nearest_known)
        self._support_images.add(stage.unlabeled, idx, clusters, pseudo_labeled=True)
        return _Novel(idx, clusters, novel.nearest_known)

    # Section 4.4: incremental update -------------------------------------------------------------------------------

    def _keep(self, stage: Stage, labeled: LabeledViews, novel: _Novel) -> None:
        """S chosen anew with the trained feature; the same images, or a herd, into R; the peaks into both."""
        for cluster, nearest in novel.nearest_known.items():
            ids = [stage.unlabeled.ids[i] for i in novel.idx[(novel.clusters == cluster).numpy()].tolist()]
            members = tuple(ids[: self._support.n_per_category])
            self._book.found[cluster] = Discovery(cluster, stage.index, members, nearest)
        self._support_labeled(labeled)
        if self._replay_selection == "none":
            return
        select = self._select_by(self._replay_selection)
        idx, clusters = self._select(labeled, self._replay.entries.n_per_category, select)
        self._replay.add(labeled.images, idx, clusters, pseudo_labeled=False)
        self._replay.add(stage.unlabeled, novel.idx, novel.clusters, pseudo_labeled=True)

    # Features ------------------------------------------------------------------------------------------------------

    def _support_views(self) -> TrunkViews:
        return self._encoder.plain_views(self._support_images.images())

    def _encode_support(self, features: Callable[[TrunkViews], Tensor]) -> SupportSet:
        """S as the classifier compares with it now."""
        entries, h = self._support_images.entries, features(self._support_views())
        support = SupportSet(n_per_category=entries.n_per_category)
        for pseudo in (False, True):
            rows = (entries.is_pseudo == pseudo).nonzero()[:, 0]
            ids = [entries.image_ids[row] for row in rows.tolist()]
            support.add(h[rows], entries.categories[rows], ids, pseudo_labeled=pseudo)
        return support

    def _compared_support(self) -> SupportSet:
        """S as the classifier compares with it; where means are kept, each image stands at that of its category."""
        support, means = self._encode_support(self._space.compared), self._means.of.means
        if len(self._means):
            row_of = {cluster: row for row, cluster in enumerate(self._means.clusters.tolist())}
            rows = torch.tensor([row_of.get(cluster, -1) for cluster in support.categories.tolist()])
            has_mean, h = rows >= 0, support.features.clone()
            h[has_mean] = self._space.with_frozen(h[has_mean], normalize(means, dim=1)[rows[has_mean]])
            support.refresh(h)
        return support

    def _note_labeled_means(self, labeled: LabeledViews) -> None:
        """Means of the categories labeled now, unless there is one of more images."""
        clusters = labeled.clusters[labeled.is_of_stage]
        n_kept = dict(zip(self._means.clusters.tolist(), self._means.of.counts.tolist(), strict=True))
        n_now = Counter(clusters.tolist())
        is_better = torch.tensor([n_now[c] >= n_kept.get(c, 0) for c in clusters.tolist()], dtype=torch.bool)
        rows = labeled.is_of_stage.nonzero()[:, 0][is_better]
        self._note_means(labeled.views, rows, labeled.clusters[rows])

    def _note_means(self, views: TrunkViews, rows: Tensor, clusters: Tensor) -> None:
        """Keeps the mean of the frozen feature of each cluster's images, (m,), (m,), where means are asked for."""
        if self._frozen_support == "means" and len(rows):
            self._means.put(self._space.for_peaks(views)[rows], clusters)

    # What others ask -----------------------------------------------------------------------------------------------

    def _assign(self, views: TrunkViews) -> tuple[Tensor, Tensor]:
        """The most probable cluster of each image and its probability."""
        cluster, probability = self._support.predict(self._space.compared(views), tau=self._objective.tau)
        return cluster.cpu(), probability.cpu()

    def kept(self) -> Kept:
        """What is held of past images."""
        replay, support = self._replay.entries, self._support_images.entries
        return Kept(
            replay_images=len(replay),
            support_images=len(support),
            images=len(set(replay.image_ids) | set(support.image_ids)),
            pseudo_labeled=replay.account().pseudo_labeled,
            bytes=replay.account().bytes + support.account().bytes + self._means.kept().bytes,
        )

    def _forget(self, clusters: Iterable[int]) -> None:
        self._support_images.remove(clusters)
        self._replay.remove(clusters)
        self._means.remove(clusters)

    def _state_parts(self) -> dict[str, State]:
        method = {
            "granularity": json.dumps(asdict(self._granularity)),
            "generator": json.dumps(self._generator.get_state().tolist()),
        }
        return {
            "model": (self._model.state_dict(), {}),
            "projection": (self._space.state_dict(), {}),
            "means": (self._means.state_dict(), {}),
            "method": ({}, method),
            "support_images": self._support_images.state_dict(),
            "support": self._support.state_dict(),
            "replay": self._replay.state_dict(),
        }

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._model.load_state_dict(part_of(tensors, "model"))
        self._space.load_state_dict(part_of(tensors, "projection"))
        if means := part_of(tensors, "means"):  # an older state has none
            self._means = KeptStatistics.from_state_dict(means)
        self._granularity = Granularity(**json.loads(metadata["method.granularity"]))
        self._generator.set_state(torch.tensor(json.loads(metadata["method.generator"]), dtype=torch.uint8))
        stored = {name: (part_of(tensors, name), part_of(metadata, name)) for name in ("support_images", "replay")}
        self._support_images = ImageBuffer.from_state_dict(*stored["support_images"])
        self._replay = ImageBuffer.from_state_dict(*stored["replay"])
        self._support = SupportSet.from_state_dict(part_of(tensors, "support"), part_of(metadata, "support"))
