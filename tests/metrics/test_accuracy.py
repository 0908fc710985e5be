from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from igcd.metrics.accuracy import accuracy, hits_under, matched_hits

labelings = st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 3)), min_size=1, max_size=30).map(
    lambda pairs: np.array(pairs).T
)


def most_hits_by_trying_all(clusters, categories):
    """The slow twin: every way to name five clusters, with one name or none each."""
    names = [*range(4), None, None, None, None, None]
    return max(
        sum(
            cluster >= 0 and naming[cluster] == category for cluster, category in zip(clusters, categories, strict=True)
        )
        for naming in set(permutations(names, 5))
    )


@given(labelings)
def test_no_naming_of_the_clusters_makes_more_images_right(labeling):
    clusters, categories = labeling
    by_matching = matched_hits(clusters, categories)
    few = slice(0, 12)
    assert matched_hits(clusters[few], categories[few]).sum() == most_hits_by_trying_all(clusters[few], categories[few])
    assert not by_matching[clusters == -1].any()


@given(labelings, st.randoms(use_true_random=False))
def test_renaming_clusters_changes_nothing(labeling, random):
    clusters, categories = labeling
    names = random.sample(range(100), 5)
    renamed = np.array([names[cluster] if cluster >= 0 else -1 for cluster in clusters])
    hits, hits_renamed = matched_hits(clusters, categories), matched_hits(renamed, categories)
    for category in range(4):  # so it holds for every group of categories
        assert hits[categories == category].sum() == hits_renamed[categories == category].sum()


@given(labelings)
def test_matching_inside_parts_is_matching_each_part_alone(labeling):
    clusters, categories = labeling
    parts = categories // 2
    hits = matched_hits(clusters, categories, parts)
    for part in (0, 1):
        alone = matched_hits(clusters[parts == part], categories[parts == part])
        np.testing.assert_array_equal(hits[parts == part], alone)
    assert hits.sum() >= matched_hits(clusters, categories).sum()


def test_v1_may_give_one_cluster_to_a_category_of_each_part():
    """Four images in one cluster: one category of two can be right, or one of each part."""
    clusters, categories = np.zeros(4, dtype=int), np.array([0, 0, 1, 1])
    assert matched_hits(clusters, categories).sum() == 2
    assert matched_hits(clusters, categories, parts=categories).sum() == 4


def test_hits_under_a_matching_ignore_images_without_prediction():
    hits = hits_under(np.array([2, -1]), np.array([0, 0, 1, -1]), np.array([2, 1, 0, 0]))
    np.testing.assert_array_equal(hits, [True, False, False, False])


def test_averages_by_hand():
    hits = np.array([True, True, True, False, False, True])
    categories = np.array([0, 0, 0, 0, 7, 9])
    assert accuracy(hits, categories) == pytest.approx(100 * 4 / 6)
    assert accuracy(hits, categories, average="category") == pytest.approx((75 + 0 + 100) / 3)


def test_accuracy_of_nothing_is_undefined():
    nothing = np.empty(0, dtype=np.int64)
    assert accuracy(nothing.astype(bool), nothing) is None
    assert accuracy(nothing.astype(bool), nothing, average="category") is None
