"""Grow and Merge: a static branch keeps what is known, a dynamic one learns what is new, and both are merged.

Its authors published no code: the losses are those they describe, the constants are ours (docs/methods/gm.md). Read top
to bottom: `learn` is a stage, `_split` parts known from novel, `_grow_loss` trains the dynamic branch, `_merge` joins
both, `_merge_loss` trains one head for all. Both phases are one training, the last third of its epochs the merging.
"""

from collections.abc import Mapping
from functools import partial
from typing import Unpack

import torch
from torch import Tensor, nn

from igcd.encoders.trunk_views import TrunkViews
from igcd.functional.distillation import feature_distillation
from igcd.functional.grouping import distinct
from igcd.functional.herding import category_means
from igcd.functional.kmeans import kmeans
from igcd.functional.losses import labeled_loss
from igcd.functional.prototype_novelty import novelty_threshold, similarity_to_known
from igcd.functional.rank_statistics import Ranked, pair_cross_entropy, same_ranks
from igcd.methods.base import StageOptions
from igcd.methods.cosine_head import CosineHead, HeadedModel
from igcd.methods.feature_space import Features, FeatureSpace
from igcd.methods.herded_memory import ReplayedMemory
from igcd.methods.method import Context
from igcd.methods.predecessor import Predecessor
from igcd.methods.projector import Projector
from igcd.methods.stage_views import LabeledViews
from igcd.methods.states import State, part_of
from igcd.methods.two_views import TwoViews, supervised_loss
from igcd.training import Batch
from igcd.types import UNLABELED, Stage

MERGE_SHARE = 3
"""One of so many epochs is for merging."""


class GrowingModel(HeadedModel):
    """The dynamic branch and the joint head, with the pseudo-labels found when growing ends.

    They are part of the model so that a run stopped while merging goes on with the same ones.
    """

    pseudo_clusters: Tensor  # (n,) of the usable unlabeled images; UNLABELED where there is none, empty between stages

    def __init__(self, tail: nn.Module, projector: Projector, head: CosineHead) -> None:
        super().__init__(tail, projector, head)
        self.register_buffer("pseudo_clusters", torch.empty(0, dtype=torch.int64))


