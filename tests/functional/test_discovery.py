import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from torch.nn.functional import normalize

from igcd.functional import discovery as module
from igcd.functional import pulling
from igcd.functional.discovery import (
    discover,
    discover_from_statistics,
    draw_rows,
    smallest_size,
)
from igcd.functional.gaussian import ScatterStatistics, scatter_statistics
from igcd.functional.projection import fit_projection

LONG_TAIL = [max(10, 200 // (i + 1)) for i in range(20)]


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def raw_clouds(sizes, *, seed=0, width=32, spread=0.05):
    """Rows around random directions, many spreads apart, and the cloud of each."""
    owners = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    centers = normalize(torch.randn(len(sizes), width, generator=gen(seed), dtype=torch.float64), dim=1)
    noise = torch.randn(len(owners), width, generator=gen(seed + 1), dtype=torch.float64)
    return centers[owners] + spread * noise, owners


def clouds(sizes, **options):
    """The same, centered and of length 1, as discovery gets them."""
    rows, owners = raw_clouds(sizes, **options)
    return fit_projection(rows, n_components=32)(rows).float(), owners


def split(rows, owners, known, n_labels):
    """(unlabeled, labeled, categories), and the truth about the unlabeled: the first rows of `known` are labeled."""
    is_labeled = torch.zeros(len(rows), dtype=torch.bool)
    for category in known:
        is_labeled[(owners == category).nonzero()[:n_labels, 0]] = True
    return (rows[~is_labeled], rows[is_labeled], owners[is_labeled]), owners[~is_labeled]


def same_partition(first, second):
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len(set(first.tolist())) == len(set(second.tolist()))


def share_together(first, second):
    """Share of pairs of rows on which two partitions agree."""
    return float(((first[:, None] == first) == (second[:, None] == second)).float().mean())


def nothing(rows):
    return rows[:0], torch.empty(0, dtype=torch.int64)


def test_drawn_rows_have_the_statistics():
    features, owners = raw_clouds([400, 300], width=4, spread=0.3)
    known = scatter_statistics(features * torch.tensor([3.0, 1.0, 1.0, 0.2]), owners, n_categories=2)
    rows, drawn_owners = draw_rows(known, 20_000, generator=gen())
    assert drawn_owners.bincount().tolist() == [20_000, 20_000]
    covariance = known.scatter / (700 - 2)
    for category in (0, 1):
        own = rows[drawn_owners == category]
        torch.testing.assert_close(own.mean(0), known.means[category], rtol=0, atol=0.03)
        torch.testing.assert_close(own.T.cov(), covariance, rtol=0, atol=0.03)


def test_drawn_rows_equal_slow_twin():
    covariance = torch.diag(torch.tensor([4.0, 1.0], dtype=torch.float64))
    counts = torch.tensor([6, 6])
    known = ScatterStatistics(torch.tensor([[5.0, 0.0], [0.0, 7.0]]), counts, counts, 10 * covariance)
    rows, owners = draw_rows(known, 3, generator=gen(3))
    noise = torch.randn(6, 2, generator=gen(3))
    for i in range(6):
        squared = ((rows[i] - known.means[owners[i]]).double() ** 2 / covariance.diagonal()).sum()
        assert float(squared) == pytest.approx(float((noise[i] ** 2).sum()), rel=1e-5)


def test_smallest_size():
    assert smallest_size(torch.tensor([100, 10, 1000])) == 35
    assert smallest_size(torch.tensor([1, 1, 1])) == 2
    assert smallest_size(torch.tensor([], dtype=torch.int64)) == 2


@pytest.mark.parametrize(
    "sizes",
    [[40] * 2, [60] * 3, [300] * 5, [20] * 8, [30] * 20, [20] * 60, LONG_TAIL],
    ids=lambda s: f"{len(s)}x{s[0]}",
)
def test_clouds_are_found_without_labels(sizes):
    rows, owners = clouds(sizes)
    found = discover(rows, *nothing(rows))
    assert found.n_known == 0
    assert same_partition(found.category, owners)


@pytest.mark.parametrize("n_labels", [20, 3, 1])
@pytest.mark.parametrize("sizes", [[300] * 5, [40] * 20, LONG_TAIL], ids=lambda s: f"{len(s)}x{s[0]}")
def test_clouds_are_found_beside_known_ones(sizes, n_labels):
    rows, owners = clouds(sizes)
    known = range(0, len(sizes), 2)
    given_rows, truth = split(rows, owners, known, min(n_labels, min(sizes) // 2))
    found = discover(*given_rows)
    is_old = torch.isin(truth, torch.tensor(list(known)))
    if n_labels > 1:
        assert float((found.category[~is_old] >= found.n_known).float().mean()) > 0.99
        assert len(sizes) // 2 <= found.n_novel <= 1.6 * (len(sizes) // 2)
    as_known = is_old & (found.category < found.n_known)
    assert found.known_ids[found.category[as_known]].tolist() == truth[as_known].tolist()


@pytest.mark.parametrize("n_labels", [3, 20])
def test_told_the_number_clouds_are_found_exactly(n_labels):
    rows, owners = clouds([40] * 12)
    given_rows, truth = split(rows, owners, range(6), n_labels)
    found = discover(*given_rows, n_novel=6)
    assert same_partition(found.category, truth)
    assert found.known_ids[found.category[truth < 6]].tolist() == truth[truth < 6].tolist()
    assert truth[found.typical].tolist() == [int(truth[found.category == c][0]) for c in range(6, 12)]


@pytest.mark.parametrize("n_novel", [0, 1, 2, 3, 5, 10])
def test_as_many_are_new_as_asked_for(n_novel):
    rows, owners = clouds([40] * 5)
    given_rows, _ = split(rows, owners, [0], 10)
    found = discover(*given_rows, n_novel=n_novel)
    assert found.n_novel == n_novel
    assert found.category.max() < found.n_known + found.n_novel


def test_where_rows_do_not_allow_the_number_told_there_are_fewer():
    rows, owners = clouds([40] * 5)
    given_rows, _ = split(rows, owners, [0], 10)
    assert discover(*given_rows, n_novel=60).n_novel == 60  # the smallest size gives way to the number asked for
    assert discover(*given_rows, n_novel=10_000).n_novel == len(given_rows[0])


@pytest.mark.parametrize("n_labels", [0, 10])
def test_granularity_never_lowers_the_number(n_labels):
    rows, owners = clouds([30] * 10, spread=0.15)
    given_rows, _ = split(rows, owners, range(5), n_labels)
    counts = [discover(*given_rows, granularity=g).n_novel for g in (-20.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


@pytest.mark.parametrize(("n_labels", "most"), [(20, 0), (10, 1), (3, 2)])
def test_where_all_are_known_hardly_any_category_is_opened(n_labels, most):
    for n_clouds in (5, 8, 20):
        rows, owners = clouds([40] * n_clouds)
        given_rows, truth = split(rows, owners, range(n_clouds), n_labels)
        found = discover(*given_rows)
        assert found.n_novel <= most
        assert float((found.category == truth).float().mean()) > (0.99 if most == 0 else 0.8)


@given(seed=st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_order_names_scale_and_rotation_change_nothing(seed):
    raw, owners = raw_clouds([25] * 6, seed=seed)
    turn = torch.linalg.qr(torch.randn(32, 32, generator=gen(seed), dtype=torch.float64))[0]
    shuffle = torch.randperm(126, generator=gen(seed))
    names = torch.tensor([70, 4, 12])

    def found_in(raw_rows, *, n_novel, order=None, named=False):
        rows = fit_projection(raw_rows, n_components=32)(raw_rows)
        (unlabeled, labeled, categories), truth = split(rows, owners, range(3), 8)
        order = torch.arange(126) if order is None else order
        found = discover(unlabeled[order], labeled, names[categories] if named else categories, n_novel=n_novel)
        category = torch.empty_like(found.category)
        category[order] = found.category
        return found, category, truth

    for n_novel in (3, None):
        _, plain, truth = found_in(raw, n_novel=n_novel)
        _, turned, _ = found_in(5 * raw @ turn + 3, n_novel=n_novel)
        _, shuffled, _ = found_in(raw, n_novel=n_novel, order=shuffle)
        renamed, by_name, _ = found_in(raw, n_novel=n_novel, named=True)
        for changed in (turned, shuffled, by_name):
            if n_novel:
                assert same_partition(changed, truth)
            else:  # rounding may decide whether one cloud is split
                assert share_together(changed, plain) > 0.9
        assert renamed.known_ids.tolist() == [4, 12, 70]
        as_known = (truth < 3) & (by_name < 3)
        assert renamed.known_ids[by_name[as_known]].tolist() == names[truth[as_known]].tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_other_precisions_find_the_same(dtype):
    rows, owners = clouds([30] * 8)
    given_rows, _ = split(rows, owners, range(4), 10)
    unlabeled, labeled, categories = given_rows
    found = discover(unlabeled.to(dtype), labeled.to(dtype), categories)
    assert same_partition(found.category, discover(*given_rows).category)


def test_a_few_copies_change_nothing():
    rows, owners = clouds([30] * 6)
    copied = torch.cat([rows, rows[[3, 40, 100]]])
    found = discover(copied, *nothing(rows))
    assert same_partition(found.category, torch.cat([owners, owners[[3, 40, 100]]]))
    assert found.category[-3:].tolist() == found.category[[3, 40, 100]].tolist()


def test_few_rows_and_equal_rows():
    rows, _ = clouds([10] * 3)
    assert discover(rows[:0], *nothing(rows)).n_novel == 0
    alone = discover(rows[:1], *nothing(rows))
    assert alone.n_novel == 0 and alone.category.tolist() == [-1]
    assert discover(rows[:2], *nothing(rows)).category.tolist() == [0, 0]
    assert discover(torch.ones(50, 8), *nothing(torch.ones(0, 8))).category.tolist() == [0] * 50
    one = torch.zeros(5, dtype=torch.int64)
    assert discover(torch.ones(50, 8), torch.ones(5, 8), one).category.tolist() == [0] * 50
    assert discover(rows[1:2], rows[:1], one[:1]).category.tolist() == [0]
    assert len(discover(rows[:0], rows[:4], torch.tensor([1, 1, 5, 5])).means) == 2


def test_more_dimensions_than_rows():
    rows, owners = raw_clouds([8] * 4, width=100, spread=0.02)
    found = discover(rows.float(), *nothing(rows.float()), n_novel=4)
    assert same_partition(found.category, owners)


def test_known_categories_without_unlabeled_rows_stay_empty():
    rows, owners = clouds([40] * 6)
    found = discover(rows[80:], rows[:80], owners[:80], n_novel=4)
    assert same_partition(found.category, owners[80:])
    assert found.n_known == 2
    assert found.category.min() == 2


def test_above_max_nodes_the_partition_is_nearly_the_same(monkeypatch):
    rows, owners = clouds([60] * 15)
    given_rows, _ = split(rows, owners, range(7), 20)
    below = discover(*given_rows, n_novel=8).category
    monkeypatch.setattr(pulling, "MAX_NODES", 500)
    above = discover(*given_rows, n_novel=8).category
    assert share_together(above, below) > 0.98


def test_statistics_find_what_rows_find():
    rows, owners = clouds([60] * 10)
    given_rows, truth = split(rows, owners, range(5), 20)
    unlabeled, labeled, categories = given_rows
    known = scatter_statistics(labeled, categories, n_categories=5)
    by_rows, by_statistics = discover(*given_rows, n_novel=5), discover_from_statistics(unlabeled, known, n_novel=5)
    assert same_partition(by_rows.category, truth)
    assert same_partition(by_statistics.category, truth)
    assert by_statistics.category[truth < 5].tolist() == truth[truth < 5].tolist()
    without_height = discover_from_statistics(unlabeled, known)
    assert share_together(without_height.category, truth) > 0.95


def test_the_same_seed_gives_the_same():
    rows, owners = clouds([30] * 6, spread=0.2)
    given_rows, _ = split(rows, owners, range(3), 5)
    assert discover(*given_rows).category.tolist() == discover(*given_rows).category.tolist()


def test_labels_are_asked_in_a_space_they_have_not_shaped(monkeypatch):
    """Labels bring their own rows together: asked in the space they have shaped, they are off and unsure."""
    pixels, digits = load_digits(return_X_y=True)
    rows = fit_projection(torch.from_numpy(pixels).float(), n_components=64)(torch.from_numpy(pixels).float())
    (unlabeled, labeled, categories), _ = split(rows, torch.from_numpy(digits), range(5), 8)
    apart = discover(unlabeled, labeled, categories)
    monkeypatch.setattr(module, "MAX_APART", 0)
    together = discover(unlabeled, labeled, categories)
    assert torch.equal(together.whitening.matrix, apart.whitening.matrix)
    off = [abs(found.cut.from_labels - np.log(10)) for found in (apart, together)]
    assert off[0] < 0.1 < off[1]
    assert apart.cut.spread < 0.6 * together.cut.spread
    assert apart.cut.n_groups < 13


def test_two_labeled_categories_do_not_mislead_a_tree_that_sees_clear_groups():
    """Six labels of two digits ask for far finer groups than there are: the tree, which sees digits, decides."""
    pixels, digits = load_digits(return_X_y=True)
    rows = fit_projection(torch.from_numpy(pixels).float(), n_components=64)(torch.from_numpy(pixels).float())
    for chosen in ([0, 1, 2, 3, 6], [4, 5, 6, 7, 8], [0, 3, 4, 7, 9]):
        own = np.isin(digits, chosen)
        owners = torch.from_numpy(np.searchsorted(chosen, digits[own]))
        (unlabeled, labeled, categories), truth = split(rows[torch.from_numpy(own)], owners, range(2), 3)
        found = discover(unlabeled, labeled, categories)
        assert 3 <= found.n_novel <= 5
        assert share_together(found.category, truth) > 0.85
