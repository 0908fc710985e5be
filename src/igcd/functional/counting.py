"""How many categories are there? Three estimators behind one function.

`density` asks the discovery core, which grows one tree; `kmeans` (GCD, GM) and `silhouette` cluster again for every
number they try. All are given the same: labeled features, perhaps none, and unlabeled ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.assignment import contingency, match
from igcd.functional.discovery import discover
from igcd.functional.grouping import distinct
from igcd.functional.kmeans import kmeans
from igcd.functional.projection import project_together
from igcd.types import IntArray

CountMethod = Literal["density", "kmeans", "silhouette"]
COUNT_METHODS: tuple[CountMethod, ...] = get_args(CountMethod)

MAX_CATEGORIES = 1000
"""GCD's upper limit of the search, where nothing else is said."""
SILHOUETTE_SAMPLE = 4000
"""The silhouette is taken over so many images at most: its time grows with their square."""
SILHOUETTE_GRID = 12
"""Numbers tried across the whole range, and again around the best of them."""


@dataclass(frozen=True)
class CountEstimate:
    """The number of categories among labeled and unlabeled images together."""

    method: CountMethod
    n_categories: int
    n_novel: int  # of them without a label
    n_trials: int  # how many numbers were tried; 1 for density
    details: Mapping[str, float | int]  # what the estimate rests on


def estimate_count(
    method: CountMethod,
    labeled: Tensor,
    labels: Tensor,
    unlabeled: Tensor,
    *,
    generator: torch.Generator,
    granularity: float = 0.0,
    max_categories: int | None = None,
    n_starts: int = 1,
) -> CountEstimate:
    """Number of categories by a method of that name. (m, d), (m,), (n, d); m may be 0 but for `kmeans`.

    `granularity` belongs to `density`; `max_categories`, `n_starts` and what is drawn belong to the other two.
    """
    if method not in COUNT_METHODS:
        raise IgcdError(f"there is no count method {method!r}; choose one of {', '.join(COUNT_METHODS)}")
    _check(labeled, labels, unlabeled)
    if method == "density":
        return count_by_density(labeled, labels, unlabeled, granularity=granularity)
    search = count_by_kmeans if method == "kmeans" else count_by_silhouette
    return search(labeled, labels, unlabeled, generator=generator, max_categories=max_categories, n_starts=n_starts)


def count_by_density(labeled: Tensor, labels: Tensor, unlabeled: Tensor, *, granularity: float = 0.0) -> CountEstimate:
    """Known categories, and the new ones that the discovery core finds among the unlabeled images.

    (m, d), (m,), (n, d). Features are centered, reduced and normalised, as everywhere that the core is asked.
    """
    rows = torch.cat(project_together(labeled, unlabeled))
    is_labeled = torch.arange(len(rows)) < len(labeled)
    return count_projected(rows, is_labeled, labels, granularity=granularity)


def count_projected(
    rows: Tensor, is_labeled: Tensor, labels: Tensor, *, granularity: float = 0.0, seed: int = 0
) -> CountEstimate:
    """The same for images as they are compared, see `functional.projection`. (n, c), (n,), (m,) of those labeled.

    `granularity` and `seed` are those of `discover`.
    """
    # Copies without a name: the core lets go of them when it has made its own.
    found = discover(rows[~is_labeled], rows[is_labeled], labels, granularity=granularity, seed=seed)
    details = {"height": found.cut.height, "neighbor_recall": found.recall}
    return CountEstimate("density", found.n_known + found.n_novel, found.n_novel, 1, details)


