"""Where new clusters start: at the centers of those images that the known categories explain worst.

k-means over all unlabeled images, with as many clusters as there are categories, has a handful of images for each, and
the centers least like the known ones are then outliers. So the images are split first, and k-means with the number of
novel categories alone sees the novel part alone.
"""

from typing import Literal

import torch
from torch import Tensor

from igcd.functional.grouping import distinct
from igcd.functional.kmeans import kmeans
from igcd.functional.prototype_novelty import similarity_to_known
from igcd.functional.prototypes import least_similar

NovelStart = Literal["split", "all"]
"""k-means on what a novelty split leaves, or on all unlabeled images (Happy's) with the least similar centers taken."""


def novel_centers(
    features: Tensor,
    known: Tensor,
    n_novel: int,
    *,
    generator: torch.Generator,
    start: NovelStart = "split",
    n_starts: int = 10,
) -> Tensor:
    """First centers of novel clusters among unlabeled images. (n, d), prototypes (c, d) -> (n_novel, d).

    `n_novel` is at most n. Without a known category every image is novel. With `split`, an image that has a cluster to
    itself is odd rather than a category: it is left out and the others are clustered again, while there are enough.
    """
    if start == "all":
        n_centers = min(len(known) + n_novel, len(features))
        centers = kmeans(features, n_clusters=n_centers, generator=generator, n_starts=n_starts).centers
        return centers[least_similar(centers, known, n_novel)]
    novel = features[is_novel_part(features, known, at_least=n_novel)]
    while True:
        found = kmeans(novel, n_clusters=n_novel, generator=generator, n_starts=n_starts)
        is_odd = is_alone(found.clusters)
        if not is_odd.any() or int((~is_odd).sum()) < 2 * n_novel:
            return found.centers
        novel = novel[~is_odd]


def is_novel_part(features: Tensor, known: Tensor, *, at_least: int) -> Tensor:
    """Which images are least like the known prototypes: a group of their own. (n, d), (c, d) -> (n,) bool.

    They are separated by `gap_between_groups` of their similarities, without any label: many stages have none to set a
    threshold by, and where there are some, training has made labeled images more like their prototypes than others are.
    """
    if len(known) == 0:
        return torch.ones(len(features), dtype=torch.bool, device=features.device)
    similarity = similarity_to_known(features, known)
    is_novel = similarity < gap_between_groups(similarity)
    is_novel[similarity.argsort(stable=True)[:at_least]] = True
    return is_novel


def is_alone(clusters: Tensor) -> Tensor:
    """Which images have a cluster to themselves. (n,) -> (n,) bool.

    >>> is_alone(torch.tensor([3, 5, 3]))
    tensor([False,  True, False])
    """
    _, rows = distinct(clusters)
    return torch.bincount(rows)[rows] == 1


def gap_between_groups(values: Tensor) -> float:
    """The number that best cuts values into a low and a high group (Otsu, 1979). (n,), n >= 1 -> a number.

    Of all cuts the one with the least variance inside the groups, in the middle between their closest values.

    >>> gap_between_groups(torch.tensor([0.25, 1.0, 0.0, 1.25, 0.75]))
    0.5
    """
    ordered = values.double().sort().values
    n_low = torch.arange(1, len(ordered), dtype=torch.float64, device=values.device)
    n_high = len(ordered) - n_low
    sums = ordered.cumsum(0)
    between = n_low * n_high * (sums[:-1] / n_low - (sums[-1] - sums[:-1]) / n_high).square()
    if len(between) == 0 or float(ordered[-1]) == float(ordered[0]):
        return float(ordered[0])  # nothing lies below it
    cut = int(between.argmax())
    return float((ordered[cut] + ordered[cut + 1]) / 2)
