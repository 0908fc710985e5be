"""Identity stability: whether a cluster still means the category for which it was opened."""

import numpy as np

from igcd.functional.assignment import canonical_order, contingency, match
from igcd.metrics.accuracy import accuracy, hits_under
from igcd.metrics.groups import rows_by_code
from igcd.types import UNLABELED, BoolArray, IntArray


def identity_stability(stages: IntArray, clusters: IntArray, categories: IntArray) -> dict[int, float]:
    """Percent of images right at each stage, when a cluster keeps the category it was first matched to.

    At each stage the categories that have no cluster yet are matched with the clusters that have no category yet, and
    what is matched stays so. (n,), (n,), (n,) -> stage: percent.

    >>> stages, categories = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> identity_stability(stages, np.array([4, 5, 4, 5]), categories)
    {0: 100.0, 1: 100.0}
    >>> identity_stability(stages, np.array([4, 5, 5, 4]), categories)
    {0: 100.0, 1: 0.0}
    """
    hits = hits_by_fixed_names(stages, clusters, categories, gives_names=np.ones(len(stages), dtype=np.bool_))
    stable: dict[int, float] = {}
    for stage, rows in rows_by_code(stages).items():
        percent = accuracy(hits[rows], categories[rows])
        assert percent is not None  # noqa: S101 (a stage has rows)
        stable[stage] = percent
    return stable


def hits_by_fixed_names(
    stages: IntArray, clusters: IntArray, categories: IntArray, *, gives_names: BoolArray
) -> BoolArray:
    """Whether each image is right when a cluster keeps the category that it was given first. (n,) each -> (n,).

    At each stage the categories that have no cluster yet are matched with the clusters that have no category yet, by
    the images of the stage that give names; what is matched stays so.
    """
    clusters = _canonical_clusters(stages, clusters, categories)
    category_of = np.full(int(clusters.max(initial=-1)) + 1, UNLABELED, dtype=np.int64)
    has_cluster = np.zeros(int(categories.max(initial=-1)) + 1, dtype=np.bool_)
    hits = np.zeros(len(stages), dtype=np.bool_)
    for rows in rows_by_code(stages).values():
        naming = rows[gives_names[rows]]
        open_rows = (clusters[naming] != UNLABELED) & ~has_cluster[categories[naming]]
        open_rows[open_rows] = category_of[clusters[naming][open_rows]] == UNLABELED
        found = match(contingency(clusters[naming][open_rows], categories[naming][open_rows]))
        category_of[: len(found)] = np.where(found == UNLABELED, category_of[: len(found)], found)
        has_cluster[found[found != UNLABELED]] = True
        hits[rows] = hits_under(category_of, clusters[rows], categories[rows])
    return hits


def _canonical_clusters(stages: IntArray, clusters: IntArray, categories: IntArray) -> IntArray:
    """Clusters renumbered by their content over all stages.

    Two clusters that are alike in one stage may part later, so which of them a tied matching takes would matter. With
    these numbers the tie is broken by the whole content, and renaming the clusters changes nothing.
    """
    cells = np.unique(stages, return_inverse=True)[1] * (int(categories.max(initial=-1)) + 1) + categories
    order = canonical_order(contingency(clusters, cells))
    number = np.empty(len(order) + 1, dtype=np.int64)
    number[order] = np.arange(len(order))
    number[UNLABELED] = UNLABELED
    return number[clusters]
