"""Statistics that grow batch by batch are those of all images at once."""

from itertools import pairwise

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from igcd.functional.gaussian import pooled_covariance, scatter_statistics
from igcd.functional.growing_scatter import add_images, add_means, no_statistics, take_rows


def drawn(n, width=3, n_categories=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, width, generator=generator)
    rows = torch.cat(
        [torch.arange(n_categories), torch.randint(n_categories, (n - n_categories,), generator=generator)]
    )
    return features, rows


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 40), max_size=4), seed=st.integers(0, 99))
def test_however_the_images_are_cut_into_batches(cuts, seed):
    features, rows = drawn(40, seed=seed)
    nothing = torch.zeros(4, dtype=torch.int64)
    grown = add_means(no_statistics(3), torch.full((4, 3), 5.0), nothing)  # means without labels are forgotten
    borders = [0, *sorted(cuts), 40]
    for start, end in pairwise(borders):
        grown = add_images(grown, features[start:end], rows[start:end])
    together = scatter_statistics(features, rows, n_categories=4)
    assert torch.allclose(grown.means, together.means, atol=1e-5)
    assert torch.equal(grown.counts, together.counts) and torch.equal(grown.sizes, together.sizes)
    assert torch.allclose(grown.scatter, together.scatter, atol=1e-5)


def test_against_a_loop_on_a_line():
    """Category 0 has 0 and 2, then gets 7; category 1 has 5 alone and gets nothing."""
    before = scatter_statistics(torch.tensor([[0.0], [2.0], [5.0]]), torch.tensor([0, 0, 1]), n_categories=2)
    after = add_images(before, torch.tensor([[7.0]]), torch.tensor([0]))
    images, mean = [0.0, 2.0, 7.0], 3.0
    assert after.means.ravel().tolist() == [mean, 5.0] and after.counts.tolist() == [3, 1]
    assert float(after.scatter) == sum((image - mean) ** 2 for image in images)


def test_a_mean_alone_leaves_the_covariance_as_it_was():
    statistics = scatter_statistics(*drawn(30), n_categories=4)
    grown = add_means(statistics, torch.full((2, 3), 100.0), torch.tensor([7, 9]))
    assert torch.equal(pooled_covariance(grown), pooled_covariance(statistics))
    assert grown.means[4:].tolist() == [[100.0] * 3] * 2 and grown.counts[4:].tolist() == [0, 0]
    assert grown.sizes.tolist() == [*statistics.counts.tolist(), 7, 9]


def test_rows_are_taken_in_their_order():
    statistics = scatter_statistics(*drawn(30), n_categories=4)
    taken = take_rows(statistics, torch.tensor([2, 0]))
    assert torch.equal(taken.means, statistics.means[[2, 0]]) and torch.equal(taken.scatter, statistics.scatter)
    assert torch.equal(taken.sizes, statistics.sizes[[2, 0]])


def test_no_images_change_nothing():
    statistics = scatter_statistics(*drawn(30), n_categories=4)
    same = add_images(statistics, torch.empty(0, 3), torch.empty(0, dtype=torch.int64))
    assert torch.allclose(same.means, statistics.means) and torch.equal(same.scatter, statistics.scatter)
