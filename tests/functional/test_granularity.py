"""K, K^d and the margin from labeled rows, against loops on blobs one could draw."""

import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional.density import find_density_peaks
from igcd.functional.granularity import (
    MAX_K,
    MIN_LABELED,
    Granularity,
    estimate_granularity,
    estimate_k,
    estimate_margin,
)
from igcd.functional.hidden_categories import heights_by_hiding
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novelty import calibrate_margin
from igcd.functional.projection import project_together


def blobs(n_categories=5, n_each=16, spread=0.25, seed=0):
    """Groups of unit vectors around axes of their own."""
    categories = torch.arange(n_categories).repeat_interleave(n_each)
    noise = spread * torch.randn(len(categories), 8, generator=torch.Generator().manual_seed(seed))
    return normalize(torch.eye(8)[categories] + noise, dim=1), categories


def slow_k(features, categories):
    """The middle one of the K at which the number of peaks is closest to that of categories."""
    errors = {}
    for k in (3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40):
        if 2 * k <= min(2 * MAX_K, len(features) - 1):
            graph = neighbor_graph(features, 2 * k)
            found = find_density_peaks(graph, n_neighbors=k, n_overlap_neighbors=2 * k)
            errors[k] = abs(len(found.idx) - len(set(categories.tolist())))
    best = [k for k, error in errors.items() if error == min(errors.values())]
    return best[(len(best) - 1) // 2]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_each", [4, 16, 40])
def test_k_is_that_at_which_categories_are_one_peak_each(n_each, seed):
    features, categories = blobs(n_each=n_each, seed=seed)
    assert estimate_k(features, categories) == slow_k(features, categories)


def test_what_is_given_stays_and_what_is_auto_is_estimated():
    features, categories = blobs()
    k = estimate_k(features, categories)
    margin = calibrate_margin(features, categories, n_neighbors=k, n_closest=2)
    assert estimate_granularity(features, categories) == Granularity(k, 2 * k, margin)
    assert estimate_granularity(features, categories, K=6, K_d=9, margin=0.1) == Granularity(6, 9, 0.1)
    assert estimate_granularity(features, categories, margin=0.1) == Granularity(k, 2 * k, 0.1)
    own = calibrate_margin(features, categories, n_neighbors=6, n_closest=3)
    assert estimate_granularity(features, categories, K=6, n_closest=7) == Granularity(6, 20, own)


def test_renaming_categories_changes_nothing():
    features, categories = blobs()
    renamed = torch.tensor([40, 3, 11, 2, 7])[categories]
    assert estimate_granularity(features, renamed) == estimate_granularity(features, categories)


@pytest.mark.parametrize("n_rows", [0, 1, MIN_LABELED - 1])
def test_too_few_labels_leave_what_was_known_before(n_rows):
    features, categories = (part[:: len(part) // 6][:n_rows] for part in blobs())
    assert estimate_k(features, categories) is None
    assert estimate_margin(features, categories, n_neighbors=10) is None
    assert estimate_granularity(features, categories) == Granularity(10, 20, 0.03)
    former = Granularity(4, 8, -0.1)
    assert estimate_granularity(features, categories, former=former) == former
    assert estimate_granularity(features, categories, K=5, K_d=7, former=former) == Granularity(5, 7, -0.1)


def test_seven_rows_are_enough_for_the_smallest_k():
    features, categories = (part[:7] for part in blobs())
    assert estimate_k(features, categories) == 3  # with K^d 6: the six others


def test_one_category_says_how_fine_to_look_but_not_what_a_hidden_one_is_like():
    features, categories = blobs(n_categories=1)
    assert estimate_k(features, categories) is not None
    assert estimate_margin(features, categories, n_neighbors=4) is None


def test_the_core_is_given_a_height_and_a_smallest_size_where_rows_will_be_kept():
    features, categories = blobs()
    found = estimate_granularity(features, categories, K=6, margin=0.1, n_kept=4)
    expected = heights_by_hiding(project_together(features)[0], categories, n_kept=4)
    assert expected is not None
    assert found == Granularity(6, 20, 0.1, expected, round(0.35 * 16))
    assert estimate_granularity(features, categories, K=6, margin=0.1).heights is None
    few = estimate_granularity(features[:16], categories[:16], K=6, margin=0.1, n_kept=4, former=found)
    assert few.heights == found.heights
