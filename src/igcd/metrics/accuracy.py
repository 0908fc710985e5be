"""Which images are right, and the share of them in a group."""

from typing import Literal

import numpy as np

from igcd.functional.assignment import contingency, match
from igcd.metrics.groups import rows_by_code
from igcd.types import UNLABELED, BoolArray, IntArray

Average = Literal["image", "category"]


def matched_hits(clusters: IntArray, categories: IntArray, parts: IntArray | None = None) -> BoolArray:
    """Whether each image's cluster is the one matched to its category. (n,), (n,), (n,) -> (n,).

    Without parts one matching serves all images (`v2`). With them the images of each part are matched among
    themselves (`v1`), so that one cluster may stand for a category of each part.

    >>> clusters, categories = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    >>> matched_hits(clusters, categories)
    array([ True,  True, False,  True])
    >>> matched_hits(clusters, categories, parts=np.array([0, 0, 1, 1]))
    array([ True,  True,  True, False])
    """
    if parts is None:
        parts = np.zeros_like(clusters)
    hits = np.zeros(len(clusters), dtype=np.bool_)
    for rows in rows_by_code(parts).values():
        hits[rows] = hits_under(match(contingency(clusters[rows], categories[rows])), clusters[rows], categories[rows])
    return hits


def hits_under(category_of: IntArray, clusters: IntArray, categories: IntArray) -> BoolArray:
    """Whether each image is right under a matching. (clusters,), (n,), (n,) -> (n,); no prediction is never right."""
    predicted = np.flatnonzero(clusters != UNLABELED)
    hits = np.zeros(len(clusters), dtype=np.bool_)
    hits[predicted] = category_of[clusters[predicted]] == categories[predicted]
    return hits


def accuracy(hits: BoolArray, categories: IntArray, *, average: Average = "image") -> float | None:
    """Percent of images that are right, over images or as the mean over their categories; None without images.

    >>> hits, categories = np.array([True, True, True, False]), np.array([0, 0, 0, 1])
    >>> accuracy(hits, categories), accuracy(hits, categories, average="category")
    (75.0, 50.0)
    """
    if len(hits) == 0:
        return None
    if average == "image":
        return 100.0 * int(hits.sum()) / len(hits)
    n_images = np.bincount(categories)
    n_hits = np.bincount(categories[hits], minlength=len(n_images))
    return 100.0 * float(np.mean(n_hits[n_images > 0] / n_images[n_images > 0]))
