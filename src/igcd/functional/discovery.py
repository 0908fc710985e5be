"""The discovery core: which unlabeled rows are of known categories, which of new ones, how many, and how sure.

One idea: **pull rows together with their neighbors, grow a tree over them in which known categories are fixed nodes,
and cut it where labels and the tree say that categories end.** In steps:

1. `fit_whitening`: directions in which one category spreads out count for less.
2. `pull_together`: each row moves to the mean of its neighborhood, so that categories become dense and gaps wide.
3. `grow_tree`: the groups most alike join first; two known categories never do.
4. `choose_cut`: labels, hidden from the tree and from its space, show at which height categories are whole and apart.
5. `refine`: each row goes to the nearest mean, means follow rows and those around them. What is far smaller than known
   categories are is no category.

What is known comes as rows with categories, or as statistics alone, from which rows are drawn.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.category_tree import CategoryTree, cut_tree, grow_tree
from igcd.functional.density import density
from igcd.functional.gaussian import ScatterStatistics
from igcd.functional.grouping import distinct
from igcd.functional.heights import Heights
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.pulling import (
    MAX_NODES,
    N_NEIGHBORS,
    group_means,
    inside_nodes,
    node_of_rows,
    pull_together,
    tree_over,
)
from igcd.functional.reach import Reach, measure_reach
from igcd.functional.refining import refine
from igcd.functional.relative_size import relative_size
from igcd.functional.tree_cut import CLEAR, Cut, choose_cut, clear_gap
from igcd.functional.whitening import Whitening, fit_whitening_of_rows
from igcd.types import FloatArray, IntArray

MIN_PART = 3
"""Rows that a part of a known category has at least."""
SMALLEST = 0.35
"""A category has at least this share of the rows that known ones have."""
MAX_APART = 20_000
"""Of more rows, labels are asked in the space that they have shaped: another one would take as long again."""
N_DRAWN = 12
"""Rows drawn for each category of which only statistics are known."""


@dataclass(frozen=True)
class Discovered:
    """Categories of unlabeled rows: c known ones in the order of their ids, then k new ones, the largest first."""

    whitening: Whitening
    means: Tensor  # (c + k, d) in the whitened space
    known_ids: Tensor  # (c,)
    category: Tensor  # (n,) position in `means` of each unlabeled row; −1 where there is no category at all
    typical: Tensor  # (k,) the unlabeled row of each new category that is densest
    cut: Cut
    recall: float = 1.0  # of the neighbors that all of it rests on, see `Neighbors`

    @property
    def n_known(self) -> int:
        """How many categories were known."""
        return len(self.known_ids)

    @property
    def n_novel(self) -> int:
        """How many categories are new."""
        return len(self.means) - self.n_known


def discover(
    unlabeled: Tensor,
    labeled: Tensor,
    categories: Tensor,
    *,
    is_guess: Tensor | None = None,
    n_novel: int | None = None,
    granularity: float = 0.0,
    smallest: int | None = None,
    whitening: Whitening | None = None,
    heights: Heights | None = None,
    seed: int = 0,
) -> Discovered:
    """New categories among unlabeled rows, and the category of each. (n, d), (m, d), (m,); m may be 0.

    `is_guess` (m,) marks rows whose category an earlier call has found: they are known, and say nothing about how fine
    categories are. `n_novel` says how many are new, if that is known. `granularity` moves the answer from coarse
    (negative) to fine (positive): the tree is cut at e to the power of −granularity times the height chosen. `smallest`
    is the fewest rows that a new category has. `heights` say where to cut the tree where `labeled` is only what was
    kept of earlier labels. `whitening` is one that an earlier call found, for answers in the same space.
    """
    known_ids, owners = distinct(categories)
    labeled = labeled.to(torch.promote_types(labeled.dtype, torch.float32))  # half precision is for storage
    if whitening is None:
        whitening = fit_whitening_with(unlabeled, labeled, owners, seed=seed)
    if smallest is None:
        smallest = smallest_size(torch.bincount(owners, minlength=len(known_ids)))
    if len(unlabeled) == 0:
        means = group_means(whitening(labeled), owners, len(known_ids))
        return Discovered(whitening, means, known_ids, owners[:0], owners[:0], Cut(len(known_ids), 0.0))
    features = torch.cat([labeled.to(unlabeled.dtype), unlabeled])
    rows = whitening(features)
    taught = owners if is_guess is None else torch.where(is_guess, -1, owners)
    finds_number = n_novel is None and not (heights and len(known_ids))
    is_apart = finds_number and len(features) <= MAX_APART and bool((taught >= 0).any())
    judged = features if is_apart else None
    del unlabeled, features  # of a million rows every copy counts
    with_reach = finds_number and not is_apart
    scene = Scene.of(rows, owners, len(known_ids), with_blind=n_novel is None, with_reach=with_reach, seed=seed)
    if n_novel is not None:
        smallest = _smallest_with(scene, n_novel, smallest)
        cut = Cut(len(known_ids) + n_novel, _height_with(scene, n_novel, smallest))
    elif heights and not finds_number:
        cut = scene.cut_at(heights, rows, smallest, seed=seed)
    elif judged is not None:
        judging, apart = judging_scene(judged, seed=seed)
        asked = judging.choose_cut(apart, taught, n_least=len(known_ids), seed=seed)
        cut = for_new(scene.cut_into(asked), judging.groups_of_all(asked.height), len(labeled))
    else:
        cut = scene.choose_cut(rows, taught, n_least=len(known_ids), seed=seed)
        cut = for_new(cut, scene.groups_of_all(cut.height), len(labeled))
    cut = replace(cut, height=cut.height * float(np.exp(-granularity)))
    start = torch.from_numpy(scene.groups(cut.height, smallest))
    neighbors = torch.from_numpy(scene.neighbors)
    means, category = refine(rows, neighbors, owners, start, n_known=len(known_ids), keeps_all=n_novel is not None)
    typical = _densest(scene.density[len(labeled) :], category, len(known_ids), len(means))
    return Discovered(whitening, means, known_ids, category, typical, cut, scene.recall)


def discover_from_statistics(
    unlabeled: Tensor,
    known: ScatterStatistics,
    *,
    n_novel: int | None = None,
    granularity: float = 0.0,
    heights: Heights | None = None,
    seed: int = 0,
) -> Discovered:
    """The same where means, counts and the scatter inside are all that is left of known categories. (n, d).

    Rows are drawn for each of them, from a Gaussian with its mean and the covariance they share. Such rows are too
    clean to say how fine categories are: give the `heights` that `hidden_categories.heights_by_hiding` has found.
    """
    rows, owners = rows_like(unlabeled, known, seed=seed)
    smallest = smallest_size(known.counts[known.counts > 1])
    return discover(
        unlabeled,
        rows,
        owners,
        n_novel=n_novel,
        granularity=granularity,
        smallest=smallest,
        heights=heights,
        seed=seed,
    )


def rows_like(unlabeled: Tensor, known: ScatterStatistics, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Rows drawn for known categories, as long as unlabeled ones are, and their categories. (n, d) -> (m, d), (m,)."""
    rows, owners = draw_rows(known, N_DRAWN, generator=torch.Generator().manual_seed(seed))
    return normalize(rows, dim=1) * unlabeled.norm(dim=1).mean(), owners


