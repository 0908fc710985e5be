"""Agreement without a matching (NMI, ARI) and how many categories were found."""

import warnings
from dataclasses import dataclass

import numpy as np

from igcd.types import UNLABELED, IntArray


@dataclass(frozen=True)
class CategoryCount:
    """How many clusters a system made for how many categories.

    >>> count = CategoryCount(found=13, true=10)
    >>> count.error, count.relative_error
    (3, 30.0)
    """

    found: int
    true: int

    @property
    def error(self) -> int:
        """Positive where too many were found."""
        return self.found - self.true

    @property
    def relative_error(self) -> float | None:
        """The size of the error in percent of the true count; None where there was nothing to find."""
        return 100.0 * abs(self.error) / self.true if self.true else None

    def to_json(self) -> dict[str, float | None]:
        """All four numbers."""
        return {"found": self.found, "true": self.true, "error": self.error, "relative_error": self.relative_error}


def count_categories(clusters: IntArray, categories: IntArray) -> CategoryCount:
    """Distinct clusters against distinct categories; no prediction is no cluster. (n,), (m,)."""
    return CategoryCount(found=len(np.unique(clusters[clusters != UNLABELED])), true=len(np.unique(categories)))


def agreement(clusters: IntArray, categories: IntArray) -> tuple[float, float]:
    """NMI (arithmetic mean of the entropies) and ARI in percent. An image without a prediction is alone in a cluster.

    >>> agreement(np.array([3, 3, 5, 5]), np.array([0, 0, 1, 1]))
    (100.0, 100.0)
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score  # type: ignore[import-untyped]

    alone = clusters == UNLABELED
    clusters = clusters.copy()
    clusters[alone] = int(clusters.max(initial=-1)) + 1 + np.arange(int(alone.sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it takes many small clusters for numbers to regress on
        nmi = normalized_mutual_info_score(categories, clusters)
        ari = adjusted_rand_score(categories, clusters)
    return 100.0 * float(nmi), 100.0 * float(ari)