def count_by_kmeans(
    labeled: Tensor,
    labels: Tensor,
    unlabeled: Tensor,
    *,
    generator: torch.Generator,
    max_categories: int | None = None,
    n_starts: int = 1,
) -> CountEstimate:
    """The K whose plain k-means fits the labels best, found by Brent's bounded search, as GCD and GM do.

    (m, d), (m,), (n, d). Maximised is the accuracy on the labeled images under the Hungarian matching of the clusters
    of all images to categories, between the number of labeled categories and an upper limit. The search goes over real
    numbers, each rounded, and no K is clustered twice; of equally good ones the smallest is taken. Features are
    normalised.
    """
    known_ids, rows = distinct(labels)
    if len(known_ids) == 0:
        raise IgcdError(
            "counting by k-means compares clusters with labels and got none; give labels, or take density or silhouette"
        )
    everything = normalize(torch.cat([labeled, unlabeled]).float(), dim=1)
    seed = _draw_seed(generator)

    def accuracy(n_clusters: int) -> float:
        own = torch.Generator().manual_seed(seed)  # the same draws for every K, so that only K makes the difference
        found = kmeans(everything, n_clusters=n_clusters, generator=own, n_starts=n_starts)
        return matched_accuracy(found.clusters[: len(labels)].cpu().numpy(), rows.cpu().numpy())

    fewest, most = _search_range(len(known_ids), len(everything), max_categories)
    tried = _brent(accuracy, fewest, most)
    best = max(sorted(tried), key=tried.__getitem__)
    return CountEstimate("kmeans", best, best - len(known_ids), len(tried), {"accuracy": tried[best]})


def count_by_silhouette(
    labeled: Tensor,
    labels: Tensor,
    unlabeled: Tensor,
    *,
    generator: torch.Generator,
    max_categories: int | None = None,
    n_starts: int = 1,
) -> CountEstimate:
    """The K whose plain k-means has the largest mean silhouette (Rousseeuw, 1987). (m, d), (m,), (n, d).

    Labels only say how many categories there are at least. Tried are a dozen numbers in equal ratios across the range,
    then a dozen between the neighbors of the best. The silhouette is taken over a sample, the same for every K.
    Features are normalised.
    """
    known_ids, _ = distinct(labels)
    everything = normalize(torch.cat([labeled, unlabeled]).float(), dim=1)
    seed = _draw_seed(generator)
    sample = torch.randperm(len(everything), generator=generator)[:SILHOUETTE_SAMPLE].to(everything.device)
    sampled = everything[sample]

    def score(n_clusters: int) -> float:
        own = torch.Generator().manual_seed(seed)
        clusters = kmeans(everything, n_clusters=n_clusters, generator=own, n_starts=n_starts).clusters
        return mean_silhouette(sampled, clusters[sample])

    fewest, most = _search_range(max(2, len(known_ids)), len(everything), max_categories)
    tried: dict[int, float] = {}
    for _ in range(2):
        for n_clusters in _equal_ratios(fewest, most, SILHOUETTE_GRID):
            if n_clusters not in tried:
                tried[n_clusters] = score(n_clusters)
        in_order = sorted(tried)
        place = in_order.index(max(in_order, key=tried.__getitem__))
        fewest, most = in_order[max(place - 1, 0)], in_order[min(place + 1, len(in_order) - 1)]
    best = max(sorted(tried), key=tried.__getitem__)
    return CountEstimate("silhouette", best, best - len(known_ids), len(tried), {"silhouette": tried[best]})


def matched_accuracy(clusters: IntArray, rows: IntArray) -> float:
    """Share of images whose cluster is the one matched to their category, by the Hungarian matching. (n,), (n,).

    >>> matched_accuracy(np.array([3, 3, 1, 0]), np.array([0, 0, 1, 1]))
    0.75
    """
    category_of = match(contingency(clusters, rows))
    return float(np.mean(category_of[clusters] == rows))


