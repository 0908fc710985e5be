"""One encoder that stands still, one Gaussian per category, novel ones seeded by density peaks.

The idea of VB-CGCD with our seeds. Nothing but statistics is kept: the mean of each category and one covariance for
all. Read top to bottom: `learn` is a stage, `_fine_tune` the training at the first one, `_find_novel` the seeds,
`_refine` the rounds in which the unlabeled images find their Gaussian.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.encoders.trunk_cache import TrunkViews
from igcd.errors import IgcdError
from igcd.functional.density import find_density_peaks
from igcd.functional.gaussian import ScatterStatistics, SharedGaussians, refine_means, shared_gaussians
from igcd.functional.granularity import Granularity, estimate_granularity
from igcd.functional.grouping import distinct
from igcd.functional.growing_scatter import add_images, add_means, no_statistics, take_rows
from igcd.functional.herding import category_means
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novelty import is_novel
from igcd.methods.base import BaseMethod, name_of
from igcd.methods.cosine_head import CosineHead, HeadedModel
from igcd.methods.feature_space import Features, FeatureSpace
from igcd.methods.method import Context, Kept
from igcd.methods.novel_count import CountNovel
from igcd.methods.projector import Projector
from igcd.methods.states import State, part_of
from igcd.methods.two_views import supervised_loss, two_views
from igcd.training import Optimization
from igcd.types import Images, Stage


@dataclass(frozen=True)
class _Seeds:
    """Novel density peaks: the mean of each one's neighborhood, and the known cluster most like it."""

    means: Tensor  # (m, d)
    nearest_known: Tensor  # (m,) clusters


