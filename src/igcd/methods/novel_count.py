"""How many novel categories a stage has, for the methods that must know it before they learn."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from igcd.errors import IgcdError
from igcd.functional.counting import CountMethod, estimate_count
from igcd.functional.grouping import distinct
from igcd.training import numbered_generator

MIN_TELLING_IMAGES = 4
"""A category with fewer images does not tell `kmeans` how fine categories are."""
MIN_UNLABELED = 3
"""Among fewer images nothing can be denser than its neighbors."""


class CountNovel(Protocol):
    """Tells the number of novel categories of a stage."""

    def __call__(self, stage: int, known: Tensor, clusters: Tensor, unlabeled: Tensor) -> int:
        """From features of known images, (n, d), with their clusters, (n,), and of the unlabeled ones, (m, d)."""
        ...


@dataclass(frozen=True)
class GivenCounts:
    """The true number, as most published results assume. The records of a method say that it was given the number."""

    per_stage: tuple[int, ...]

    def __call__(self, stage: int, known: Tensor, clusters: Tensor, unlabeled: Tensor) -> int:  # noqa: ARG002, D102
        if stage >= len(self.per_stage):
            raise IgcdError(
                f"the number of novel categories is not given for stage {stage}; estimate it: n_novel=estimated"
            )
        return self.per_stage[stage]


@dataclass(frozen=True)
class EstimatedCount:
    """The number as features tell it, by one of the estimators of `functional.counting`.

    What is known may be many images of a category, a single prototype of it, or nothing at all, as at the later stages
    of a method that keeps no image. `density` asks the discovery core, which can do with any of them; `kmeans`, which
    has nothing to compare its clusters with where no category has several images, gives way to `silhouette`.
    """

    by: CountMethod
    seed: int = 0

    def __call__(self, stage: int, known: Tensor, clusters: Tensor, unlabeled: Tensor) -> int:
        """From features of known images, (n, d), with their clusters, (n,), and of the unlabeled ones, (m, d)."""
        if len(unlabeled) < MIN_UNLABELED:
            return 0
        known, clusters, unlabeled = known.detach().cpu(), clusters.cpu(), unlabeled.detach().cpu()
        by: CountMethod = "silhouette" if self.by == "kmeans" and not _has_several(clusters).any() else self.by
        generator = numbered_generator(self.seed, stage)
        found = estimate_count(by, known, clusters, unlabeled, generator=generator)
        return min(found.n_novel, len(unlabeled))


def given_number(count_novel: CountNovel, stage: int) -> int | None:
    """The number where it is given; None where it is not, for methods that find it while they look for categories."""
    nothing, clusters = torch.empty(0, 0), torch.empty(0, dtype=torch.int64)
    return count_novel(stage, nothing, clusters, nothing) if isinstance(count_novel, GivenCounts) else None


def _has_several(clusters: Tensor) -> Tensor:
    """Which known images are of a category that has several. (n,) -> (n,) bool."""
    _, rows = distinct(clusters)
    return torch.bincount(rows)[rows] >= MIN_TELLING_IMAGES
