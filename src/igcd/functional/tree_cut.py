"""Where to cut a tree of categories: how fine they are, as far as labels and the tree itself can tell.

Labels first: at the right height rows of one category share a group and rows of two do not. Two plain scores look at
that from different sides, and drawing the labeled categories anew (a bootstrap) shows how sure each of them is. The
tree second: where categories end, the next row is suddenly far, heights fall fastest, a walk from neighbor to neighbor
is described in few bits, and groups that half of the dimensions find are there for the other half as well. What speaks
for a number is added up: few labels are unsure, so the tree weighs more, and without labels it decides alone.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from igcd.functional.assignment import contingency, match
from igcd.functional.category_tree import CategoryTree, cut_tree
from igcd.functional.held_out import explained_shares
from igcd.functional.map_equation import bits_per_step
from igcd.functional.reach import Reach, growth
from igcd.types import FloatArray, IntArray

N_CUTS = 60
"""Numbers of groups that are tried, in equal ratios."""
N_NUMBERS = 400
"""Numbers between them that labels and tree are asked about together."""
N_DRAWS = 40
"""Times the labeled categories are drawn anew."""
WINDOWS = (1.3, 1.6, 2.0)
"""The fall of heights at n groups is measured from n / w to w n groups, the mean over these w."""
GROWTH_WEIGHT = 3.0
"""Weight of the growth of distances (`reach`) against the fall of heights; 2 to 4 do as well."""
OTHER_WEIGHT = 0.75
"""Weight of a bit per step, and of all that held-out dimensions can tell, against the fall of heights; 0.5 to 1."""
ODDS_OF_TREE = 2.5
"""What a point of all that speaks for a number counts as the logarithm of its odds, beside labels; 1.5 to 3."""
NEARBY = 1.15
"""Up to this ratio from the number estimated, a clear gap between heights decides."""
CLEAR = 5.0
"""A gap is clear where the height falls by this factor from one join to the next."""
UNLABELED_SHARE = 0.75
"""Share of the groups beyond labeled categories that count as unlabeled ones; 0.5 to 1 do as well."""
MIN_SPREAD = 0.2
"""No estimate from labels counts as surer than this: drawing categories anew does not show what all of them share."""


@dataclass(frozen=True)
class Cut:
    """How many groups a tree has, and what that rests on: logarithms of the number of groups."""

    n_groups: int
    height: float
    from_tree: float | None = None  # None where the height or the number was given
    from_labels: float | None = None  # None without labels
    spread: float | None = None  # of the estimate from labels


@dataclass(frozen=True)
class _LabelScores:
    """How well each of t cuts agrees with c labeled categories, whatever the number of labels of each."""

    right: FloatArray  # (t, c) share of a category's rows in the group matched to it
    together: FloatArray  # (t, c) how often two rows of the category share a group
    mixed: FloatArray  # (t, c) how often its rows share a group with a row of each other category, the sum over these


def choose_cut(
    tree: CategoryTree,
    node: IntArray,
    rows: Tensor,
    neighbors: IntArray,
    categories: IntArray,
    reach: Reach | None,
    *,
    n_least: int = 2,
    seed: int = 0,
) -> Cut:
    """The cut of a tree without known nodes that suits the labels and the tree.

    `node` (n,) is the node of the tree that each whitened row (n, d) is in, `neighbors` (n, k) are the rows nearest to
    it, and `reach` says how far those are that the tree is grown over, if their distances are to count. The first m
    rows are labeled: `categories` (m,) from 0, −1 for rows whose label should not count. Where the tree decides alone,
    there are `n_least` groups at least.
    """
    most = max(2, min(tree.n_nodes // 2, len(node) // 3))
    tried = np.unique(np.geomspace(2, most, N_CUTS).astype(np.int64))
    groups = [_numbered(cut_tree(tree, tree.height_for(int(n)))[node]) for n in tried]
    bits = np.array([bits_per_step(each, neighbors) for each in groups])
    explained = explained_shares(rows, tried, seed=seed)
    falls = fall_of_heights(tree.heights, tried, n_rows=len(node))
    for_tree = falls + OTHER_WEIGHT * (explained - bits)
    if reach is not None:
        for_tree += GROWTH_WEIGHT * growth(reach, tried)
    several = np.flatnonzero((np.bincount(categories + 1)[categories + 1] > 1) & (categories >= 0))
    if not len(several):  # a category with one labeled row cannot tell what belongs together
        for_tree[tried < min(n_least, most)] = -np.inf
    from_tree = float(np.log(tried[for_tree.argmax()]))
    estimate, from_labels, spread = from_tree, None, None
    if len(several) and len(tree.heights):
        labeled = [each[several] for each in groups]
        owners = _numbered(categories[several])
        from_labels, spread = _bootstrap(tree, tried, _label_scores(labeled, owners), seed)
        log_n = np.linspace(np.log(tried[0]), np.log(tried[-1]), N_NUMBERS)
        odds = log_odds_of_labels(log_n, from_labels, spread, n_categories=int(owners.max()) + 1)
        odds += ODDS_OF_TREE * np.interp(log_n, np.log(tried), for_tree)
        estimate = float(log_n[odds.argmax()])
    n_groups = clear_gap(tree.heights, int(np.clip(round(np.exp(estimate)), 1, tree.n_nodes)))
    return Cut(n_groups, tree.height_for(n_groups), from_tree, from_labels, spread)


def log_odds_of_labels(log_n: FloatArray, estimate: float, spread: float, *, n_categories: int) -> FloatArray:
    """How probable labels find each number of groups, as a logarithm that is 0 at their estimate. (t,) -> (t,).

    The spread of an estimate comes from c categories, so its error is Student's t with c − 1 degrees of freedom: two
    categories may be far off, many are not.

    >>> far = np.array([np.log(5)])  # where labels ask for 32 groups
    >>> [round(float(log_odds_of_labels(far, np.log(32), 0.4, n_categories=c)[0])) for c in (2, 30)]
    [-3, -8]
    """
    free = max(n_categories - 1, 1)
    return np.asarray(-(free + 1) / 2 * np.log1p(((log_n - estimate) / spread) ** 2 / free))


def fall_of_heights(heights: FloatArray, tried: IntArray, *, n_rows: int) -> FloatArray:
    """How fast heights fall around each of some numbers of groups, both on a logarithmic scale. (j,), (t,) -> (t,).

    The height at n groups is that of the join that makes them n − 1. Over a window around n the fall is that of the
    line of least squares from end to end, because windows of few groups are rounded and a short one is steep. Groups of
    fewer than four rows each are left out: heights fall there as rows run out.

    >>> heights = np.array([0.1] * 60 + [0.2] * 27 + [30.0, 40.0, 50.0])  # four groups, far apart
    >>> tried = np.arange(2, 20)
    >>> int(tried[fall_of_heights(heights, tried, n_rows=91).argmax()])
    4
    """
    falling = np.log(np.maximum(heights[::-1], 1e-12))  # at 2, 3, 4 … groups
    falls = np.zeros(len(tried))
    for position, n in enumerate(tried.tolist()):
        for window in WINDOWS:
            first, last = max(2, round((n + 0.5) / window)), min(len(falling) + 1, round((n + 0.5) * window))
            if last > first and n <= max(2, n_rows // 4):
                log_n = np.log(np.arange(first, last + 1))
                slope = np.polyfit(log_n, falling[first - 2 : last - 1], 1)[0]
                falls[position] -= slope * (log_n[-1] - log_n[0]) / (2 * np.log(window)) / len(WINDOWS)
    return falls


def clear_gap(heights: FloatArray, n_groups: int) -> int:
    """The number of groups near `n_groups` above which heights fall most from one join to the next, if they fall far.

    >>> clear_gap(np.array([0.1] * 60 + [0.2] * 27 + [30.0] * 9), 11)  # ten groups, far apart
    10
    >>> clear_gap(np.geomspace(1, 100, 90), 11)  # no gap is clear
    11
    """
    falling = np.log(np.maximum(heights[::-1], 1e-12))  # at 2, 3, 4 … groups
    falls = falling[:-1] - falling[1:]
    nearby = np.arange(max(2, int(np.ceil(n_groups / NEARBY))), min(len(falls) + 1, int(n_groups * NEARBY)) + 1)
    if not len(nearby) or falls[nearby - 2].max() < np.log(CLEAR):
        return n_groups
    return int(nearby[falls[nearby - 2].argmax()])


def _label_scores(groups: list[IntArray], categories: IntArray) -> _LabelScores:
    n_categories, n_labeled = int(categories.max()) + 1, len(categories)
    tables = [_agreement(_numbered(each[:n_labeled]), categories, n_categories) for each in groups]
    return _LabelScores(*(np.stack(column) for column in zip(*tables, strict=True)))


def _numbered(groups: IntArray) -> IntArray:
    """The same groups, numbered from 0."""
    return np.unique(groups, return_inverse=True)[1]


def _agreement(groups: IntArray, categories: IntArray, n_categories: int) -> list[FloatArray]:
    """The three rows of `_LabelScores` for one cut; each category has two rows or more. (m,), (m,)."""
    table = contingency(groups, categories).astype(float)
    sizes = np.bincount(categories, minlength=n_categories).astype(float)
    is_right = match(table)[groups] == categories
    right = np.bincount(categories, weights=is_right, minlength=n_categories) / sizes
    cells = table.tocoo()
    shares = cells.data / sizes[cells.col]  # of its category's rows that a cell has
    in_group = np.bincount(cells.row, weights=shares)
    pairs = cells.data * (cells.data - 1) / (sizes * (sizes - 1))[cells.col]
    together = np.bincount(cells.col, weights=pairs, minlength=n_categories)
    mixed = np.bincount(cells.col, weights=shares * (in_group[cells.row] - shares), minlength=n_categories)
    return [right, together, mixed]


def _bootstrap(tree: CategoryTree, tried: IntArray, scores: _LabelScores, seed: int) -> tuple[float, float]:
    """The logarithm of the number of groups that labels ask for, and how sure it is.

    Two estimates, each weighted by its own certainty: the cut at which most labeled rows are right, and that at which
    two rows share a group as often as they share a category. Labeled categories are mixed with each other, and with
    unlabeled ones as often. How many of these there are is a guess from what the labels ask for without them.
    """
    n_categories = scores.right.shape[1]
    # Draws go by what categories score and not by their order, so that other names give the same answer.
    order = np.lexsort(np.concatenate([scores.mixed, scores.together, scores.right]))
    draws = np.random.default_rng(seed).multinomial(n_categories, np.full(n_categories, 1 / n_categories), N_DRAWS)
    draws[:, order] = draws.copy()
    right, together, mixed = (table @ draws.T for table in (scores.right, scores.together, scores.mixed))  # (t, draws)
    estimate, spread, n_unlabeled = 0.0, 0.0, 0.0
    for _ in range(2):
        n_shared = together + mixed * (1 + n_unlabeled / max(n_categories - 1, 1))
        excess = np.abs(np.log(np.maximum(n_shared / n_categories, 1e-9)))
        found = [_best(tree, tried, score) for score in (right, -excess)]
        means = np.stack([centers for centers, _ in found])  # (2, draws)
        variances = means.var(axis=1) + [float(widths.mean()) for _, widths in found]
        weights = np.maximum(variances, MIN_SPREAD**2) ** -1
        estimate, spread = float(weights @ means.mean(axis=1) / weights.sum()), float(np.sqrt(2 / weights.sum()))
        n_unlabeled = UNLABELED_SHARE * max(0.0, np.exp(estimate) - n_categories)
    return estimate, spread


def _best(tree: CategoryTree, tried: IntArray, scores: npt.NDArray[np.floating]) -> tuple[FloatArray, FloatArray]:
    """For each draw center and variance of the cuts with the best score. (t,), (t, draws) -> (draws,), (draws,).

    The center is the middle of their heights, not of their numbers: where categories are far apart, all cuts between
    what is inside them and the join of two labeled ones are equally good, and numbers say nothing of that gap. Labels
    that suit many cuts alike, such as one per category, say little, and the variance says so.
    """
    log_tried, log_heights = np.log(tried), np.log(np.maximum(tree.heights, 1e-12))
    n_below = np.clip(tree.n_nodes - tried, 1, len(log_heights))  # joins that are kept
    is_best = scores >= scores.max(axis=0) - 1e-9
    inside = np.where(is_best, log_heights[n_below - 1][:, None], np.inf).min(axis=0)
    outside = np.where(is_best, log_heights[np.minimum(n_below, len(log_heights) - 1)][:, None], -np.inf).max(axis=0)
    n_groups = tree.n_nodes - np.searchsorted(log_heights, (inside + outside) / 2, side="right")
    shares = is_best / is_best.sum(axis=0)
    return np.log(n_groups), ((log_tried[:, None] - log_tried @ shares) ** 2 * shares).sum(axis=0)
