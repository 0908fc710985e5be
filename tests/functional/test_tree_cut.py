import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.stats import t as student
from torch.nn.functional import normalize

from igcd.functional.category_tree import cut_tree, grow_tree
from igcd.functional.reach import measure_reach
from igcd.functional.tree_cut import WINDOWS, _agreement, _best, choose_cut, fall_of_heights, log_odds_of_labels


def clouds(n_clouds, n_each, *, seed=0, width=8, spread=0.05):
    rng = np.random.default_rng(seed)
    owners = np.arange(n_clouds).repeat(n_each)
    return rng.normal(size=(n_clouds, width))[owners] + spread * rng.normal(size=(len(owners), width)), owners


def slow_agreement(groups, categories, n_categories):
    """The scores of a cut by double loops over pairs of rows."""
    right, together, mixed = np.zeros((3, n_categories))
    for category in range(n_categories):
        own = np.flatnonzero(categories == category)
        together[category] = np.mean([groups[i] == groups[j] for i in own for j in own if i != j])
        for other in set(range(n_categories)) - {category}:
            others = np.flatnonzero(categories == other)
            mixed[category] += np.mean([groups[i] == groups[j] for i in own for j in others])
    names = sorted(set(groups))
    table = np.zeros((len(names), n_categories))
    for group, category in zip(groups, categories, strict=True):
        table[names.index(group), category] += 1
    for row, category in zip(*linear_sum_assignment(table, maximize=True), strict=True):
        if table[row, category]:
            right[category] = table[row, category] / (categories == category).sum()
    return right, together, mixed


def slow_fall_of_heights(heights, tried):
    """How far the line of least squares falls, its slope from the textbook formula, window by window."""
    falls = []
    n_nodes = len(heights) + 1
    for n in tried:
        total = 0.0
        for width in WINDOWS:
            window = range(max(2, round((n + 0.5) / width)), min(n_nodes, round((n + 0.5) * width)) + 1)
            points = [(np.log(m), np.log(max(heights[n_nodes - m], 1e-12))) for m in window]
            if len(points) > 1 and n <= max(2, len(heights) // 4):
                x, y = np.array(points).T
                slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
                total += -slope * (x[-1] - x[0]) / np.log(width**2) / len(WINDOWS)
        falls.append(total)
    return falls


def nearest_rows(rows, k=8):
    distances = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1)[:, : max(1, min(k, len(rows) - 1))]


@pytest.mark.parametrize("seed", range(8))
def test_label_scores_equal_slow_twin(seed):
    rng = np.random.default_rng(seed)
    groups, categories = rng.integers(0, 7, 60) * 3, rng.permutation(np.arange(60) % 5)
    ours, twin = _agreement(groups, categories, 5), slow_agreement(groups, categories, 5)
    for mine, expected in zip(ours[1:], twin[1:], strict=True):
        np.testing.assert_allclose(mine, expected)
    sizes = np.bincount(categories)  # of several best matchings either may take one: their sum is the same
    assert ours[0] @ sizes == pytest.approx(twin[0] @ sizes)


def test_the_number_of_labels_does_not_move_the_scores():
    """How often rows share a group is a share: with every label twice, only pairs of copies are new."""
    groups, categories = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    once, twice = (_agreement(np.tile(groups, n), np.tile(categories, n), 2) for n in (1, 2))
    np.testing.assert_allclose(once[0], twice[0])
    np.testing.assert_allclose(once[2], twice[2])
    np.testing.assert_allclose(once[1], [1 / 3, 1 / 3])  # one pair of three
    np.testing.assert_allclose(twice[1], [7 / 15, 7 / 15])  # 6 pairs in a group of four, 1 in one of two, of 15


@pytest.mark.parametrize("seed", range(6))
def test_fall_of_heights_equals_slow_twin(seed):
    heights = np.sort(np.random.default_rng(seed).lognormal(sigma=2.0, size=200))
    tried = np.unique(np.geomspace(2, 66, 30).astype(np.int64))
    np.testing.assert_allclose(
        fall_of_heights(heights, tried, n_rows=201), slow_fall_of_heights(heights, tried.tolist())
    )


@pytest.mark.parametrize("n_groups", [2, 3, 4, 5, 6, 8, 10, 30])
def test_heights_that_fall_in_one_place_are_cut_near_it(n_groups):
    heights = np.concatenate([np.geomspace(0.01, 0.02, 400 - n_groups), np.geomspace(10, 20, n_groups - 1)])
    tried = np.arange(2, 100)
    assert tried[fall_of_heights(heights, tried, n_rows=400).argmax()] == pytest.approx(n_groups, rel=0.1)


@given(seed=st.integers(0, 10_000), factor=st.floats(0.01, 1000))
@settings(max_examples=25, deadline=None)
def test_the_unit_of_heights_does_not_matter(seed, factor):
    heights = np.sort(np.random.default_rng(seed).lognormal(sigma=2.0, size=120))
    tried = np.arange(2, 40)
    once, scaled = (fall_of_heights(each, tried, n_rows=121) for each in (heights, factor * heights))
    np.testing.assert_allclose(once, scaled, atol=1e-6)


def test_groups_are_tried_down_to_four_rows_each_also_where_nodes_have_several():
    heights = np.concatenate([np.full(50, 0.1), np.full(49, 10.0)])  # 50 groups of two nodes each
    tried = np.arange(2, 80)
    assert tried[fall_of_heights(heights, tried, n_rows=1_000).argmax()] == pytest.approx(50, rel=0.1)
    assert (fall_of_heights(heights, tried, n_rows=100)[tried > 25] == 0).all()


