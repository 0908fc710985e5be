from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from igcd.functional.assignment import contingency, match
from igcd.metrics.counts import CategoryCount, agreement, count_categories, count_won


def test_agreement_by_hand():
    """Categories a a b b in clusters 0 0 0 1.

    Mutual information: cells (a, 0) 2/4, (b, 0) 1/4, (b, 1) 1/4 with margins 1/2, 1/2 and 3/4, 1/4.
    Pairs: together in both 1, in categories 2, in clusters 3, of 6; expected 2·3/6 = 1, so ARI = 0.
    """
    mutual = 0.5 * log(0.5 / (0.5 * 0.75)) + 0.25 * log(0.25 / (0.5 * 0.75)) + 0.25 * log(0.25 / (0.5 * 0.25))
    entropies = log(2), -0.75 * log(0.75) - 0.25 * log(0.25)
    nmi, ari = agreement(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]))
    assert nmi == pytest.approx(100 * mutual / (sum(entropies) / 2))
    assert ari == pytest.approx(0.0)


def test_ari_by_hand():
    """Categories a a a b b b in clusters 0 0 1 1 2 2: 2 pairs in both, 6 in categories, 3 in clusters, of 15."""
    _, ari = agreement(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 0, 1, 1, 1]))
    expected = 6 * 3 / 15
    assert ari == pytest.approx(100 * (2 - expected) / ((6 + 3) / 2 - expected))


def test_no_prediction_is_a_cluster_of_one_image():
    categories = np.array([0, 0, 1, 1])
    assert agreement(np.array([-1, -1, 4, 4]), categories) == agreement(np.array([0, 1, 4, 4]), categories)
    assert agreement(np.array([-1, -1, 4, 4]), categories)[1] < 100


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 3)), min_size=1, max_size=30))
def test_agreement_stays_in_its_range_and_knows_no_names(rows):
    clusters, categories = np.array(rows).T
    nmi, ari = agreement(clusters, categories)
    assert 0 <= nmi <= 100 + 1e-9
    assert -100 <= ari <= 100 + 1e-9
    assert agreement(np.where(clusters >= 0, 9 - clusters, -1), categories) == pytest.approx((nmi, ari))


def test_count_leaves_out_no_prediction():
    count = count_categories(np.array([-1, 3, 3, 8]), np.array([0, 0, 1, 2]))
    assert count == CategoryCount(found=2, true=3)
    assert count.error == -1
    assert count.relative_error == pytest.approx(100 / 3)


def test_nothing_to_find_has_no_relative_error():
    nothing = np.empty(0, dtype=np.int64)
    assert count_categories(nothing, nothing).to_json() == {"found": 0, "true": 0, "error": 0, "relative_error": None}


def slow_won(clusters, categories, new_clusters, new_categories):
    """The definition as it reads, one pair after the other."""
    category_of = match(contingency(clusters, categories))
    n_won = 0
    for cluster in sorted(new_clusters & set(clusters.tolist())):
        category = int(category_of[cluster])
        own = sum(1 for k, c in zip(clusters, categories, strict=True) if (k, c) == (cluster, category))
        others = [
            sum(1 for k, c in zip(clusters, categories, strict=True) if (k, c) == (other, category))
            for other in set(clusters.tolist()) - {-1, cluster}
        ]
        n_won += category in new_categories and own > max(others, default=0)
    return CategoryCount(n_won, len(new_categories & set(categories.tolist())))


ROWS = st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 4)), min_size=1, max_size=30)


@given(ROWS, st.sets(st.integers(0, 5)), st.sets(st.integers(0, 4)))
def test_clusters_that_win_are_counted_as_the_slow_twin_counts(rows, new_clusters, new_categories):
    clusters, categories = np.array(rows).T
    new = {
        "is_new_cluster": np.isin(np.arange(6), list(new_clusters)),
        "is_new_category": np.isin(np.arange(5), list(new_categories)),
    }
    won = count_won(clusters, categories, **new)
    assert won == slow_won(clusters, categories, new_clusters, new_categories)
    assert won.found <= min(won.true, count_categories(clusters, categories).found)
    renamed = count_won(
        np.where(clusters >= 0, 5 - clusters, -1), categories, **new | {"is_new_cluster": new["is_new_cluster"][::-1]}
    )
    assert renamed == won


def test_a_cluster_with_stray_images_wins_nothing():
    """Category 1 has four images: three in the cluster of category 0, one in a new cluster."""
    clusters, categories = np.array([0, 0, 0, 0, 0, 0, 0, 1]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    new = {"is_new_cluster": np.array([False, True]), "is_new_category": np.array([False, True])}
    assert count_won(clusters, categories, **new) == CategoryCount(found=0, true=1)
    assert count_won(np.array([0, 0, 0, 0, 1, 1, 1, 0]), categories, **new) == CategoryCount(found=1, true=1)
