import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from igcd.metrics.accuracy import accuracy, matched_hits
from igcd.metrics.identity import identity_stability

streams = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4), st.integers(0, 3)), min_size=1, max_size=30).map(
    lambda rows: np.array(rows).T
)


def test_stable_names_keep_100():
    stages, categories = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2]), np.array([0, 1, 0, 1, 2, 0, 1, 2, 3])
    assert identity_stability(stages, categories + 10, categories) == {0: 100.0, 1: 100.0, 2: 100.0}


def test_renumbering_between_stages_costs_all_that_is_renumbered():
    """Stage 1 swaps clusters 0 and 1 and keeps 2: each stage alone is perfect, one image of three keeps its name."""
    stages, categories = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2])
    clusters = np.array([0, 1, 2, 1, 0, 2])
    assert matched_hits(clusters[3:], categories[3:]).all()
    assert identity_stability(stages, clusters, categories) == {0: 100.0, 1: 100 / 3}


def test_a_category_cannot_take_a_cluster_that_is_taken():
    """Category 1 appears in the cluster that category 0 opened, and later gets one of its own."""
    stages, categories = np.array([0, 1, 1, 2, 2]), np.array([0, 0, 1, 0, 1])
    assert identity_stability(stages, np.array([5, 5, 5, 5, 6]), categories) == {0: 100.0, 1: 50.0, 2: 100.0}


def test_no_prediction_is_wrong():
    assert identity_stability(np.array([0, 0]), np.array([-1, 3]), np.array([0, 1])) == {0: 50.0}
    assert identity_stability(np.array([0]), np.array([-1]), np.array([0])) == {0: 0.0}


@given(streams)
def test_first_stage_is_plain_accuracy_and_no_stage_is_better_than_it(stream):
    stages, clusters, categories = stream
    stable = identity_stability(stages, clusters, categories)
    plain = {
        s: accuracy(matched_hits(clusters[stages == s], categories[stages == s]), categories[stages == s])
        for s in stable
    }
    first = min(stable)
    assert stable[first] == plain[first]
    assert all(stable[stage] <= plain[stage] for stage in stable)


@given(streams, st.randoms(use_true_random=False))
def test_renaming_clusters_for_the_whole_file_changes_nothing(stream, random):
    stages, clusters, categories = stream
    names = random.sample(range(50), 5)
    renamed = np.array([names[cluster] if cluster >= 0 else -1 for cluster in clusters])
    assert identity_stability(stages, renamed, categories) == identity_stability(stages, clusters, categories)


def test_clusters_alike_at_first_and_different_later():
    """At stage 0 clusters 0 and 1 tie for the category; later only one of them keeps to it."""
    stages, categories = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0])
    straight = identity_stability(stages, np.array([0, 1, 1, 1]), categories)
    renamed = identity_stability(stages, np.array([1, 0, 0, 0]), categories)
    assert straight == renamed


def test_a_tie_is_broken_by_stage_and_category_together():
    """Clusters a and b tie for category 0 at stage 1. One was met before in category 1, the other comes again in 0.

    With three stages and two categories a number for each pair must not be the same for two pairs.
    """
    stages, categories = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 1, 1, 0, 0, 0])
    a_first, b_first = np.array([9, 9, 3, 3, 4, 4]), np.array([9, 9, 4, 4, 3, 3])
    assert identity_stability(stages, a_first, categories) == identity_stability(stages, b_first, categories)


def test_a_tie_is_broken_by_pairs_that_no_sum_of_stage_and_category_confuses():
    """Clusters tie for category 1 at stage 0. One comes again at stage 1 in category 1, the other at stage 2 in 0."""
    stages, categories = np.array([0, 0, 1, 2]), np.array([1, 1, 1, 0])
    straight, renamed = np.array([3, 4, 3, 4]), np.array([4, 3, 4, 3])
    assert identity_stability(stages, straight, categories) == identity_stability(stages, renamed, categories)


def test_a_tie_is_broken_by_the_stage_where_categories_are_the_same():
    """Clusters tie for category 0 at stage 0. Both come again in category 1, one at stage 1, the other at stage 2."""
    stages, categories = np.array([0, 0, 1, 2]), np.array([0, 0, 1, 1])
    straight, renamed = np.array([3, 4, 3, 4]), np.array([4, 3, 4, 3])
    assert identity_stability(stages, straight, categories) == identity_stability(stages, renamed, categories)
