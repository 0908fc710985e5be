from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from igcd.functional.assignment import canonical_order, contingency, match

small_counts = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 2))  # few values, so many ties
)


def best_sum_by_trying_all(counts):
    """The slow twin: every way to give each column of the shorter side a row of its own."""
    if counts.shape[0] < counts.shape[1]:
        counts = counts.T
    n_rows, n_columns = counts.shape
    return max(
        sum(counts[row, column] for column, row in enumerate(rows)) for rows in permutations(range(n_rows), n_columns)
    )


def matched_sum(counts, category_of):
    return sum(counts[cluster, category] for cluster, category in enumerate(category_of) if category >= 0)


def test_contingency_counts_like_a_loop():
    rng = np.random.default_rng(0)
    clusters, categories = rng.integers(-1, 6, 200), rng.integers(0, 4, 200)
    by_loop = np.zeros((6, 4), dtype=int)
    for cluster, category in zip(clusters, categories, strict=True):
        if cluster >= 0:
            by_loop[cluster, category] += 1
    np.testing.assert_array_equal(contingency(clusters, categories).toarray(), by_loop)


def test_contingency_of_nothing_and_of_no_prediction():
    nothing = np.empty(0, dtype=np.int64)
    assert contingency(nothing, nothing).shape == (0, 0)
    assert contingency(np.array([-1, -1]), np.array([0, 1])).shape == (0, 2)
    assert match(contingency(nothing, nothing)).shape == (0,)
    assert match(contingency(np.array([-1, -1]), np.array([0, 1]))).shape == (0,)


@pytest.mark.parametrize("solver", ["dense", "sparse"])
@settings(deadline=None, derandomize=True)
@given(counts=small_counts)
def test_match_is_as_good_as_the_best_of_all_permutations(solver, counts):
    category_of = match(csr_array(counts), solver=solver)
    given_away = category_of[category_of >= 0]
    assert len(set(given_away)) == len(given_away)
    assert matched_sum(counts, category_of) == best_sum_by_trying_all(counts)


@settings(deadline=None, derandomize=True)
@given(counts=small_counts, data=st.data())
def test_which_categories_are_right_does_not_depend_on_the_order_of_clusters(counts, data):
    order = data.draw(st.permutations(range(len(counts))))
    for solver in ("dense", "sparse"):
        straight = match(csr_array(counts), solver=solver)
        shuffled = match(csr_array(counts[order]), solver=solver)
        hits = {c: counts[cluster, c] for cluster, c in enumerate(straight) if c >= 0}
        assert hits == {c: counts[order][cluster, c] for cluster, c in enumerate(shuffled) if c >= 0}


def test_a_tie_that_the_order_of_clusters_would_break():
    """Either cluster may have category 0; the one that loses it leaves category 1 or category 2 wrong."""
    counts = np.array([[2, 2, 0], [2, 0, 2]])
    hits = {tuple(sorted(match(csr_array(counts[order])))) for order in ([0, 1], [1, 0])}
    assert len(hits) == 1


def test_more_clusters_than_categories_and_the_reverse():
    counts = np.array([[3, 0], [0, 2], [1, 1]])
    for solver in ("dense", "sparse"):
        np.testing.assert_array_equal(match(csr_array(counts), solver=solver), [0, 1, -1])
        np.testing.assert_array_equal(match(csr_array(counts.T.copy()), solver=solver), [0, 1])


def test_a_cluster_without_images_is_matched_with_nothing():
    counts = csr_array(np.array([[0, 0], [1, 0]]))
    for solver in ("dense", "sparse"):
        np.testing.assert_array_equal(match(counts, solver=solver), [-1, 0])


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0, 1), n_clusters=st.integers(1, 400))
def test_dense_and_sparse_find_the_same_sum(seed, share, n_clusters):
    rng = np.random.default_rng(seed)
    categories = rng.integers(0, 150, 2_000)
    clusters = np.where(rng.random(2_000) < share, categories % n_clusters, rng.integers(0, n_clusters, 2_000))
    counts = contingency(clusters, categories)
    sums = [matched_sum(counts.toarray(), match(counts, solver=solver)) for solver in ("dense", "sparse")]
    assert sums[0] == sums[1]


@settings(deadline=None, derandomize=True)
@given(counts=small_counts, data=st.data())
def test_canonical_order_brings_any_order_of_rows_to_the_same_table(counts, data):
    order = data.draw(st.permutations(range(len(counts))))
    straight, shuffled = csr_array(counts), csr_array(counts[order])
    np.testing.assert_array_equal(
        straight[canonical_order(straight)].toarray(), shuffled[canonical_order(shuffled)].toarray()
    )
