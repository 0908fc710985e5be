"""Semi-supervised k-means (GCD): labeled images stay in the cluster of their category, the others find theirs.

With nothing labeled it is k-means as scikit-learn has it: the same stopping rule and the same way with empty clusters,
so that the same first centers lead to the same clusters. All is done in chunks; beside the input there are one centered
copy of the unlabeled features and at most `max_bytes` of products at a time.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from igcd.errors import IgcdError
from igcd.functional.grouping import distinct

_CANDIDATES_AT_A_TIME = 64
_MAX_CHUNK_ROWS = 4096  # more rows of products than fit into the processor's cache gain nothing


@dataclass(frozen=True)
class Clustering:
    """What k-means found: clusters of the unlabeled images, the first of them the labeled categories."""

    clusters: Tensor  # (n,) of each unlabeled image, 0 to k - 1
    centers: Tensor  # (k, d)
    category_ids: Tensor  # (c,) rising: cluster j < c is category_ids[j], the other k - c are new
    inertia: float  # sum of squared distances of all images, labeled and unlabeled, from the center of their cluster
    n_iterations: int  # of the start that was kept


@dataclass(frozen=True)
class _Points:
    """What every iteration reads: the unlabeled images, and of the labeled ones what they add to their clusters."""

    features: Tensor  # (n, d) unlabeled, centered
    squared_norms: Tensor  # (n,)
    labeled_sums: Tensor  # (k, d)
    labeled_counts: Tensor  # (k,)
    max_shift: float  # squared shift of all centers at which they count as standing still
    max_bytes: int


@dataclass(frozen=True)
class _Nearest:
    """The center of each image, and how near: x·c − ‖c‖²/2, which is largest where ‖x − c‖ is smallest."""

    clusters: Tensor  # (n,)
    closeness: Tensor  # (n,)


def semi_supervised_kmeans(
    labeled: Tensor,
    labels: Tensor,
    unlabeled: Tensor,
    *,
    n_clusters: int,
    generator: torch.Generator,
    n_starts: int = 10,
    n_iterations: int = 300,
    tolerance: float = 1e-4,
    initial_centers: Tensor | None = None,
    max_bytes: int = 2**28,
) -> Clustering:
    """GCD's k-means over labeled and unlabeled images. (m, d), (m,), (n, d) -> clusters of the n unlabeled ones.

    The means of the labeled categories are the first centers, k-means++ draws the others from the unlabeled images.
    Then, until nothing changes: each unlabeled image goes to its nearest center, each labeled one stays with its
    category, and every center becomes the mean of its images. A cluster that runs empty gets the unlabeled image
    farthest from its own center. Of `n_starts` draws the one with the least inertia is kept. It also stops when all
    centers together shift by less than `tolerance` times the mean variance of the features (squared), or after
    `n_iterations`. `initial_centers` (k, d) replaces the drawing; the labeled categories come first in it.
    """
    category_ids, rows = distinct(labels)
    _check(labeled, labels, unlabeled, n_clusters, len(category_ids), n_starts, n_iterations)
    dtype = torch.promote_types(unlabeled.dtype, torch.float32)
    n_images = len(labeled) + len(unlabeled)
    mean = (labeled.sum(0, dtype=torch.float64) + unlabeled.sum(0, dtype=torch.float64)).to(dtype) / n_images
    points, centered_labeled = _prepare(labeled, rows, unlabeled, mean, n_clusters, tolerance, max_bytes)

    n_known = len(category_ids)
    known_centers = points.labeled_sums[:n_known] / points.labeled_counts[:n_known, None]
    if initial_centers is not None or n_known == n_clusters:
        n_starts = 1  # nothing is drawn, so all starts would be the same
    best: tuple[float, Tensor, Tensor, int] | None = None
    for _ in range(n_starts):
        if initial_centers is None:
            drawn = kmeans_plus_plus(
                points.features,
                n_clusters - n_known,
                centers=known_centers,
                generator=generator,
                max_bytes=max_bytes,
            )
            first = torch.cat([known_centers, points.features[drawn]])
        else:
            first = initial_centers.to(mean) - mean
        clusters, centers, n_done = _lloyd(points, first, n_iterations)
        within = inertia(points.features, clusters, centers) + inertia(centered_labeled, rows, centers)
        if best is None or within < best[0]:
            best = within, clusters, centers, n_done
    assert best is not None  # noqa: S101 - at least one start, see _check
    return Clustering(best[1], best[2] + mean, category_ids, best[0], best[3])


def kmeans(
    features: Tensor,
    *,
    n_clusters: int,
    generator: torch.Generator,
    n_starts: int = 10,
    n_iterations: int = 300,
    tolerance: float = 1e-4,
    initial_centers: Tensor | None = None,
    max_bytes: int = 2**28,
) -> Clustering:
    """Plain k-means, nothing labeled. (n, d) -> clusters of all n.

    >>> features = torch.tensor([[0.0], [1.0], [10.0], [11.0]])
    >>> found = kmeans(features, n_clusters=2, generator=torch.Generator().manual_seed(0))
    >>> sorted(found.centers.ravel().tolist()), found.inertia
    ([0.5, 10.5], 1.0)
    """
    return semi_supervised_kmeans(
        features[:0],
        torch.empty(0, dtype=torch.int64, device=features.device),
        features,
        n_clusters=n_clusters,
        generator=generator,
        n_starts=n_starts,
        n_iterations=n_iterations,
        tolerance=tolerance,
        initial_centers=initial_centers,
        max_bytes=max_bytes,
    )


def nearest_centers(features: Tensor, centers: Tensor, *, max_bytes: int = 2**28) -> Tensor:
    """The center nearest to each image, of equals the first. (n, d), (k, d) -> (n,).

    >>> nearest_centers(torch.tensor([[0.0], [9.0]]), torch.tensor([[10.0], [1.0]]))
    tensor([1, 0])
    """
    dtype = torch.promote_types(features.dtype, torch.float32)
    shift = centers.to(dtype).mean(dim=0)  # features far from the origin would lose their digits in the products
    shifted = centers.to(dtype) - shift
    nearest = torch.empty(len(features), dtype=torch.int64, device=features.device)
    for part in _chunks(len(features), len(centers), features.shape[1], max_bytes):
        nearest[part] = _closeness(features[part].to(dtype) - shift, shifted).argmax(dim=1)
    return nearest


def inertia(features: Tensor, clusters: Tensor, centers: Tensor) -> float:
    """Sum of squared distances of images from the center of their cluster. (n, d), (n,), (k, d) -> a number.

    >>> inertia(torch.tensor([[0.0], [3.0]]), torch.tensor([0, 0]), torch.tensor([[1.0]]))
    5.0
    """
    total = 0.0
    for start in range(0, len(features), _MAX_CHUNK_ROWS):
        part = slice(start, start + _MAX_CHUNK_ROWS)
        total += float((features[part] - centers[clusters[part]]).square().sum(dtype=torch.float64))
    return total


def kmeans_plus_plus(
    features: Tensor, n: int, *, generator: torch.Generator, centers: Tensor | None = None, max_bytes: int = 2**28
) -> Tensor:
    """Positions of n images drawn as first centers, far from each other and from `centers`. (n, d), (c, d) -> (n,).

    Each is drawn with a probability in proportion to its squared distance from the nearest center so far, given or
    drawn (Arthur and Vassilvitskii, 2007); without centers the first is any image.

    One column of distances after each draw would read all features n times. Instead many candidates are drawn from the
    distances as they stand, and one after the other is accepted with probability (its squared distance now) / (its
    squared distance when the candidates were drawn): rejection sampling, which gives exactly the same distribution.
    Distances of all images from the accepted ones are then one matrix product.
    """
    chosen = torch.empty(0, dtype=torch.int64, device=features.device)
    if n == 0:
        return chosen
    squared = torch.full((len(features),), torch.inf, dtype=features.dtype, device=features.device)
    if centers is not None and len(centers):
        _lower_to(squared, features, centers, max_bytes)
    else:
        chosen = torch.randint(len(features), (1,), generator=generator).to(features.device)
        _lower_to(squared, features, features[chosen], max_bytes)
        squared[chosen] = 0.0
    while len(chosen) < n:
        # A copy of a chosen image has a distance of 0 but for rounding.
        weights = squared.double().cumsum(0)
        if weights[-1] <= 0:  # no image differs from all centers: any one not taken will do
            untaken = torch.ones(len(features), dtype=torch.bool, device=features.device).index_fill(0, chosen, False)
            left = untaken.nonzero()[:, 0]
            order = torch.randperm(len(left), generator=generator).to(features.device)
            return torch.cat([chosen, left[order[: n - len(chosen)]]])
        draws = torch.rand(_CANDIDATES_AT_A_TIME, 2, generator=generator, dtype=torch.float64).to(features.device)
        candidates = torch.searchsorted(weights, draws[:, 0] * weights[-1], right=True).clamp_(max=len(features) - 1)
        accepted = _accept(features[candidates], squared[candidates], draws[:, 1], n - len(chosen))
        new = candidates[accepted]
        _lower_to(squared, features, features[new], max_bytes)
        squared[new] = 0.0
        chosen = torch.cat([chosen, new])
    return chosen


def _accept(candidates: Tensor, squared: Tensor, draws: Tensor, n: int) -> Tensor:
    """Which candidates are accepted, up to n, each in the light of those before it. (b, d), (b,), (b,) -> (a,)."""
    between = (candidates[:, None] - candidates).square().sum(dim=2)
    thresholds, now = (draws * squared).tolist(), squared
    accepted: list[int] = []
    for row in range(len(candidates)):
        if thresholds[row] < float(now[row]):
            accepted.append(row)
            if len(accepted) == n:
                break
            now = torch.minimum(now, between[row])
    return torch.tensor(accepted, dtype=torch.int64, device=candidates.device)


def _lower_to(squared: Tensor, features: Tensor, centers: Tensor, max_bytes: int) -> None:
    """Lowers squared distances, (n,), to those from the nearest of some more centers, (c, d), in place."""
    for part in _chunks(len(features), len(centers), features.shape[1], max_bytes):
        block = features[part]
        nearest = block.square().sum(dim=1) - 2 * _closeness(block, centers).amax(dim=1)
        squared[part] = torch.minimum(squared[part], nearest.clamp_(min=0.0))


def _lloyd(points: _Points, centers: Tensor, n_iterations: int) -> tuple[Tensor, Tensor, int]:
    """Clusters, centers and number of iterations when nothing changes any more, from first centers (k, d)."""
    nearest = _assign(points, centers)
    for done in range(1, n_iterations + 1):
        moved_to = _means(points, nearest, centers)
        shift = (moved_to - centers).square().sum(dim=1)
        before, centers = nearest.clusters, moved_to
        nearest = _assign(points, centers, nearest, has_moved=shift > 0)
        if float(shift.sum()) <= points.max_shift:
            return nearest.clusters, centers, done
        if torch.equal(before, nearest.clusters):  # scikit-learn counts the iteration that found nothing to change
            return nearest.clusters, centers, min(done + 1, n_iterations)
    return nearest.clusters, centers, n_iterations


def _assign(
    points: _Points, centers: Tensor, before: _Nearest | None = None, has_moved: Tensor | None = None
) -> _Nearest:
    """The nearest center of every unlabeled image.

    An image whose center stands still can only be drawn away by one that has moved, so it is compared with those
    alone (Kaukoranta, Fränti and Nevalainen, 1999). Near the end that is most images and few centers.
    """
    features = points.features
    if before is None or has_moved is None:
        clusters = torch.empty(len(features), dtype=torch.int64, device=features.device)
        closeness = features.new_empty(len(features))
        for part in _chunks(len(features), len(centers), features.shape[1], points.max_bytes):
            closeness[part], clusters[part] = _closeness(features[part], centers).max(dim=1)
        return _Nearest(clusters, closeness)

    clusters, closeness = before.clusters.clone(), before.closeness.clone()
    lost_center = has_moved[clusters]
    for rows in _row_chunks(lost_center.nonzero()[:, 0], len(centers), features.shape[1], points.max_bytes):
        closeness[rows], clusters[rows] = _closeness(features[rows], centers).max(dim=1)
    moved_idx = has_moved.nonzero()[:, 0]
    if len(moved_idx):
        moved = centers[moved_idx]
        for rows in _row_chunks((~lost_center).nonzero()[:, 0], len(moved), features.shape[1], points.max_bytes):
            best = _closeness(features[rows], moved).max(dim=1)
            nearer = best.values > closeness[rows]
            closeness[rows[nearer]] = best.values[nearer]
            clusters[rows[nearer]] = moved_idx[best.indices[nearer]]
    return _Nearest(clusters, closeness)


def _means(points: _Points, nearest: _Nearest, centers: Tensor) -> Tensor:
    """The mean of each cluster, labeled images included; an empty one takes the unlabeled image farthest from its own.

    (k, d) -> (k, d). That image then counts for its new cluster alone, as in scikit-learn.
    """
    sums = points.labeled_sums.index_add(0, nearest.clusters, points.features)
    counts = points.labeled_counts + torch.bincount(nearest.clusters, minlength=len(centers))
    empty = (counts == 0).nonzero()[:, 0]
    if len(empty) and len(points.features):
        squared = points.squared_norms - 2 * nearest.closeness
        far = squared.topk(min(len(empty), len(squared)))
        far_idx = far.indices[far.values > 0]  # an image that is its own center would leave that one empty
        empty = empty[: len(far_idx)]
        far_features, leaves = points.features[far_idx], nearest.clusters[far_idx]
        sums.index_add_(0, leaves, far_features, alpha=-1)
        counts.index_add_(0, leaves, torch.ones_like(leaves).to(counts), alpha=-1)
        sums[empty], counts[empty] = far_features, 1
    return torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], centers)


def _prepare(
    labeled: Tensor, rows: Tensor, unlabeled: Tensor, mean: Tensor, n_clusters: int, tolerance: float, max_bytes: int
) -> tuple[_Points, Tensor]:
    """Features about their mean, so that float32 spends its digits on differences, and what stays the same."""
    centered = unlabeled.to(mean.dtype) - mean
    centered_labeled = labeled.to(mean.dtype) - mean
    squared_norms = centered.square().sum(dim=1)
    labeled_norms = centered_labeled.square().sum(dim=1)
    finite = torch.cat([labeled_norms, squared_norms]).isfinite()
    if not finite.all():
        # With a NaN among the values the mean is undefined: look at the values themselves.
        everything = torch.cat([labeled, unlabeled])
        position = int((~everything.isfinite().all(dim=1)).to(torch.uint8).argmax())
        raise IgcdError(
            f"features must be finite numbers, the one at position {position} (labeled ones first) is not; "
            "check the image or the training that led to it"
        )
    mean_variance = float(labeled_norms.sum() + squared_norms.sum()) / (len(finite) * len(mean))
    sums = mean.new_zeros(n_clusters, len(mean)).index_add_(0, rows, centered_labeled)
    counts = torch.bincount(rows, minlength=n_clusters).to(mean.dtype)
    return _Points(centered, squared_norms, sums, counts, tolerance * mean_variance, max_bytes), centered_labeled


def _closeness(features: Tensor, centers: Tensor) -> Tensor:
    """x·c − ‖c‖²/2 of each image and center. (n, d), (k, d) -> (n, k)."""
    return torch.addmm(centers.square().sum(dim=1), features, centers.T, beta=-0.5)


def _chunk_rows(n_centers: int, width: int, max_bytes: int) -> int:
    return max(1, min(_MAX_CHUNK_ROWS, max_bytes // (8 * (n_centers + width))))


def _chunks(n: int, n_centers: int, width: int, max_bytes: int) -> list[slice]:
    """Slices of n rows, each so long that its products with all centers fit into `max_bytes`."""
    step = _chunk_rows(n_centers, width, max_bytes)
    return [slice(start, start + step) for start in range(0, n, step)]


def _row_chunks(rows: Tensor, n_centers: int, width: int, max_bytes: int) -> tuple[Tensor, ...]:
    return torch.split(rows, _chunk_rows(n_centers, width, max_bytes)) if len(rows) else ()


def _check(
    labeled: Tensor,
    labels: Tensor,
    unlabeled: Tensor,
    n_clusters: int,
    n_known: int,
    n_starts: int,
    n_iterations: int,
) -> None:
    if labeled.ndim != 2 or unlabeled.ndim != 2 or labeled.shape[1] != unlabeled.shape[1]:
        raise IgcdError(
            f"features must be two tables of the same width, got {tuple(labeled.shape)} and {tuple(unlabeled.shape)}; "
            "encode both with the same model"
        )
    if len(labels) != len(labeled):
        raise IgcdError(f"expected one label per labeled image, got {len(labels)} for {len(labeled)}; align them")
    if not max(n_known, 1) <= n_clusters <= n_known + len(unlabeled):
        raise IgcdError(
            f"n_clusters must be at least the number of labeled categories and one, and leave an unlabeled image for "
            f"each other cluster, got {n_clusters} for {n_known} categories and {len(unlabeled)} unlabeled images; "
            "change the number of clusters"
        )
    if n_starts < 1 or n_iterations < 1:
        raise IgcdError(
            f"k-means needs at least one start and one iteration, got {n_starts} and {n_iterations}; raise them"
        )
