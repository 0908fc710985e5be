"""One encoder that stands still, one Gaussian per category, novel ones found by the discovery core.

The idea of VB-CGCD. Nothing but statistics is kept: the mean of each category, one covariance for all, and how fine
categories are. Read top to bottom: `_learn_in_space` is a stage, `_find_novel` the new categories, `_open` their
clusters. `still_space.py` has the training at the first stage.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Literal, Unpack

import torch
from torch import Tensor

from igcd.encoders.trunk_views import TrunkViews
from igcd.functional.discovery import discover_from_statistics
from igcd.functional.gaussian import ScatterStatistics, SharedGaussians, scatter_statistics, shared_gaussians
from igcd.functional.grouping import distinct
from igcd.functional.growing_scatter import add_images, add_means, no_statistics, take_rows
from igcd.functional.heights import Heights
from igcd.functional.hidden_categories import heights_by_hiding
from igcd.functional.left_out_shrinkage import left_out_shrinkage
from igcd.functional.refining import nearest_mean
from igcd.methods.base import name_of
from igcd.methods.feature_space import Features
from igcd.methods.method import Context, Kept
from igcd.methods.novel_count import given_number
from igcd.methods.states import State, part_of
from igcd.methods.still_space import SpaceOptions, StillSpaceMethod
from igcd.types import Images, Stage


class DensityGaussian(StillSpaceMethod):
    """Gaussians with one covariance, from statistics alone. Implements `igcd.methods.method.Method`."""

    def __init__(
        self,
        context: Context,
        *,
        features: Features = "frozen",
        n_components: int = 256,
        shrinkage: float | Literal["auto"] = "auto",
        granularity: float = 0.0,
        **options: Unpack[SpaceOptions],
    ) -> None:
        super().__init__(context, features=features, n_components=n_components, takes_roots=True, **options)
        self._granularity = granularity
        self._shrinkage_is_given = shrinkage != "auto"
        self._shrinkage: float | Literal["oas"] = "oas" if shrinkage == "auto" else shrinkage
        self._heights: Heights | None = None  # at which categories end
        self._n_calibrated = 0  # categories that heights and shrinkage were estimated from
        self._clusters = torch.empty(0, dtype=torch.int64)  # (c,) whose statistics they are
        self._statistics = no_statistics(0)
        self._last_labeled = ""  # a digest of the labeled images learned last

    # One stage -----------------------------------------------------------------------------------------------------

    def _begin(self, x: Tensor, clusters: Tensor) -> None:  # noqa: ARG002 - of the first images only the width counts
        self._statistics = no_statistics(x.shape[1])

    def _learn_in_space(self, stage: Stage, x: Tensor, clusters: Tensor, unlabeled: TrunkViews) -> None:
        """Labeled images are added to the Gaussians, and new ones are found."""
        self._add_labeled(stage.labeled, x, clusters)
        n_novel = given_number(self._count_novel, stage.index)
        self._open(stage, unlabeled, *self._find_novel(self._compared(unlabeled), n_novel))

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
        nothing = torch.zeros(len(new), x.shape[1])
        self._statistics = add_means(self._statistics, nothing, torch.zeros(len(new), dtype=torch.int64))
        row_of = {cluster: row for row, cluster in enumerate(self._clusters.tolist())}
        rows = torch.tensor([row_of[cluster] for cluster in clusters.tolist()], dtype=torch.int64)
        self._statistics = add_images(self._statistics, x, rows)
        self._calibrate(x, clusters)

    def _calibrate(self, x: Tensor, clusters: Tensor) -> None:
        """How fine categories are, and how much to shrink, from the stage with most labeled ones. (n, d), (n,)."""
        n_categories = len(distinct(clusters)[0])
        if n_categories < self._n_calibrated:
            return
        self._n_calibrated = n_categories
        self._heights = heights_by_hiding(self._space.peak_part(x), clusters)
        if not self._shrinkage_is_given:
            self._shrinkage = left_out_shrinkage(x, clusters) or "oas"

    # Novel categories ----------------------------------------------------------------------------------------------

    def _find_novel(self, x: Tensor, n_novel: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Means and sizes of new categories, and the cluster most like each. (n, d) -> (k, d), (k,), (k,).

        `n_novel` is their number, if it is given.
        """
        if len(x) == 0:
            return x, self._clusters[:0], self._clusters[:0]
        part, held = self._space.peak_part, self._statistics
        known = ScatterStatistics(part(held.means), held.counts, held.sizes, part(part(held.scatter).T))
        found = discover_from_statistics(
            part(x), known, n_novel=n_novel, granularity=self._granularity, heights=self._heights
        )
        is_new = found.category >= found.n_known
        novel = scatter_statistics(x[is_new], found.category[is_new] - found.n_known, n_categories=found.n_novel)
        nearest = nearest_mean(found.means[found.n_known :], found.means[: found.n_known])
        return novel.means, novel.counts, self._clusters[nearest]

    def _open(self, stage: Stage, unlabeled: TrunkViews, means: Tensor, sizes: Tensor, nearest_known: Tensor) -> None:
        """A cluster for each mean that is the nearest one of some unlabeled image; known means stand still."""
        x, n_known = self._compared(unlabeled), len(self._clusters)
        rows, _ = self._gaussians(add_means(self._statistics, means, sizes)).predict(x)
        has_images = torch.bincount(rows, minlength=n_known + len(means))[n_known:] > 0
        place = torch.cat([torch.arange(n_known), n_known + has_images.cumsum(0) - 1])  # among those that are opened
        clusters = self._book.open(int(has_images.sum()))
        self._clusters = torch.cat([self._clusters, torch.tensor(clusters, dtype=torch.int64)])
        self._statistics = add_means(self._statistics, means[has_images], sizes[has_images])
        self._take_novel(x, place[rows])
        nearest = dict(zip(clusters, nearest_known[has_images].tolist(), strict=True))
        self._record(stage, unlabeled, self._nearest(x), nearest)

    def _take_novel(self, x: Tensor, rows: Tensor) -> None:
        """What else is learned from the unlabeled images, (n, d), and their Gaussians, (n,), the novel ones behind."""

    def _gaussians(self, statistics: ScatterStatistics) -> SharedGaussians:
        return shared_gaussians(statistics, shrinkage=self._shrinkage)

    # What others ask -----------------------------------------------------------------------------------------------

    def _nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The nearest Gaussian of each image, by Mahalanobis distance, and its posterior probability."""
        rows, probs = self._gaussians(self._statistics).predict(x)
        return self._clusters[rows], probs

    def kept(self) -> Kept:
        """No image; the bytes are those of the statistics."""
        n_bytes = sum(tensor.nbytes for tensor in vars(self._statistics).values())
        return Kept(replay_images=0, support_images=0, images=0, pseudo_labeled=0, bytes=n_bytes)

    def _forget(self, clusters: Iterable[int]) -> None:
        stays = (~torch.isin(self._clusters, torch.tensor(sorted(clusters), dtype=torch.int64))).nonzero()[:, 0]
        self._clusters, self._statistics = self._clusters[stays], take_rows(self._statistics, stays)

    def _state_parts(self) -> dict[str, State]:
        calibrated = json.dumps([self._heights and asdict(self._heights), self._shrinkage, self._n_calibrated])
        return super()._state_parts() | {
            "statistics": (vars(self._statistics) | {"clusters": self._clusters}, {}),
            "method": ({}, {"calibrated": calibrated, "last_labeled": self._last_labeled}),
        }

    def load_state_dict(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """The inverse of `state_dict`."""
        super().load_state_dict(tensors, metadata)
        statistics = part_of(tensors, "statistics")
        self._clusters = statistics.pop("clusters")
        statistics.setdefault("sizes", statistics["counts"])  # an earlier version did not keep those of found means
        self._statistics = ScatterStatistics(**statistics)
        heights, self._shrinkage, self._n_calibrated = json.loads(metadata["method.calibrated"])
        self._heights = heights and Heights.from_dict(heights)
        self._last_labeled = metadata["method.last_labeled"]
