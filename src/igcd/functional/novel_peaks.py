"""Which density peaks of unlabeled images open a category, section 4.3, and which images stand for it."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from igcd.functional.density import Members, find_density_peaks, peak_members
from igcd.functional.granularity import Granularity
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novelty import is_novel, match_known

KnownRule = Literal["rule", "none"]
"""Whether a peak may be a known category, by the rule of `is_novel`; or, as in the authors' code, known and unlabeled
images share one graph and every unlabeled peak opens a category."""


@dataclass(frozen=True)
class NovelPeaks:
    """Peaks that open a category, the densest first."""

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
    rule: KnownRule = "rule",
) -> NovelPeaks:
    """Peaks of at least three unlabeled images that no known category explains. (n, d), (m, d), (m,).

    The graph reaches as far as K, K^d or `n_support` asks for, and up to `n_members` images in it go with a peak.
    """
    everything = torch.cat([unlabeled, known]) if rule == "none" else unlabeled
    graph = neighbor_graph(everything, min(max(granularity.K, granularity.K_d, n_support), len(everything) - 1))
    found = find_density_peaks(
        graph,
        n_neighbors=min(granularity.K, graph.k),
        n_overlap_neighbors=min(granularity.K_d, graph.k),
        max_iou=max_iou,
    )
    peaks = found.idx[found.idx < len(unlabeled)]
    nearest = match_known(unlabeled[peaks], known, categories, n_closest=n_closest)
    if rule == "rule":
        opens = is_novel(found.density[peaks], nearest.similarity, margin=granularity.margin)
        peaks, category = peaks[opens], nearest.category[opens]
    else:
        category = nearest.category
    members = peak_members(peaks, graph, n_members=n_members)
    is_unlabeled = members.idx < len(unlabeled)
    return NovelPeaks(Members(members.idx[is_unlabeled], members.peak[is_unlabeled]), category)
