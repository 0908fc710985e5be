"""Density peaks: images that stand for a category because nobody around them has closer neighbors. Section 4.3."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from igcd.errors import IgcdError
from igcd.functional.grouping import distinct, rank_within_group
from igcd.functional.neighbors import Neighbors

PeakCount = Literal["each", "total"]
"""Whether peaks are counted in each category or in all together, see `peak_count_error`."""
CANDIDATES = (3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40)
"""Each K that is tried, where no others are given."""


@dataclass(frozen=True)
class DensityPeaks:
    """The images that stand for a category each, and how dense every image is."""

    idx: Tensor  # (p,) positions of the peaks, densest first
    density: Tensor  # (n,) of all images


@dataclass(frozen=True)
class Members:
    """Images that carry the pseudo-label of a peak: peak by peak, the peak itself first, then from near to far."""

    idx: Tensor  # (m,) positions of images, no image twice
    peak: Tensor  # (m,) which peak, as a position in the list of peaks


def density(neighbors: Neighbors) -> Tensor:
    """Mean cosine similarity to the K nearest neighbors, eq. 8. (n, K) -> (n,)."""
    return neighbors.similarity.mean(dim=1)


def density_peaks(density: Tensor, neighbors: Neighbors) -> Tensor:
    """Images denser than each of their K nearest neighbors, eq. 9, densest first. (n,), (n, K) -> (p,).

    Of images equally dense the one with the lower index counts as denser: copies of an image would otherwise lose
    the peak of their region to each other.
    """
    around = density[neighbors.idx]
    own, own_idx = density[:, None], torch.arange(len(density), device=density.device)[:, None]
    peaks = ((own > around) | ((own == around) & (own_idx < neighbors.idx))).all(dim=1).nonzero()[:, 0]
    return peaks[density[peaks].argsort(descending=True, stable=True)]


def neighbor_overlap(peaks: Tensor, neighbors: Neighbors) -> sparse.csr_array:
    """IoU of the K^d-neighbor sets of each two peaks, section 4.3. (p,), (n, K^d) -> (p, p), absent where 0.

    The sets are those of the density: without the image itself. Only peaks that share a neighbor can overlap, so this
    is a sparse product and no double loop.
    """
    sets = neighbors.idx[peaks].cpu().numpy()
    rows = np.repeat(np.arange(len(sets)), sets.shape[1])
    ones = np.ones(sets.size, dtype=np.int32)
    incidence = sparse.csr_array((ones, (rows, sets.ravel())), shape=(len(sets), len(neighbors)))
    shared = (incidence @ incidence.T).tocsr()
    shared.sort_indices()
    iou = shared.astype(np.float64)
    iou.data /= 2 * sets.shape[1] - shared.data
    return iou


def remove_redundant_peaks(peaks: Tensor, neighbors: Neighbors, *, max_iou: float) -> Tensor:
    """The peaks that remain where of two with an IoU above T the denser stays. (p,), (n, K^d) -> (q,), densest first.

    `peaks` come densest first, as from `density_peaks`, and are visited in that order; as in non-maximum suppression,
    a peak that has been removed removes no other.
    """
    overlap = neighbor_overlap(peaks, neighbors)
    stays = np.ones(len(peaks), dtype=bool)
    for row in range(len(peaks)):
        if not stays[row]:
            continue
        entries = slice(overlap.indptr[row], overlap.indptr[row + 1])
        redundant = overlap.indices[entries][overlap.data[entries] > max_iou]
        stays[redundant[redundant > row]] = False
    return peaks[torch.from_numpy(stays).to(peaks.device)]


def find_density_peaks(
    neighbors: Neighbors, *, n_neighbors: int = 10, n_overlap_neighbors: int = 20, max_iou: float = 0.6
) -> DensityPeaks:
    """Density, peaks, and redundant peaks removed, with the paper's K, K^d and T as defaults.

    `neighbors` is a graph of at least max(K, K^d) neighbors. The number of peaks is the count of categories.
    """
    nearest = neighbors.first(n_neighbors)
    densities = density(nearest)
    peaks = density_peaks(densities, nearest)
    return DensityPeaks(remove_redundant_peaks(peaks, neighbors.first(n_overlap_neighbors), max_iou=max_iou), densities)


def peak_members(peaks: Tensor, neighbors: Neighbors, *, n_members: int) -> Members:
    """Each peak with its nearest neighbors, at most `n_members` in all: the pseudo-labels of section 4.3.

    An image near several peaks goes to the most similar one (to the one that comes first where they are equal), and the
    others reach for their next neighbor, as far as the graph goes. A peak is a member of itself only.
    """
    n_peaks, k = len(peaks), neighbors.k
    image = torch.cat([peaks[:, None], neighbors.idx[peaks]], dim=1).ravel()
    self_similarity = torch.full((n_peaks, 1), torch.inf, device=peaks.device)
    similarity = torch.cat([self_similarity, neighbors.similarity[peaks]], dim=1).ravel()
    peak = torch.arange(n_peaks, device=peaks.device).repeat_interleave(k + 1)

    by_similarity = similarity.argsort(descending=True, stable=True)
    owned = by_similarity[rank_within_group(image[by_similarity]) == 0].sort().values  # back to peak by peak
    owned = owned[rank_within_group(peak[owned]) < n_members]
    return Members(image[owned], peak[owned])


def peak_count_error(peaks: Tensor, categories: Tensor, *, count: PeakCount = "each") -> float:
    """How far from one the number of peaks per category is. (p,), (n,) -> 0 where all is well.

    `each`: the mean over categories of |peaks − 1|, so that a category split in two does not make up for one that was
    swallowed. `total`: |peaks − categories| / categories, the error of the count alone.
    """
    ids, rows = distinct(categories)
    if count == "total":
        return abs(len(peaks) - len(ids)) / len(ids)
    n_peaks = torch.bincount(rows[peaks], minlength=len(ids))
    return float((n_peaks - 1).abs().double().mean())


def choose_n_neighbors(
    neighbors: Neighbors,
    categories: Tensor,
    *,
    candidates: Sequence[int] = CANDIDATES,
    overlap_factor: int = 2,
    max_iou: float = 0.6,
    count: PeakCount = "each",
) -> int:
    """The K at which labeled categories come out as one peak each: K decides the count, and they tell how fine it is.

    `neighbors` is the graph among labeled images, `categories` (n,) theirs. Tried are the candidates for which the
    graph has `overlap_factor` · K neighbors (the paper's K^d is 2 K). The error is that of `peak_count_error`; where
    several K are equally good, the middle one is taken, the farthest from where it would go wrong. On overlapping
    categories `each` tends to a larger K and too few peaks, `total` to a smaller one with more, true and false.

    The right K grows with the images per category, so give as many labeled images of each category as the set has that
    K is meant for.
    """
    tried = sorted({k for k in candidates if overlap_factor * k <= neighbors.k})
    if not tried or len(categories) != len(neighbors):
        raise IgcdError(
            f"choosing K needs one category per image and a graph of {overlap_factor} neighbors per candidate, got "
            f"{len(categories)} categories for {len(neighbors)} images, {neighbors.k} neighbors and candidates "
            f"{list(candidates)}; build a larger graph or lower the candidates"
        )
    errors = []
    for k in tried:
        found = find_density_peaks(neighbors, n_neighbors=k, n_overlap_neighbors=overlap_factor * k, max_iou=max_iou)
        errors.append(peak_count_error(found.idx, categories, count=count))
    best = [k for k, error in zip(tried, errors, strict=True) if error == min(errors)]
    return best[(len(best) - 1) // 2]