def cut_of(rows, owners, n_labeled, *, seed=0):
    """The cut when the first `n_labeled` rows of every second cloud are labeled."""
    rank = np.concatenate([np.arange(count) for count in np.bincount(owners)])
    is_labeled = (rank < n_labeled) & (owners % 2 == 0)
    order = np.argsort(~is_labeled, kind="stable")  # labeled rows first
    rows, categories = rows[order], owners[order][: is_labeled.sum()] // 2
    tree = grow_tree(rows, np.ones(len(rows)))
    node, white = np.arange(len(rows)), torch.from_numpy(rows).float()
    cut = choose_cut(
        tree, node, white, nearest_rows(rows), categories, reach_of(rows), n_least=len(set(categories)), seed=seed
    )
    return tree, cut


def reach_of(rows):
    return measure_reach(normalize(torch.from_numpy(rows).float(), dim=1))


def test_without_labels_the_tree_decides():
    rows, owners = clouds(10, 30)
    tree, cut = cut_of(rows, owners, 0)
    assert cut.from_labels is None
    assert cut.spread is None
    assert cut.n_groups == 10
    assert len(np.unique(cut_tree(tree, cut.height))) == cut.n_groups


@pytest.mark.parametrize("n_clouds", [4, 10, 24])
def test_many_labels_find_the_number_of_clouds(n_clouds):
    rows, owners = clouds(n_clouds, 30, seed=n_clouds, width=16, spread=0.3)
    _, cut = cut_of(rows, owners, 15)
    assert cut.n_groups == pytest.approx(n_clouds, abs=1 + 0.1 * n_clouds)


@given(seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_renaming_categories_and_shuffling_labels_keep_the_scores(seed):
    rows, owners = clouds(6, 10, seed=seed, spread=0.5)
    tree = grow_tree(rows, np.ones(60))
    rng = np.random.default_rng(seed)
    order = rng.permutation(60)
    for n_groups in (3, 6, 20):
        groups = cut_tree(tree, tree.height_for(n_groups))
        renamed = rng.permutation(6)
        before, after = _agreement(groups, owners, 6), _agreement(groups[order], renamed[owners[order]], 6)
        for mine, theirs in zip(before[1:], after[1:], strict=True):
            np.testing.assert_allclose(theirs[renamed], mine)
        assert after[0].sum() == pytest.approx(before[0].sum())


def test_cuts_that_are_equally_good_say_less():
    rows, _ = clouds(4, 10)
    tree, tried = grow_tree(rows, np.ones(len(rows))), np.array([2, 4, 8])
    scores = np.array([[0.1, 0.5], [0.9, 0.9], [0.2, 0.9]])  # of two draws: one best cut, and two
    _, variance = _best(tree, tried, scores)
    assert variance == pytest.approx([0.0, (np.log(8 / 4) / 2) ** 2])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_trees_of_a_few_rows(n):
    rows, _ = clouds(1, n)
    tree, node = grow_tree(rows, np.ones(n)), np.arange(n)
    neighbors = nearest_rows(rows) if n > 1 else np.zeros((1, 1), dtype=np.int64)
    for categories in (np.zeros(n, dtype=np.int64), np.empty(0, dtype=np.int64)):
        cut = choose_cut(tree, node, torch.from_numpy(rows).float(), neighbors, categories, reach_of(rows))
        assert 1 <= cut.n_groups <= n


def test_one_label_each_says_nothing_and_the_tree_decides():
    rows, owners = clouds(10, 30, width=16)
    _, one = cut_of(rows, owners, 1)
    _, none = cut_of(rows, owners, 0)
    assert one.from_labels is None
    assert one.n_groups == none.n_groups == 10


def test_with_one_label_each_there_are_as_many_groups_as_labeled_categories():
    """Three families of ten categories each: the tree alone sees families, thirty names say that there are more."""
    rng = np.random.default_rng(0)
    families = 3 * rng.normal(size=(3, 16)).repeat(10, axis=0)
    rows = (families + 0.3 * rng.normal(size=(30, 16))).repeat(12, axis=0) + 0.25 * rng.normal(size=(360, 16))
    tree, node, white = grow_tree(rows, np.ones(360)), np.arange(360), torch.from_numpy(rows).float()
    given = {"tree": tree, "node": node, "rows": white, "neighbors": nearest_rows(rows), "reach": reach_of(rows)}
    alone = choose_cut(**given, categories=np.empty(0, dtype=np.int64))
    named = choose_cut(**given, categories=np.arange(30), n_least=30)
    assert alone.n_groups < 10
    assert 30 <= named.n_groups <= 40


@pytest.mark.parametrize(("estimate", "spread", "n"), [(3.5, 0.4, 2), (3.3, 0.2, 9), (4.0, 0.3, 40)])
def test_the_odds_of_labels_are_those_of_students_t(estimate, spread, n):
    log_n = np.linspace(1, 6, 50)
    expected = student.logpdf(log_n, n - 1, estimate, spread) - student.logpdf(estimate, n - 1, estimate, spread)
    np.testing.assert_allclose(log_odds_of_labels(log_n, estimate, spread, n_categories=n), expected)


def test_the_fewer_categories_are_labeled_the_less_they_forbid():
    far = np.array([np.log(5)])
    odds = [float(log_odds_of_labels(far, np.log(32), 0.4, n_categories=c)[0]) for c in (2, 3, 5, 10, 30)]
    assert odds == sorted(odds, reverse=True)