def draw_rows(known: ScatterStatistics, n_each: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows that categories with these statistics might have, and their categories. -> (c n, d), (c n,)."""
    freedom = max(1, int((known.counts - 1).clamp(min=0).sum()))
    values, vectors = torch.linalg.eigh(known.scatter / freedom)
    factor = (vectors * values.clamp(min=0).sqrt()).to(known.means.dtype)
    owners = torch.arange(len(known.means)).repeat_interleave(n_each)
    noise = torch.randn(len(owners), len(factor), generator=generator, dtype=known.means.dtype)
    return known.means[owners] + noise @ factor.T, owners


def smallest_size(counts: Tensor) -> int:
    """The fewest rows that a new category has, from those of known ones; 2 where nothing is known. (c,)."""
    return max(2, round(SMALLEST * float(counts.float().median()))) if len(counts) else 2


def fit_whitening_with(unlabeled: Tensor, labeled: Tensor, owners: Tensor, *, seed: int) -> Whitening:
    """The whitening of all these rows, labeled ones of categories numbered from 0. (n, d), (m, d), (m,)."""
    everything = torch.cat([labeled.to(unlabeled.dtype), unlabeled])
    return fit_whitening_of_rows(everything, owners, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Scene:
    """Whitened rows, first labeled and then unlabeled ones, as nodes of a tree in which known categories are fixed."""

    tree: CategoryTree  # parts of known categories first, then unlabeled rows
    part_of: IntArray  # (p,) the category each part is of; most categories have one part
    tree_node: IntArray  # (n,) the node of each unlabeled row in it
    sizes: IntArray  # rows of each node of `tree`; a part of a known category has all of its own
    n_known: int
    blind: CategoryTree | None  # over all rows, labels hidden; None where nobody asks for it
    reach: Reach | None  # of all rows, pulled together; None where distances say nothing
    node: IntArray  # (m + n,) the node of each row in it
    neighbors: IntArray  # (m + n, k)
    density: Tensor  # (m + n,)
    recall: float
    unit: float  # the height of the mean join if each row were a node: what trees over other rows are compared in

    @classmethod
    def between(cls, unlabeled: Tensor, labeled: Tensor, owners: Tensor, *, seed: int = 0) -> Self:
        """The scene of unlabeled rows and of rows of known categories, numbered from 0. (n, d), (m, d), (m,)."""
        whitening = fit_whitening_with(unlabeled, labeled, owners, seed=seed)
        return cls.of(whitening(torch.cat([labeled, unlabeled])), owners, int(owners.max()) + 1, seed=seed)

    @classmethod
    def of(
        cls,
        rows: Tensor,
        owners: Tensor,
        n_known: int,
        *,
        with_blind: bool = False,
        with_reach: bool = False,
        seed: int = 0,
    ) -> Self:
        """The scene of whitened rows, of which the first are of known categories 0 to `n_known` − 1. (m + n, d), (m,).

        `with_blind` prepares for `choose_cut`. `with_reach` lets distances say how large categories are; those of rows
        that were drawn, or kept because they are typical, do not. `seed` is that of whatever is random.
        """
        n_labeled = len(owners)
        node, neighbors = torch.arange(len(rows)), torch.zeros(len(rows), 1, dtype=torch.int64)
        pulled, densities, recall = rows, torch.ones(len(rows)), 1.0
        if len(rows) > 1:
            graph = neighbor_graph(rows, min(N_NEIGHBORS, len(rows) - 1), seed=seed)
            neighbors, pulled, densities, recall = graph.idx, pull_together(rows, graph), density(graph), graph.recall
            node = node_of_rows(pulled, graph.idx)
        parts, part_of = parts_of_categories(pulled[:n_labeled], owners)
        of_unlabeled = distinct(node[n_labeled:])[1] + len(part_of)
        nodes = torch.cat([parts, of_unlabeled])
        tree = tree_over(pulled, nodes, n_known=len(part_of))
        blind = None
        if with_blind:
            blind = tree_over(pulled, node) if n_labeled else tree
        joins = float(tree.heights.sum()) + inside_nodes(pulled[n_labeled:], of_unlabeled - len(part_of))
        return cls(
            tree=tree,
            reach=measure_reach(pulled, seed=seed) if with_reach else None,
            part_of=part_of.numpy(),
            tree_node=of_unlabeled.numpy(),
            sizes=torch.bincount(nodes).numpy(),
            n_known=n_known,
            blind=blind,
            node=node.numpy(),
            neighbors=neighbors.numpy(),
            density=densities,
            recall=recall,
            unit=joins / max(len(of_unlabeled), 1) or 1.0,  # copies join at 0
        )

    @property
    def _blind_tree(self) -> CategoryTree:
        if self.blind is None:
            raise ValueError("choosing a cut needs a scene with the tree that is blind for labels")
        return self.blind

    def choose_cut(self, rows: Tensor, categories: Tensor, *, n_least: int = 2, seed: int = 0) -> Cut:
        """The cut that labels and the tree ask for. (m + n, d), (m,) with −1 for rows whose label should not count.

        Where no category has two labels, there are `n_least` groups at least.
        """
        tree, taught = self._blind_tree, categories.cpu().numpy()
        return choose_cut(tree, self.node, rows, self.neighbors, taught, self.reach, n_least=n_least, seed=seed)

    def cut_into(self, cut: Cut) -> Cut:
        """A cut with as many groups as one of another tree over these rows has, or as a clear gap near it asks for."""
        n_groups = clear_gap(self._blind_tree.heights, cut.n_groups)
        return replace(cut, n_groups=n_groups, height=self._blind_tree.height_for(n_groups))

    def groups_of_all(self, height: float) -> IntArray:
        """The group of each row at a height of the tree that is blind for labels. (m + n,)."""
        return np.asarray(cut_tree(self._blind_tree, height)[self.node])

    def cut_at(self, heights: Heights, rows: Tensor, smallest: int, *, seed: int = 0) -> Cut:
        """The cut that labels of earlier rows and the tree ask for. (m + n, d).

        Heights come from scenes with one new category for six known ones. The tree, blind for what is known, says how
        many there are here: the more they are than in the scenes, the more its own height counts.
        """
        none = torch.full((len(rows) - len(self.tree_node),), -1)
        n_groups = self.choose_cut(rows, none, seed=seed).n_groups
        weight = heights.like_scenes(n_groups, self.n_known)
        from_labels = heights.for_batch(len(self.tree_node), self.n_known) * self.unit
        from_tree = self._blind_tree.height_for(max(1, round(n_groups / heights.n_parts)))
        height = from_labels**weight * from_tree ** (1 - weight)
        return Cut(self.n_known + self.n_novel(height, smallest), height)

    def groups(self, height: float, smallest: int) -> IntArray:
        """The group of each unlabeled row at a height: below `n_known` a known category, −1 for rows of none. (n,)."""
        groups = cut_tree(self.tree, height, sizes=self.sizes, smallest=smallest)
        n_parts = len(self.part_of)
        of_part = self.part_of[np.clip(groups, 0, n_parts - 1)] if n_parts else groups
        is_part = (groups >= 0) & (groups < n_parts)
        by_category = np.where(is_part, of_part, np.where(groups < 0, groups, groups - n_parts + self.n_known))
        return np.asarray(by_category[self.tree_node])

    def n_novel(self, height: float, smallest: int) -> int:
        """How many groups at a height have no known category."""
        groups = cut_tree(self.tree, height, sizes=self.sizes, smallest=smallest)
        return int((np.unique(groups) >= self.tree.n_known).sum())


def parts_of_categories(rows: Tensor, owners: Tensor) -> tuple[Tensor, Tensor]:
    """The part of its category that each labeled row is in, and the category of each part. (m, d), (m,) -> (m,), (p,).

    Most categories are one part. One that consists of clouds far apart, because a person merged them, has a part for
    each: a mean between the clouds would be near neither.
    """
    parts = torch.zeros_like(owners)
    part_of: list[int] = []
    for category in range(int(owners.max()) + 1 if len(owners) else 0):
        own = (owners == category).nonzero()[:, 0]
        groups = torch.zeros(len(own), dtype=torch.int64)
        if 2 * MIN_PART <= len(own) <= MAX_NODES:
            tree = grow_tree(rows[own].numpy(), np.ones(len(own)))
            n_parts = clear_gap(tree.heights, 2) if tree.heights[-1] > CLEAR * tree.heights[-2] else 1
            found = distinct(torch.from_numpy(cut_tree(tree, tree.height_for(n_parts))))[1]
            groups = found if int(torch.bincount(found).min()) >= MIN_PART else groups
        parts[own] = groups + len(part_of)
        part_of += [category] * (int(groups.max()) + 1 if len(own) else 1)
    return parts, torch.tensor(part_of, dtype=torch.int64)


def for_new(cut: Cut, groups: IntArray, n_labeled: int) -> Cut:
    """The same cut at the height that new categories have to be cut at: in proportion to their size. (m + n,)."""
    return replace(cut, height=cut.height * relative_size(groups, n_labeled))


def judging_scene(features: Tensor, *, seed: int = 0) -> tuple[Scene, Tensor]:
    """A scene of rows whitened without labels, and these rows: where labels are asked how fine categories are. (n, d).

    Whitening by labels brings labeled rows of a category closer to each other than its other rows are, so in the space
    of such a scene labels ask for categories that are too fine.
    """
    nothing = torch.empty(0, dtype=torch.int64)
    rows = fit_whitening_with(features, features[:0], nothing, seed=seed)(features)
    return Scene.of(rows, nothing, 0, with_blind=True, with_reach=True, seed=seed), rows


def _smallest_with(scene: Scene, n_novel: int, smallest: int) -> int:
    """The smallest size at which there can be so many new categories, at most `smallest`, halved until there can."""
    while smallest > 1 and scene.n_novel(_between(scene.tree.heights, 0), smallest) < n_novel:
        smallest //= 2
    return smallest


def _height_with(scene: Scene, n_novel: int, smallest: int) -> float:
    """The largest height at which there are so many new categories, or the most there can be. By bisection."""
    heights = scene.tree.heights
    low, high = 0, len(heights)  # joins that are kept: with all of them there is the fewest
    while low < high:
        middle = (low + high + 1) // 2
        enough = scene.n_novel(_between(heights, middle), smallest) >= n_novel
        low, high = (middle, high) if enough else (low, middle - 1)
    return _between(heights, low)


def _between(heights: FloatArray, n_below: int) -> float:
    """A height with so many joins below it; below 0 for none, because copies join at 0."""
    if n_below == 0:
        return -1.0
    above = heights[n_below] if n_below < len(heights) else heights[-1] * 2
    return float((heights[n_below - 1] + above) / 2)


def _densest(densities: Tensor, category: Tensor, n_known: int, n_means: int) -> Tensor:
    """The densest row of each category from `n_known` on. (n,), (n,) -> (k,)."""
    order = densities.argsort(descending=True, stable=True)
    first = torch.full((n_means,), -1)
    if n_means == 0:
        return first
    first.scatter_(0, category[order].flip(0), order.flip(0))  # the last one written is the densest
    return first[n_known:]