def mean_silhouette(features: Tensor, clusters: Tensor, *, max_bytes: int = 2**26) -> float:
    """Mean over images of (b − a) / max(a, b). (n, d), (n,) -> −1 to 1.

    a is an image's mean distance from the others of its cluster, b the smallest mean distance from those of another
    one. An image alone in its cluster counts 0, and so does everything where there is but one cluster.

    >>> line = torch.tensor([[0.0], [1.0], [10.0]])
    >>> mean_silhouette(line, torch.tensor([0, 0, 1]))  # (0.9 + 8/9 + 0) / 3
    0.5962...
    """
    ids, rows = distinct(clusters)
    if len(ids) < 2:
        return 0.0
    sizes = torch.bincount(rows)
    total = 0.0
    n_rows = max(1, max_bytes // (8 * (len(features) + len(ids))))
    for start in range(0, len(features), n_rows):
        part = slice(start, start + n_rows)
        distances = torch.cdist(features[part], features)
        sums = distances.new_zeros(len(distances), len(ids)).index_add_(1, rows, distances)
        own = rows[part, None]
        inside = sums.gather(1, own)[:, 0] / (sizes[rows[part]] - 1).clamp(min=1)
        outside = (sums / sizes).scatter_(1, own, torch.inf).amin(dim=1)
        larger = torch.maximum(inside, outside)
        scores = torch.where((sizes[rows[part]] > 1) & (larger > 0), (outside - inside) / larger, 0.0)
        total += float(scores.sum(dtype=torch.float64))
    return total / len(features)


def _brent(score: Callable[[int], float], fewest: int, most: int) -> dict[int, float]:
    """The scores of all whole numbers that Brent's bounded search for the largest one visits."""
    tried: dict[int, float] = {}

    def loss(n_clusters: float) -> float:
        rounded = round(n_clusters)
        if rounded not in tried:
            tried[rounded] = score(rounded)
        return -tried[rounded]

    if fewest == most:
        loss(fewest)
    else:  # numbers closer than one half are the same number of clusters
        minimize_scalar(loss, bounds=(fewest, most), method="bounded", options={"xatol": 0.5})
    return tried


def _search_range(fewest: int, n_images: int, max_categories: int | None) -> tuple[int, int]:
    """The smallest and the largest number of clusters to try; by default up to two images per cluster or 1,000."""
    most = max_categories
    if most is None:
        most = max(fewest, min(MAX_CATEGORIES, n_images // 2))
    if not fewest <= most <= n_images:
        raise IgcdError(
            f"max_categories must be between {fewest}, the fewest there can be, and the number of images, {n_images}, "
            f"got {most}; change it"
        )
    return fewest, most


def _equal_ratios(fewest: int, most: int, n: int) -> list[int]:
    """Up to n whole numbers from the fewest to the most, each about the same factor above the one before."""
    return sorted({round(x) for x in np.geomspace(fewest, most, n)})


def _draw_seed(generator: torch.Generator) -> int:
    return int(torch.randint(2**31, (1,), generator=generator))


def check_unlabeled(n: int) -> None:
    """Refuses to count among so few."""
    if n < 2:
        raise IgcdError(f"counting needs two unlabeled images at least, got {n}; give more")


def _check(labeled: Tensor, labels: Tensor, unlabeled: Tensor) -> None:
    if labeled.ndim != 2 or unlabeled.ndim != 2 or labeled.shape[1] != unlabeled.shape[1]:
        raise IgcdError(
            f"features must be two tables of the same width, got {tuple(labeled.shape)} and {tuple(unlabeled.shape)}; "
            "encode both with the same model"
        )
    if len(labels) != len(labeled):
        raise IgcdError(f"expected one label per labeled image, got {len(labels)} for {len(labeled)}; align them")
    check_unlabeled(len(unlabeled))
    for name, features in (("labeled", labeled), ("unlabeled", unlabeled)):
        # A sum is finite only if all that is summed is, and it needs no table of truths as large as the features.
        finite = features.sum(dim=1, dtype=torch.float64).isfinite()
        if not finite.all():
            raise IgcdError(
                f"features must be finite numbers, {name} image {int(finite.to(torch.uint8).argmin())} has others; "
                "check what it was encoded from"
            )
