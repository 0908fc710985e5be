import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage

from igcd.functional.category_tree import DISSOLVED, CategoryTree, _join_costs, cut_tree, grow_tree


def nodes(n, *, seed, width=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, width)), rng.integers(1, 9, n)


def slow_joins(centers, weights, n_known):
    """Ward's rule with group means computed again at every step: (cost, all groups after it), cheapest join first."""
    groups = [[i] for i in range(len(centers))]
    steps = []
    while True:
        best = None
        for a in range(len(groups)):
            for b in range(a + 1, len(groups)):
                if min(groups[a]) < n_known and min(groups[b]) < n_known:
                    continue
                n, m = weights[groups[a]].sum(), weights[groups[b]].sum()
                means = [np.average(centers[group], axis=0, weights=weights[group]) for group in (groups[a], groups[b])]
                cost = n * m / (n + m) * ((means[0] - means[1]) ** 2).sum()
                if best is None or cost < best[0]:
                    best = (cost, a, b)
        if best is None:
            return steps
        cost, a, b = best
        groups = [group for i, group in enumerate(groups) if i not in (a, b)] + [groups[a] + groups[b]]
        steps.append((cost, partition_of(groups)))


def partition_of(groups):
    return frozenset(frozenset(int(i) for i in group) for group in groups)


def partition(labels):
    return partition_of([np.flatnonzero(labels == label) for label in np.unique(labels)])


def slow_cut(tree, height, sizes, smallest):
    """The docstring's words, from the top of the tree downward: (categories as sets of nodes, dissolved nodes).

    Below the height a group is whole. Above it a join is undone if either side holds a category; otherwise the two
    sides are small ones that join, unless together they are still too few, which is for those above to say.
    """

    def describe(node, n_joins):
        """Of a node after so many joins: its members, the categories among them, and members still too few for one."""
        for j in range(n_joins - 1, -1, -1):
            if tree.pairs[j][0] == node:
                first, second = describe(node, j), describe(tree.pairs[j][1], j)
                members, inside = first[0] + second[0], first[1] + second[1]
                if tree.heights[j] <= height or not inside:
                    enough = min(members) < tree.n_known or sum(sizes[i] for i in members) >= smallest
                    return members, [frozenset(members)] if enough else []
                return members, inside
        enough = node < tree.n_known or sizes[node] >= smallest
        return [int(node)], [frozenset([int(node)])] if enough else []

    tops = set(range(tree.n_nodes)) - {int(goes) for _, goes in tree.pairs}
    categories = {group for top in tops for group in describe(top, len(tree.pairs))[1]}
    return categories, set(range(tree.n_nodes)) - set().union(*categories)


@pytest.mark.parametrize("n_known", [0, 1, 5])
@pytest.mark.parametrize("seed", range(4))
def test_equals_slow_twin_at_every_height(seed, n_known):
    centers, weights = nodes(24, seed=seed)
    tree = grow_tree(centers, weights, n_known=n_known)
    steps = slow_joins(centers, weights, n_known)
    np.testing.assert_allclose(tree.heights, [cost for cost, _ in steps], rtol=1e-4)
    assert len(tree.pairs) == 24 - max(n_known, 1)
    for height, (_, expected) in zip(tree.heights, steps, strict=True):
        assert partition(cut_tree(tree, height)) == expected


@pytest.mark.parametrize("seed", range(3))
def test_without_known_nodes_it_is_scipys(seed):
    centers, _ = nodes(200, seed=seed)
    tree = grow_tree(centers, np.ones(200))
    theirs = linkage(centers, method="ward")
    np.testing.assert_allclose(np.sqrt(2 * tree.heights), theirs[:, 2], rtol=1e-3)
    for n_groups in (2, 5, 20, 100):
        assert partition(cut_tree(tree, tree.height_for(n_groups))) == partition(
            fcluster(theirs, n_groups, criterion="maxclust")
        )