class GrowAndMerge(ReplayedMemory):
    """A static and a dynamic branch. Implements `igcd.methods.method.Method`."""

    _model: GrowingModel

    def __init__(
        self,
        context: Context,
        *,
        labeled_weight: float = 0.35,
        tau: float = 0.1,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
        n_replay: int = 8,
        ranked: Ranked = "known",
        n_ranked: int = 2,
        distillation_weight: float = 1.0,
        momentum: float = 0.9,
        features: Features = "tuned",
        frozen_weight: float = 0.5,
        n_components: int = 128,
        **stages: Unpack[StageOptions],
    ) -> None:
        super().__init__(context, tau=tau, n_replay=n_replay, **stages)
        self._labeled_weight, self._tau_u, self._tau_c = labeled_weight, tau_u, tau_c
        self._ranked, self._n_ranked = ranked, n_ranked
        self._distillation_weight, self._momentum = distillation_weight, momentum
        self._model = GrowingModel(self._model.tail, self._model.projector, self._model.head)
        self._space = FeatureSpace(  # where known and novel images are separated
            features, self._encoder, self._model.tail, n_components=n_components, frozen_weight=frozen_weight
        )

    # One stage -----------------------------------------------------------------------------------------------------

    def learn(self, stage: Stage) -> None:
        """Splits the unlabeled images, grows on the novel ones, merges, and keeps exemplars by herding."""
        labeled, unlabeled = self._open_labeled(stage), self._encoder.training_views(stage.unlabeled)
        if not self._space.is_fitted:
            self._space.fit(labeled.views)
        if len(self._memory):
            novel = self._grow_and_merge(stage, labeled, unlabeled)
        else:
            novel = self._open_novel(stage, labeled, unlabeled)
            self._train(stage, lambda views, _batch, _epoch: self._supervised(views), labeled, unlabeled)
        self._keep(stage, labeled, unlabeled, novel)
        self._record_opened(stage, unlabeled, novel)

    def _grow_and_merge(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews) -> list[int]:
        is_novel, novel = self._split(stage, labeled, unlabeled)
        n_epochs = self._later_stages.n_epochs
        n_growing = n_epochs - n_epochs // MERGE_SHARE
        self._model.pseudo_clusters = torch.full((len(is_novel),), UNLABELED)
        with Predecessor(self._model.tail) as static:
            merge = partial(self._merge, static, self._prototypes, unlabeled, is_novel, novel)

            def loss(views: TwoViews, batch: Batch, epoch: int) -> Tensor:
                if epoch < n_growing:
                    return self._grow_loss(static, views, is_novel[torch.from_numpy(batch.unlabeled_rows)], len(novel))
                return self._merge_loss(views, batch)

            self._train(
                stage,
                loss,
                labeled,
                unlabeled,
                before_epoch=lambda epoch: merge() if epoch == n_growing else None,
            )
            if n_growing == n_epochs:
                merge()
        self._model.pseudo_clusters = torch.empty(0, dtype=torch.int64)
        return novel

    def _supervised(self, views: TwoViews) -> Tensor:
        return supervised_loss(
            views, labeled_weight=self._labeled_weight, tau=self._tau, tau_u=self._tau_u, tau_c=self._tau_c
        )

    # Grow ----------------------------------------------------------------------------------------------------------

    def _split(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews) -> tuple[Tensor, list[int]]:
        """Which unlabeled images no known prototype is like, (n,) bool, and the clusters opened for them."""
        x, known = self._space.compared(unlabeled), self._space.compared(labeled.views)
        if len(x) == 0:
            return torch.empty(0, dtype=torch.bool), []
        clusters = labeled.clusters.to(known.device)
        ids, rows = distinct(clusters)
        similarity = similarity_to_known(x, category_means(known, rows, n_categories=len(ids))).cpu()
        n_novel = min(self._count_novel(stage.index, known, labeled.clusters, x), len(x))
        is_novel = similarity < novelty_threshold(known, clusters)
        is_novel[similarity.argsort(stable=True)[:n_novel]] = True  # as many as there are novel categories at least
        if n_novel == 0:
            return torch.zeros_like(is_novel), []
        clusters = kmeans(x[is_novel], n_clusters=n_novel, generator=self._generator(stage, "novel")).clusters
        self._model.head.grow(category_means(self._h(unlabeled)[is_novel], clusters, n_categories=n_novel))
        return is_novel, self._book.open(n_novel)

    def _grow_loss(self, static: Predecessor, views: TwoViews, is_novel: Tensor, n_novel: int) -> Tensor:
        """The dynamic branch: labeled images and exemplars, the novel part, and not too far from the static branch."""
        n_labeled = len(views.targets)
        distillation = feature_distillation(torch.cat(views.h), views.whole(static.h), distance="squared")
        rows = torch.cat([torch.arange(n_labeled), n_labeled + is_novel.nonzero()[:, 0]]).to(views.h[0].device)
        learned = TwoViews(
            h=(views.h[0][rows], views.h[1][rows]),
            z=(views.z[0][rows], views.z[1][rows]),
            cosines=(views.cosines[0][rows], views.cosines[1][rows]),
            targets=views.targets,
        )
        loss = self._supervised(learned) + self._distillation_weight * distillation
        if n_novel:
            # Clusters are numbered as they are opened, so the novel ones are the last columns.
            log_probs = [(cosines[n_labeled:, -n_novel:] / self._tau).log_softmax(dim=1) for cosines in learned.cosines]
            h, to_known = learned.h[0][n_labeled:], learned.cosines[0][n_labeled:, :-n_novel]
            is_same = same_ranks(h, to_known, ranked=self._ranked, k=self._n_ranked)
            loss = loss + pair_cross_entropy(log_probs[0], log_probs[1], is_same)
        return loss

    # Merge ---------------------------------------------------------------------------------------------------------

    def _merge(
        self,
        static: Predecessor,
        static_prototypes: Tensor,
        unlabeled: TrunkViews,
        is_novel: Tensor,
        novel: list[int],
    ) -> None:
        """Pseudo-labels by the dynamic branch, then one branch of both; new prototypes are the means of their images.

        Known prototypes are merged as the branch is: they followed the dynamic one, of which little is left.
        """
        if novel:
            cosines = self._h(unlabeled)[is_novel] @ self._prototypes[novel].T
            clusters = torch.tensor(novel)[cosines.argmax(dim=1).cpu()]
            self._model.pseudo_clusters[is_novel] = clusters.to(self._model.pseudo_clusters.device)
        static.merge_into_trained(momentum=self._momentum)
        prototypes = self._model.head.prototypes.data
        prototypes.copy_(self._prototypes.lerp(static_prototypes, self._momentum))
        if novel:
            ids, rows = distinct(clusters)
            h = self._h(unlabeled)[is_novel]
            prototypes[ids] = category_means(h, rows.to(h.device), n_categories=len(ids))

    def _merge_loss(self, views: TwoViews, batch: Batch) -> Tensor:
        """The joint head alone, on the merged branch: labeled images, exemplars, and the novel part's pseudo-labels."""
        head, n_labeled = self._model.head, len(views.targets)
        pseudo_clusters = self._model.pseudo_clusters[torch.from_numpy(batch.unlabeled_rows)]
        has_pseudo_label = pseudo_clusters != UNLABELED
        columns = (head.is_open.cumsum(0) - 1)[pseudo_clusters[has_pseudo_label]]
        h = [part.detach() for part in views.h]
        on_labeled = torch.cat([part[:n_labeled] for part in h])
        on_novel = torch.cat([part[n_labeled:][has_pseudo_label] for part in h])
        return sum(
            (
                labeled_loss((head(part)[:, head.is_open] / self._tau).log_softmax(dim=1), targets.repeat(2))
                for part, targets in ((on_labeled, views.targets), (on_novel, columns))
            ),
            start=on_labeled.new_zeros(()),
        )

    # What is kept --------------------------------------------------------------------------------------------------

    def _keep(self, stage: Stage, labeled: LabeledViews, unlabeled: TrunkViews, novel: list[int]) -> None:
        """Exemplars by herding: of the categories labeled now, and of the novel clusters by what is predicted."""
        rows = labeled.is_of_stage.nonzero()[:, 0]
        chosen = rows[self._memory.herd(self._h(labeled.views)[rows], labeled.clusters[rows])]
        clusters = labeled.clusters[chosen]
        self._memory.remove(set(clusters.tolist()))
        self._memory.add(labeled.images, labeled.views.usable_idx[chosen.numpy()], clusters, pseudo_labeled=False)
        if novel:
            h = self._h(unlabeled)
            predicted, _ = self._classify(h)
            rows = torch.isin(predicted, torch.tensor(novel)).nonzero()[:, 0]
            chosen = rows[self._memory.herd(h[rows], predicted[rows])]
            idx = unlabeled.usable_idx[chosen.numpy()]
            self._memory.add(stage.unlabeled, idx, predicted[chosen], pseudo_labeled=True)

    def _state_parts(self) -> dict[str, State]:
        return super()._state_parts() | {"projection": (self._space.state_dict(), {})}

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._space.load_state_dict(part_of(tensors, "projection"))
