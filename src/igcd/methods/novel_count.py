"""How many novel categories a stage has, for the methods that must know it before they learn."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from igcd.errors import IgcdError
from igcd.functional.counting import CountMethod, count_by_density, estimate_count
from igcd.functional.granularity import Granularity, estimate_granularity
from igcd.functional.grouping import distinct
from igcd.functional.novelty import fit_projection
from igcd.training import numbered_generator

MIN_TELLING_IMAGES = 4
"""A category with fewer images does not tell how fine categories are: each half of them must have two."""
MIN_TELLING_CATEGORIES = 2
"""Fewer cannot tell what it looks like when one of them is hidden."""
MIN_UNLABELED = 3
"""Among fewer images nothing can be denser than its neighbors."""


class CountNovel(Protocol):
    """Tells the number of novel categories of a stage."""

    def __call__(self, stage: int, known: Tensor, clusters: Tensor, unlabeled: Tensor) -> int:
        """From features of known images, (n, d), with their clusters, (n,), and of the unlabeled ones, (m, d)."""
        ...


@dataclass(frozen=True)
class GivenCounts:
    """The true number, as most published results assume. A method that is given it is told so in its records."""

    per_stage: tuple[int, ...]

    def __call__(self, stage: int, known: Tensor, clusters: Tensor, unlabeled: Tensor) -> int:  # noqa: ARG002, D102
        if stage >= len(self.per_stage):
            raise IgcdError(
                f"the number of novel categories is not given for stage {stage}; estimate it: n_novel=density"
            )
        return self.per_stage[stage]


@dataclass(frozen=True)
class EstimatedCount:
    """The number as features tell it, by one of the estimators of `functional.counting`.

    What is known may be many images of a category, a single prototype of it, or nothing at all. How fine categories are
    (K, the margin; the accuracy of k-means) is told by categories with several images. Where there are none, as at the
    later stages of a method that keeps no image: `density` takes the paper's K, and a peak is novel when it is denser
    than similar to any prototype (every peak is, where nothing is known); `kmeans`, which has nothing to compare its
    clusters with then, gives way to `silhouette`.
    """

    by: CountMethod
    seed: int = 0

    def __call__(self, stage: int, known: Tensor, clusters: Tensor, unlabeled: Tensor) -> int:
        """From features of known images, (n, d), with their clusters, (n,), and of the unlabeled ones, (m, d)."""
        if len(unlabeled) < MIN_UNLABELED:
            return 0
        known, clusters, unlabeled = known.detach().cpu(), clusters.cpu(), unlabeled.detach().cpu()
        tells = _has_several(clusters)
        if self.by == "density":
            return _count_peaks(known, clusters, unlabeled, tells)
        generator = numbered_generator(self.seed, stage)
        by: CountMethod = "silhouette" if not tells.any() else self.by
        found = estimate_count(by, known, clusters, unlabeled, generator=generator)
        return min(found.n_novel, len(unlabeled))


def _count_peaks(known: Tensor, clusters: Tensor, unlabeled: Tensor, tells: Tensor) -> int:
    """Novel density peaks; those categories say how fine to look that can, see `EstimatedCount`."""
    granularity = Granularity(margin=0.0)
    if len(distinct(clusters[tells])[0]) >= MIN_TELLING_CATEGORIES:
        h = fit_projection(torch.cat([known, unlabeled]))(known[tells])  # the space `count_by_density` looks at
        granularity = estimate_granularity(h, clusters[tells], former=granularity)
    n_neighbors = min(granularity.K, len(unlabeled) - 1)
    return count_by_density(known, clusters, unlabeled, n_neighbors=n_neighbors, margin=granularity.margin).n_novel


def _has_several(clusters: Tensor) -> Tensor:
    """Which known images are of a category that has several. (n,) -> (n,) bool."""
    _, rows = distinct(clusters)
    return torch.bincount(rows)[rows] >= MIN_TELLING_IMAGES
