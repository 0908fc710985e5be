"""Agreement without a matching (NMI, ARI) and how many categories were found."""

import warnings
from dataclasses import dataclass

import numpy as np

from igcd.functional.assignment import contingency, match
from igcd.types import UNLABELED, BoolArray, IntArray


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
    """Distinct clusters against distinct categories; rows without a prediction do not count. (n,), (m,)."""
    return CategoryCount(found=len(np.unique(clusters[clusters != UNLABELED])), true=len(np.unique(categories)))


def count_won(
    clusters: IntArray, categories: IntArray, *, is_new_cluster: BoolArray, is_new_category: BoolArray
) -> CategoryCount:
    """New categories that a new cluster wins, against how many there are. (n,), (n,), then by code: (k,), (c,).

    A cluster wins a category when the matching of all images pairs the two, and it has more images of the category than
    any other cluster. So a cluster that was opened and has no image, or only stray ones, counts for nothing.

    >>> clusters, categories = np.array([0, 2, 2, 3, 0, 0]), np.array([0, 1, 1, 1, 2, 2])
    >>> count_won(clusters, categories, is_new_cluster=np.arange(4) > 1, is_new_category=np.arange(3) > 0)
    CategoryCount(found=1, true=2)
    """
    counts = contingency(clusters, categories)
    category_of = match(counts)
    matched = np.flatnonzero(category_of != UNLABELED)
    won = category_of[matched]
    n_most = counts.max(axis=0).toarray() if len(matched) else won
    n_with_most = np.bincount(counts.indices[counts.data == n_most[counts.indices]], minlength=counts.shape[1])
    wins = (np.asarray(counts[matched, won]) == n_most[won]) & (n_with_most[won] == 1)
    is_new = is_new_cluster[matched] & is_new_category[won]
    return CategoryCount(found=int((wins & is_new).sum()), true=int(is_new_category[np.unique(categories)].sum()))


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
