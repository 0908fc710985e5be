"""Which density peaks of unlabeled rows open a category: those that nothing kept and no denser peak explains."""

from dataclasses import dataclass

import torch
from torch import Tensor

from igcd.functional.density import Members, find_density_peaks, peak_members
from igcd.functional.neighbors import Neighbors, neighbor_graph
from igcd.functional.novelty import KnownMatch, is_novel, match_known
from igcd.types import UNLABELED


@dataclass(frozen=True)
class NovelPeaks:
    """Peaks that open a category, the densest first."""

    idx: Tensor  # (p,) rows
    density: Tensor  # (p,)
    nearest: KnownMatch  # (p,) the category most like each; −1 and −∞ if there is none
    members: Members  # rows around each peak, the peak first


def find_novel_peaks(
    h: Tensor,
    known_h: Tensor,
    known_ids: Tensor,
    is_kept: Tensor,
    *,
    n_neighbors: int,
    n_members: int,
    n_closest: int,
    n_support: int,
    max_iou: float,
    margin: float,
) -> NovelPeaks:
    """The peaks of at least three unlabeled rows that open categories. (u, c), (k, c), (k,), (u,).

    What is known explains a peak: `known_h` of the categories `known_ids`. A row that is kept already opens none.
    """
    graph = neighbor_graph(h, min(max(2 * n_neighbors, n_support), len(h) - 1))
    found = find_density_peaks(
        graph,
        n_neighbors=min(n_neighbors, graph.k),
        n_overlap_neighbors=min(2 * n_neighbors, graph.k),
        max_iou=max_iou,
    )
    peaks, density = found.idx, found.density[found.idx]
    nearest = KnownMatch(torch.full_like(peaks, UNLABELED), torch.full_like(density, -torch.inf))
    if len(known_h):
        nearest = match_known(h[peaks], known_h, known_ids, n_closest=n_closest)
    opens = (is_novel(density, nearest.similarity, margin=margin) & ~is_kept[peaks]).nonzero()[:, 0]
    opens = opens[not_explained_by_denser(peaks[opens], density[opens], h, graph, n_closest=n_closest, margin=margin)]
    return NovelPeaks(
        peaks[opens],
        density[opens],
        KnownMatch(nearest.category[opens], nearest.similarity[opens]),
        peak_members(peaks[opens], graph, n_members=n_members),
    )


def not_explained_by_denser(
    peaks: Tensor, density: Tensor, h: Tensor, graph: Neighbors, *, n_closest: int, margin: float
) -> list[int]:
    """Positions of the novel peaks that open a category, where each that does is known to those less dense. (p,), (p,).

    It is the rule for known or novel once more, with the rows around a peak as the category it opens. Without it a
    category with many more unlabeled rows than others have labeled ones is found several times.
    """
    around = torch.cat([peaks[:, None], graph.idx[peaks]], dim=1)  # (p, 1 + k)
    similarity = torch.full_like(density, -torch.inf)  # of each peak to the most similar category opened so far
    opened: list[int] = []
    for position in range(len(peaks)):
        if not is_novel(density[position], similarity[position], margin=margin):
            continue
        opened.append(position)
        to_rows = (h[peaks] @ h[around[position]].T).masked_fill(peaks[:, None] == around[position], -torch.inf)
        closest = to_rows.topk(min(n_closest, graph.k), dim=1).values
        similarity = similarity.maximum(closest.mean(dim=1))
    return opened