class DensityGaussian(BaseMethod):
    """Gaussians with one covariance, from statistics alone. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        first_stage: Optimization,
        later_stages: Optimization,  # nothing is trained later; every method is made alike
        count_novel: CountNovel,  # noqa: ARG002 - the peaks tell the number
        features: Features = "frozen",
        n_components: int = 256,
        frozen_weight: float = 0.5,
        shrinkage: float | Literal["auto"] = "auto",
        n_rounds: int = 5,
        K: int | Literal["auto"] = "auto",  # noqa: N803 - as the paper calls it
        margin: float = 0.0,
        T: float = 0.6,  # noqa: N803
        labeled_weight: float = 0.35,
        tau: float = 0.1,
        tau_u: float = 1.0,
        tau_c: float = 0.07,
    ) -> None:
        super().__init__(context, first_stage=first_stage, later_stages=later_stages)
        self._shrinkage: float | Literal["oas"] = "oas" if shrinkage == "auto" else shrinkage
        self._n_rounds, self._given_k, self._margin, self._max_iou = n_rounds, K, margin, T
        self._labeled_weight, self._tau, self._tau_u, self._tau_c = labeled_weight, tau, tau_u, tau_c

        backbone = self._encoder.backbone
        projector = Projector(backbone.n_features, generator=torch.Generator().manual_seed(context.seed))
        self._model = HeadedModel(backbone.new_tail(), projector, CosineHead(backbone.n_features))
        self._space = FeatureSpace(
            features,
            self._encoder,
            self._model.tail,
            n_components=n_components,
            frozen_weight=frozen_weight,
            reduce_tuned=True,
        )
        self._granularity = Granularity(margin=margin)
        self._clusters = torch.empty(0, dtype=torch.int64)  # (c,) whose statistics they are
        self._statistics = no_statistics(0)
        self._last_labeled = ""  # a digest of the labeled images learned last

    # One stage -----------------------------------------------------------------------------------------------------

    def learn(self, stage: Stage) -> None:
        """The first stage fixes the feature space; each adds its labeled images to the Gaussians and finds new ones."""
        self._take_in_labels(stage)
        labeled, unlabeled = (self._encoder.plain_views(images) for images in (stage.labeled, stage.unlabeled))
        clusters = self._book.of(stage.labels)[torch.from_numpy(labeled.usable_idx)]
        if not self._space.is_fitted:
            if len(clusters) < 2:
                raise IgcdError("the feature space is told by labeled images; the first stage must have some")
            if self._space.features != "frozen":
                self._fine_tune(stage)
            self._space.fit(labeled)
            self._statistics = no_statistics(self._compared(labeled).shape[1])
        self._add_labeled(stage.labeled, self._compared(labeled), clusters)
        seeds = self._find_novel(self._compared(unlabeled))
        self._refine(stage, unlabeled, seeds)

    # The feature space, at the first stage --------------------------------------------------------------------------

    def _fine_tune(self, stage: Stage) -> None:
        """Trains the tail once, with the supervised part of SimGCD; the head is not used afterwards."""
        labeled, unlabeled = (self._encoder.training_views(images) for images in (stage.labeled, stage.unlabeled))
        clusters = self._book.of(stage.labels)[torch.from_numpy(labeled.usable_idx)]
        rows = distinct(clusters)[1]  # of the prototypes: a category may have no image that could be read
        self._model.head.grow(category_means(self._space.tuned(labeled).cpu(), rows, n_categories=int(rows.max()) + 1))
        self._run_training(
            self._model,
            lambda model, batch, _epoch: supervised_loss(
                two_views(model, batch, labeled, rows, unlabeled, labeled_apart=True),
                labeled_weight=self._labeled_weight,
                tau=self._tau,
                tau_u=self._tau_u,
                tau_c=self._tau_c,
            ),
            stage=0,
            n_labeled=len(clusters),
            n_unlabeled=len(unlabeled.usable_idx),
        )

    # Known categories ----------------------------------------------------------------------------------------------

    def _add_labeled(self, images: Images, x: Tensor, clusters: Tensor) -> None:
        """Means, and the scatter about them, of the labeled images; what was only a discovery takes its true mean.

        IGCD-l shows the labeled images of stage 0 again at stage 1: the same images are not counted twice.
        """
        seen_last = self._last_labeled
        self._last_labeled = name_of(images) if len(images) else seen_last
        if len(clusters) == 0 or self._last_labeled == seen_last:
            return
        new = sorted(set(clusters.tolist()) - set(self._clusters.tolist()))
        self._clusters = torch.cat([self._clusters, torch.tensor(new, dtype=torch.int64)])
        self._statistics = add_means(self._statistics, torch.zeros(len(new), x.shape[1]))
        row_of = {cluster: row for row, cluster in enumerate(self._clusters.tolist())}
        rows = torch.tensor([row_of[cluster] for cluster in clusters.tolist()], dtype=torch.int64)
        self._statistics = add_images(self._statistics, x, rows)
        self._calibrate(x, clusters)

    def _calibrate(self, x: Tensor, clusters: Tensor) -> None:
        """K, estimated from the labels where it is not given."""
        space = self._space.peak_part(x)
        self._granularity = estimate_granularity(
            space, clusters, K=self._given_k, margin=self._margin, max_iou=self._max_iou, former=self._granularity
        )

    # Novel categories ----------------------------------------------------------------------------------------------

    def _find_novel(self, x: Tensor) -> _Seeds:
        """Density peaks of the unlabeled images whose neighborhood no known category owns. (n, d).

        The rule of `functional.novelty`, with means in place of images: a peak is novel when its neighbors are more
        similar to it, by a margin, than the mean of any known category is.
        """
        nothing = _Seeds(x[:0], torch.empty(0, dtype=torch.int64))
        if len(x) < 3 or len(self._clusters) == 0:
            return nothing
        space, k = self._space.peak_part(x), min(self._granularity.K, len(x) - 1)
        graph = neighbor_graph(space, min(2 * k, len(x) - 1))
        found = find_density_peaks(graph, n_neighbors=k, n_overlap_neighbors=graph.k, max_iou=self._max_iou)
        known = normalize(self._space.peak_part(self._statistics.means), dim=1)
        nearest = (space[found.idx] @ known.T).max(dim=1)
        opens = is_novel(found.density[found.idx], nearest.values, margin=self._margin)
        peaks = found.idx[opens]
        neighborhoods = torch.cat([peaks[:, None], graph.first(k).idx[peaks]], dim=1)
        return _Seeds(x[neighborhoods].mean(dim=1), self._clusters[nearest.indices[opens]])

    def _refine(self, stage: Stage, unlabeled: TrunkViews, seeds: _Seeds) -> None:
        """Rounds in which each unlabeled image goes to its nearest Gaussian and the novel means follow their images.

        Known means stand still. A seed that ends up with no image was none, and opens no cluster.
        """
        if len(seeds.means) == 0:
            return
        x, n_known = self._compared(unlabeled), len(self._clusters)
        gaussians = self._gaussians(add_means(self._statistics, seeds.means))
        gaussians, rows = refine_means(gaussians, x, n_fixed=n_known, n_rounds=self._n_rounds)
        means = torch.linalg.solve(gaussians.whitening.T, gaussians.means[n_known:].T).T
        has_images = torch.bincount(rows, minlength=len(gaussians.means))[n_known:] > 0
        clusters = self._book.open(int(has_images.sum()))
        self._clusters = torch.cat([self._clusters, torch.tensor(clusters, dtype=torch.int64)])
        self._statistics = add_means(self._statistics, means[has_images])
        nearest_known = dict(zip(clusters, seeds.nearest_known[has_images].tolist(), strict=True))
        self._record(stage, unlabeled, self._nearest(x), nearest_known)

    def _gaussians(self, statistics: ScatterStatistics) -> SharedGaussians:
        return shared_gaussians(statistics, shrinkage=self._shrinkage)

    def _compared(self, views: TrunkViews) -> Tensor:
        """What the Gaussians are over, (n, c), rows of length 1."""
        return self._space.compared(views).cpu()

    # What others ask -----------------------------------------------------------------------------------------------

    def _assign(self, views: TrunkViews) -> tuple[Tensor, Tensor]:
        """The nearest Gaussian of each image, by Mahalanobis distance, and its posterior probability."""
        return self._nearest(self._compared(views))

    def _nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows, probs = self._gaussians(self._statistics).predict(x)
        return self._clusters[rows], probs

    def kept(self) -> Kept:
        """No image; the bytes are those of the statistics."""
        held = (self._statistics.means, self._statistics.counts, self._statistics.scatter)
        n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in held)
        return Kept(replay_images=0, support_images=0, images=0, pseudo_labeled=0, bytes=n_bytes)

    def _forget(self, clusters: Iterable[int]) -> None:
        stays = (~torch.isin(self._clusters, torch.tensor(sorted(clusters), dtype=torch.int64))).nonzero()[:, 0]
        self._clusters, self._statistics = self._clusters[stays], take_rows(self._statistics, stays)

    def _state_parts(self) -> dict[str, State]:
        held = self._statistics
        statistics = {"means": held.means, "counts": held.counts, "scatter": held.scatter, "clusters": self._clusters}
        return {
            "model": (self._model.state_dict(), {}),
            "projection": (self._space.state_dict(), {}),
            "statistics": (statistics, {}),
            "method": ({}, {"K": json.dumps(self._granularity.K), "last_labeled": self._last_labeled}),
        }

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        self._model.load_state_dict(part_of(tensors, "model"))
        self._space.load_state_dict(part_of(tensors, "projection"))
        statistics = part_of(tensors, "statistics")
        self._clusters = statistics.pop("clusters")
        self._statistics = ScatterStatistics(**statistics)
        self._granularity = Granularity(K=json.loads(metadata["method.K"]), margin=self._margin)
        self._last_labeled = metadata["method.last_labeled"]