@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), n_known=st.integers(0, 6), n_copies=st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_known_nodes_stay_apart_and_everything_else_joins(seed, n, n_known, n_copies):
    centers, weights = nodes(n, seed=seed, width=3)
    centers[: min(n, n_copies)] = centers[0]
    n_known = min(n, n_known)
    tree = grow_tree(centers, weights, n_known=n_known)
    assert (np.diff(tree.heights) >= 0).all()
    assert (tree.heights >= 0).all()
    assert len(tree.pairs) == n - max(1, n_known)
    assert (tree.pairs[:, 0] < tree.pairs[:, 1]).all()
    groups = cut_tree(tree, np.inf)
    assert set(groups.tolist()) == set(range(max(1, n_known)))
    assert groups[:n_known].tolist() == list(range(n_known))
    heights_inside = dict.fromkeys(range(n), 0.0)
    for (stays, goes), height in zip(tree.pairs.tolist(), tree.heights, strict=True):
        assert height >= max(heights_inside[stays], heights_inside.pop(goes))  # a group is spoken for once
        heights_inside[stays] = height


def test_costs_that_differ_by_direction_in_the_last_bit_do_not_go_in_circles():
    # Nodes at nearly one place, where rounding is as large as what is between them.
    rng = np.random.default_rng(0)
    base = rng.normal(size=32)
    for size in (1e-3, 1e-4, 1e-5):
        centers = (base + size * rng.normal(size=(300, 32))).astype(np.float32)
        costs = _join_costs(centers, np.ones(300, dtype=np.float32), 0)
        assert (costs == costs.T).all()
        assert len(grow_tree(centers, np.ones(300)).pairs) == 299


def test_a_heavy_node_costs_more_to_join():
    tree = grow_tree([[0.0], [1.0], [2.2]], [50, 1, 1])
    assert tree.pairs.tolist() == [[1, 2], [0, 1]]
    assert tree.heights[0] == pytest.approx(0.5 * 1.2**2)


def test_height_for_gives_the_number_of_groups():
    centers, weights = nodes(30, seed=1)
    tree = grow_tree(centers, weights)
    for n_groups in range(1, 31):
        assert len(np.unique(cut_tree(tree, tree.height_for(n_groups)))) == n_groups
    nobody = grow_tree(centers[:4], weights[:4], n_known=4)
    assert nobody.height_for(4) == 0.0
    assert cut_tree(nobody, 0.0).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("n_known", [0, 3])
@pytest.mark.parametrize("seed", range(6))
def test_cut_equals_slow_twin(seed, n_known):
    centers, sizes = nodes(30, seed=seed)
    tree = grow_tree(centers, sizes, n_known=n_known)
    for height in (0.0, *tree.heights[::4]):
        for smallest in (1, 4, 12, 40, 1000):
            groups = cut_tree(tree, height, sizes=sizes, smallest=smallest)
            categories, dissolved = slow_cut(tree, height, sizes, smallest)
            assert partition(groups) - {frozenset(np.flatnonzero(groups == DISSOLVED).tolist())} == categories
            assert set(np.flatnonzero(groups == DISSOLVED).tolist()) == dissolved


def test_small_groups_join_each_other_and_fall_out_beside_a_category():
    tree = CategoryTree(5, 0, np.array([[0, 1], [2, 3], [2, 4], [0, 2]]), np.array([1.0, 2.0, 3.0, 4.0]))
    sizes = np.array([2, 2, 5, 1, 1])
    assert cut_tree(tree, 0.0, sizes=sizes, smallest=4).tolist() == [0, 0, 2, DISSOLVED, DISSOLVED]
    assert cut_tree(tree, 2.5, sizes=sizes, smallest=4).tolist() == [0, 0, 2, 2, DISSOLVED]
    assert cut_tree(tree, 3.0, sizes=sizes, smallest=4).tolist() == [0, 0, 2, 2, 2]
    assert cut_tree(tree, 0.0, sizes=sizes, smallest=100).tolist() == [DISSOLVED] * 5


@given(seed=st.integers(0, 10_000), n_known=st.integers(0, 4), smallest=st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_a_lower_cut_never_gives_fewer_categories_and_each_is_large_enough(seed, n_known, smallest):
    centers, sizes = nodes(40, seed=seed)
    tree = grow_tree(centers, sizes, n_known=n_known)
    before = None
    for height in [*tree.heights[::-1], 0.0]:
        groups = cut_tree(tree, height, sizes=sizes, smallest=smallest)
        found = [group for group in np.unique(groups) if group != DISSOLVED]
        assert before is None or len(found) >= before
        before = len(found)
        assert all(group < n_known or sizes[groups == group].sum() >= smallest for group in found)
        assert groups[:n_known].tolist() == list(range(n_known))
