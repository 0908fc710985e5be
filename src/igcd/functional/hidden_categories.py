"""How fine categories are, asked of labeled rows by hiding some of their categories: the height to cut the tree at.

Later batches come with little of what is known: statistics, or a few rows of each category. Those cannot say it. Rows
drawn from statistics lie closer together, and farther from other categories, than real rows do, and so do rows that
were kept because they are typical. So the height is found while labeled rows are there, in scenes like those to come:
of the heights at which about as many rows come out right as at the best one, that at which about as many new categories
are found as were hidden.

The more rows of known categories a batch brings back, the more of them lie together by chance and look like a new
category. So there is a height for batches that bring back few rows, and others for those that bring back many. They are
in units of the mean join of a tree: joins of larger groups are higher, and batches are larger than scenes.
"""

import numpy as np
import torch
from torch import Tensor

from igcd.functional.assignment import contingency, match
from igcd.functional.discovery import Scene, fit_whitening_with, rows_like, smallest_size
from igcd.functional.gaussian import scatter_statistics
from igcd.functional.grouping import distinct
from igcd.functional.heights import HIDDEN, Heights
from igcd.functional.selection import select_by_density, select_per_category
from igcd.types import IntArray

RETURNING = (0.1, 0.2, 0.4, 0.6, 0.8)
"""Shares of the rows of the others that play unlabeled ones, one after the other."""
N_TIMES = 5
N_HEIGHTS = 60
"""Heights that are tried, in equal ratios."""


def heights_by_hiding(rows: Tensor, categories: Tensor, *, n_kept: int | None = None, seed: int = 0) -> Heights | None:
    """The heights at which rows are right and as many categories found as were hidden. (m, d), (m,).

    `n_kept` is the number of typical rows that are kept of each known category; None where only statistics are. The
    answer is None where categories or rows are too few to hide any.
    """
    ids, owners = distinct(categories)
    n_images = torch.bincount(owners)
    if len(ids) - _n_hidden(len(ids)) < 2 or int(n_images.median()) < 2:
        return None
    heights = [_best_height(rows, owners, returning, n_kept=n_kept, seed=seed) for returning in RETURNING]
    n_parts = max(1.0, _n_groups_without_labels(rows, owners, seed=seed) / len(ids))
    return Heights(RETURNING, tuple(heights), float(n_images.double().mean()), n_parts)


def _n_groups_without_labels(rows: Tensor, owners: Tensor, *, seed: int) -> int:
    """How many groups the tree of a batch (`Scene.cut_at`) finds in rows that labels have whitened. (m, d), (m,)."""
    white = fit_whitening_with(rows[:0], rows, owners, seed=seed)(rows)
    return Scene.of(white, owners[:0], 0, with_blind=True, seed=seed).choose_cut(white, owners[:0], seed=seed).n_groups


def _n_hidden(n_categories: int) -> int:
    return max(1, round(HIDDEN * n_categories))


def _best_height(rows: Tensor, owners: Tensor, returning: float, *, n_kept: int | None, seed: int) -> float:
    """The height over a few draws in which a share of the known rows comes back. (m, d), (m,) from 0 on.

    Right are most rows, up to a standard error of their share: where many heights do as well, the number decides. Of
    equally good heights it is the middle.
    """
    smallest = smallest_size(torch.bincount(owners))
    n_categories = int(owners.max()) + 1
    generator = torch.Generator().manual_seed(seed)
    scenes: list[tuple[Scene, IntArray]] = []
    for _ in range(N_TIMES):
        is_hidden = torch.isin(owners, torch.randperm(n_categories, generator=generator)[: _n_hidden(n_categories)])
        draws = torch.rand(len(rows), generator=generator)
        stays = draws == draws.new_zeros(n_categories).scatter_reduce(0, owners, draws, "amax")[owners]  # one at least
        plays_unlabeled = is_hidden | ((draws < returning) & ~stays)
        known, unlabeled = rows[~plays_unlabeled], rows[plays_unlabeled]
        known_ids, known_owners = distinct(owners[~plays_unlabeled])
        place = torch.full((n_categories,), -1)  # of each category among the known ones; the others come behind
        place[known_ids] = torch.arange(len(known_ids))
        place[place < 0] = len(known_ids) + torch.arange(n_categories - len(known_ids))
        if n_kept is None:
            statistics = scatter_statistics(known, known_owners, n_categories=len(known_ids))
            left = rows_like(unlabeled, statistics, seed=seed)
        else:
            kept = select_per_category(known, known_owners, n_kept, select=select_by_density)
            left = known[kept], known_owners[kept]
        scenes.append((Scene.between(unlabeled, *left, seed=seed), place[owners[plays_unlabeled]].numpy()))
    joins = np.concatenate([scene.tree.heights / scene.unit for scene, _ in scenes])
    if joins.max(initial=0) <= 0:  # all rows are copies of a few
        return 0.0
    lowest = max(float(np.median(joins)), 1e-6 * float(joins.max()))  # below it groups are pairs of rows
    heights = np.geomspace(lowest, 2 * joins.max(), N_HEIGHTS).tolist()
    asked = [[_ask(scene, truth, height, smallest) for height in heights] for scene, truth in scenes]
    right, n_found = np.sum(asked, axis=0).T
    n_rows = sum(len(truth) for _, truth in scenes)
    n_new = sum(n_categories - scene.n_known for scene, _ in scenes)
    share = right.max() / n_rows
    is_right = right >= right.max() - np.sqrt(n_rows * share * (1 - share))
    off = np.where(is_right, np.abs(np.log((n_found + 1) / (n_new + 1))), np.inf)
    right = np.where(off == off.min(), right, -1)
    return float(np.exp(np.log(np.array(heights)[right == right.max()]).mean()))


def _ask(scene: Scene, categories: IntArray, height: float, smallest: int) -> tuple[int, int]:
    """How many rows are right at a height in units of the scene, and how many new categories are found."""
    groups = scene.groups(height * scene.unit, smallest)
    return n_right(groups, categories, scene.n_known), len(np.unique(groups[groups >= scene.n_known]))


def n_right(groups: IntArray, categories: IntArray, n_known: int) -> int:
    """How many rows are right: in their known category, or in the group matched to their new one. (n,), (n,).

    Categories from `n_known` on are new. A group is matched with one category at most; −1 is no group.

    >>> n_right(np.array([0, 1, 2, 2, 3, -1]), np.array([0, 0, 2, 2, 2, 1]), 2)
    3
    """
    is_new = (groups >= n_known) & (categories >= n_known)
    new_groups, new = groups[is_new] - n_known, categories[is_new] - n_known
    matched = match(contingency(new_groups, new))[new_groups] == new if len(new) else np.zeros(0, dtype=bool)
    return int(((groups == categories) & (categories < n_known)).sum() + matched.sum())
