"""Which unlabeled images open a category, section 4.3, and which stand for it: by the discovery core or by peaks."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from igcd.functional.density import Members, find_density_peaks, peak_members
from igcd.functional.discovery import discover
from igcd.functional.granularity import Granularity
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novelty import is_novel, match_known
from igcd.functional.projection import project_together
from igcd.functional.refining import nearest_mean

DiscoveryRule = Literal["core", "peaks", "all_peaks"]
"""The discovery core; the paper's density peaks, of which those are known that `is_novel` says are; or, as in the
authors' code, known and unlabeled images share one graph and every unlabeled peak opens a category."""


@dataclass(frozen=True)
class NovelPeaks:
    """Peaks, or typical images, that open a category."""

    members: Members  # unlabeled images around each peak, the peak first
    nearest: Tensor  # (p,) the known category most like each


def find_novel_peaks(
    unlabeled: Tensor,
    known: Tensor,
    categories: Tensor,
    granularity: Granularity,
    *,
    n_support: int,
    n_members: int,
    n_closest: int = 5,
    max_iou: float = 0.6,
    by: DiscoveryRule = "peaks",
    n_novel: int | None = None,
) -> NovelPeaks:
    """Peaks of at least three unlabeled images that no known category explains, densest first. (n, d), (m, d), (m,).

    The graph reaches as far as K, K^d or `n_support` asks for, and up to `n_members` images in it go with a peak. Where
    the number `n_novel` is given, so many peaks open a category: those that exceed the known most, or the densest of
    `all_peaks`.
    """
    if by == "core":
        return find_novel_categories(unlabeled, known, categories, granularity, n_members=n_members, n_novel=n_novel)
    everything = torch.cat([unlabeled, known]) if by == "all_peaks" else unlabeled
    graph = neighbor_graph(everything, min(max(granularity.K, granularity.K_d, n_support), len(everything) - 1))
    found = find_density_peaks(
        graph,
        n_neighbors=min(granularity.K, graph.k),
        n_overlap_neighbors=min(granularity.K_d, graph.k),
        max_iou=max_iou,
    )
    peaks = found.idx[found.idx < len(unlabeled)]
    nearest = match_known(unlabeled[peaks], known, categories, n_closest=n_closest)
    if n_novel is not None:
        excess = found.density[peaks] - (nearest.similarity if by == "peaks" else 0.0)
        opens = excess.argsort(descending=True, stable=True)[:n_novel].sort().values
    elif by == "peaks":
        opens = is_novel(found.density[peaks], nearest.similarity, margin=granularity.margin).nonzero()[:, 0]
    else:
        opens = torch.arange(len(peaks))
    peaks, category = peaks[opens], nearest.category[opens]
    members = peak_members(peaks, graph, n_members=n_members)
    is_unlabeled = members.idx < len(unlabeled)
    return NovelPeaks(Members(members.idx[is_unlabeled], members.peak[is_unlabeled]), category)


def find_novel_categories(
    unlabeled: Tensor,
    known: Tensor,
    categories: Tensor,
    granularity: Granularity,
    *,
    n_members: int,
    n_novel: int | None = None,
) -> NovelPeaks:
    """New categories of the discovery core, the largest first, each with its typical image and those most like it.

    (n, d), (m, d), (m,). Up to `n_members` images go with a category, all of them its own. `n_novel` is their number,
    if it is given.
    """
    known, unlabeled = (rows.cpu() for rows in project_together(known, unlabeled))
    found = discover(
        unlabeled,
        known,
        categories,
        n_novel=n_novel,
        heights=granularity.heights,
        smallest=granularity.smallest,
    )
    white = found.whitening(unlabeled)
    idx, peak = [found.typical[:0]], [found.typical[:0]]
    for row, typical in enumerate(found.typical.tolist()):
        own = (found.category == found.n_known + row).nonzero()[:, 0]
        similarity = white[own] @ white[typical]
        similarity[own == typical] = torch.inf
        closest = own[similarity.argsort(descending=True, stable=True)[:n_members]]
        idx.append(closest)
        peak.append(torch.full_like(closest, row))
    nearest = found.known_ids[nearest_mean(found.means[found.n_known :], found.means[: found.n_known])]
    return NovelPeaks(Members(torch.cat(idx), torch.cat(peak)), nearest)
