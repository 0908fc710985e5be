import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from igcd.errors import IgcdError
from igcd.functional import whitening as module
from igcd.functional.gaussian import scatter_statistics
from igcd.functional.growing_scatter import no_statistics
from igcd.functional.whitening import fit_whitening, fit_whitening_of_rows, neighbor_covariance


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def clouds(n_clouds, n_each, *, seed, width=6, scales=None):
    """Rows (n, d) around directions that are far apart, float64, and the cloud of each."""
    owners = torch.arange(n_clouds).repeat_interleave(n_each)
    centers = 10 * torch.linalg.qr(torch.randn(width, width, generator=gen(seed), dtype=torch.float64))[0][:n_clouds]
    noise = torch.randn(len(owners), width, generator=gen(seed + 1), dtype=torch.float64)
    return centers[owners] + noise * (torch.ones(width) if scales is None else scales), owners


def slow_neighbor_covariance(features, k):
    """Half of the mean outer product of differences, pair by pair; neighbors are those with the largest cosine."""
    total, n_pairs = torch.zeros(features.shape[1], features.shape[1], dtype=torch.float64), 0
    for i, row in enumerate(features):
        cosines = [(-float(row @ other / (row.norm() * other.norm())), j) for j, other in enumerate(features) if j != i]
        for _, j in sorted(cosines)[:k]:
            total += torch.outer(features[j] - row, features[j] - row)
            n_pairs += 1
    return total / (2 * n_pairs)


@pytest.mark.parametrize("n", [2, 3, 40])
def test_neighbor_covariance_equals_slow_twin(n):
    features = torch.randn(n, 5, generator=gen(n), dtype=torch.float64)
    expected = slow_neighbor_covariance(features, min(3, n - 1))
    torch.testing.assert_close(neighbor_covariance(features, generator=gen()), expected)


def test_a_sample_of_rows_gives_about_the_same(monkeypatch):
    features, _ = clouds(4, 200, seed=0)
    of_all = neighbor_covariance(features, generator=gen())
    monkeypatch.setattr(module, "SAMPLE", 200)
    sampled = neighbor_covariance(features, generator=gen())
    assert float((sampled - of_all).norm() / of_all.norm()) < 0.2


@pytest.mark.parametrize("n_copies", [2, 4, 30])
def test_copies_of_a_row_are_not_its_own_neighbor_twice(n_copies):
    features = torch.randn(6, 4, generator=gen(), dtype=torch.float64).repeat(n_copies, 1)
    covariance = neighbor_covariance(features, generator=gen())
    if n_copies > 3:  # all neighbors are copies: nothing is known about the spread
        assert covariance is None
    else:
        assert covariance.isfinite().all()


@pytest.mark.parametrize("width", [3, 7])
def test_without_a_neighbor_every_direction_counts_alike(width):
    for n in (0, 1, 5):
        matrix = fit_whitening_of_rows(torch.ones(n, width), torch.arange(0), generator=gen()).matrix
        torch.testing.assert_close(matrix, matrix[0, 0] * torch.eye(width))
        assert neighbor_covariance(torch.ones(n, width), generator=gen()) is None


@pytest.mark.parametrize("n_labeled", [0, 4, 12])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fewer_rows_than_dimensions_are_whitened_in_their_subspace_as_in_the_whole(n_labeled, dtype):
    generator = gen(3)
    rows = torch.randn(20, 50, generator=generator, dtype=torch.float64).to(dtype)
    later = torch.randn(6, 50, generator=generator, dtype=torch.float64).to(dtype)
    owners = torch.arange(n_labeled) % 3
    known = scatter_statistics(rows[:n_labeled], owners, n_categories=3) if n_labeled else no_statistics(50)
    in_whole = fit_whitening(rows, known, generator=gen())
    in_subspace = fit_whitening_of_rows(rows, owners, generator=gen())
    assert in_subspace.matrix.dtype == dtype
    both = [whitening(torch.cat([rows, later])).double() for whitening in (in_whole, in_subspace)]
    torch.testing.assert_close(both[0] @ both[0].T, both[1] @ both[1].T, rtol=0, atol=1e-6)


def test_labels_alone_make_categories_round():
    scales = torch.tensor([3.0, 1.0, 0.3, 1.0, 1.0, 0.1], dtype=torch.float64)
    features, owners = clouds(3, 3000, seed=1, scales=scales)
    whitening = fit_whitening(features, scatter_statistics(features, owners, n_categories=3), generator=gen())
    spread = ((features - features[owners == 0].mean(0)) @ whitening.matrix)[owners == 0].T.cov()
    white, raw = torch.linalg.eigvalsh(spread), torch.linalg.eigvalsh(features[owners == 0].T.cov())
    assert raw[-1] / raw[2] > 8 > 2 > white[-1] / white[2]  # the shrinkage leaves the weakest directions weak


@pytest.mark.parametrize("width", [6, 40])
def test_round_clouds_are_left_as_they_are(width):
    """Neighbors of few rows show a spread that is not round, but all of that is noise."""
    features, _ = clouds(4, 40, seed=3, width=width)
    shown = torch.linalg.eigvalsh(neighbor_covariance(features, generator=gen()))
    assert shown[-1] > 1.5 * shown[0]
    stretched = torch.linalg.svdvals(fit_whitening(features, no_statistics(width), generator=gen()).matrix)
    assert stretched[0] < 1.3 * stretched[-1]


def test_what_neighbors_show_counts_where_it_is_not_noise():
    scales = torch.tensor([3.0, 1.0, 0.3, 1.0, 1.0, 0.1], dtype=torch.float64)
    features, _ = clouds(4, 400, seed=3, scales=scales)
    stretched = torch.linalg.svdvals(fit_whitening(features, no_statistics(6), generator=gen()).matrix)
    assert stretched[0] > 2 * stretched[-1]


@given(seed=st.integers(0, 10_000), factor=st.floats(0.01, 100))
@settings(max_examples=25, deadline=None)
def test_scale_and_rotation_of_features_change_no_cosine(seed, factor):
    features, owners = clouds(3, 15, seed=seed)
    turn = torch.linalg.qr(torch.randn(6, 6, generator=gen(seed), dtype=torch.float64))[0]
    changed = factor * features @ turn
    for n_labeled in (0, 45):
        both = []
        for rows in (features, changed):
            known = scatter_statistics(rows, owners, n_categories=3) if n_labeled else no_statistics(6)
            white = fit_whitening(rows, known, generator=gen())(rows)
            both.append(white @ white.T)
        torch.testing.assert_close(both[0], both[1], rtol=0, atol=1e-6)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_rows_have_length_one_and_the_order_of_rows_does_not_matter(seed):
    features, _ = clouds(3, 15, seed=seed)
    order = torch.randperm(45, generator=gen(seed))
    white = fit_whitening(features, no_statistics(6), generator=gen())(features)
    shuffled = fit_whitening(features[order], no_statistics(6), generator=gen())(features[order])
    torch.testing.assert_close(shuffled, white[order])
    torch.testing.assert_close(white.norm(dim=1), torch.ones(45, dtype=torch.float64))


def test_labeled_rows_that_are_copies_say_nothing_about_spread():
    features, owners = clouds(3, 15, seed=2)
    first = features[[0, 15, 30]][owners]
    known = scatter_statistics(first, owners, n_categories=3)
    assert fit_whitening(first, known, generator=gen()).matrix.isfinite().all()
    by_neighbors = fit_whitening(features, no_statistics(6), generator=gen())(features)
    torch.testing.assert_close(fit_whitening(features, known, generator=gen())(features), by_neighbors)


def test_more_dimensions_than_rows():
    features = torch.randn(8, 50, generator=gen())
    assert fit_whitening(features, no_statistics(50), generator=gen())(features).isfinite().all()


def test_features_that_are_not_finite_are_refused():
    features = torch.randn(8, 5, generator=gen())
    features[3, 2] = float("nan")
    with pytest.raises(IgcdError, match="position 3"):
        fit_whitening(features, no_statistics(5), generator=gen())


def test_later_rows_lie_as_far_from_their_mean_as_the_few_that_made_the_space():
    generator = torch.Generator().manual_seed(0)
    owners = torch.arange(6).repeat_interleave(20)
    centers = torch.randn(6, 200, generator=generator)
    rows = [centers[owners] + torch.randn(120, 200, generator=generator) for _ in range(2)]
    known = scatter_statistics(rows[0], owners, n_categories=6)
    white = [fit_whitening(rows[0], known, generator=generator)(half) for half in rows]
    means = torch.stack([white[0][owners == category].mean(dim=0) for category in range(6)])
    seen, later = ((half - means[owners]).norm(dim=1).mean() for half in white)
    assert later < 1.4 * seen  # 2.4 times as far with a round covariance of weight 0.1


def slow_noise_share(covariance, target, n_free):
    """The same as `noise_share`, entry by entry."""
    width = len(covariance)
    noise = sum(
        float(covariance[i, i] * covariance[j, j] + covariance[i, j] ** 2) for i in range(width) for j in range(width)
    )
    apart = sum(float((covariance[i, j] - target[i, j]) ** 2) for i in range(width) for j in range(width))
    return min(1.0, noise / n_free / apart)


def rounder(covariance, share):
    """Pulled toward a round one with the same trace, by a share that is at least `SHRINKAGE`."""
    share, width = max(module.SHRINKAGE, share), len(covariance)
    return (1 - share) * covariance + share * covariance.trace() / width * torch.eye(width, dtype=covariance.dtype)


@pytest.mark.parametrize("n_labeled", [0, 1, 3, 30])
def test_the_covariance_is_that_of_labels_pulled_toward_neighbors(n_labeled):
    """Neighbors are scaled to the spread that labels measure, and weigh as much as the labels' covariance is noise."""
    scales = torch.tensor([3.0, 1.0, 0.3, 1.0, 1.0, 0.1], dtype=torch.float64)
    features, owners = clouds(3, 60, seed=1, scales=scales)
    known = no_statistics(6)
    if n_labeled:
        rows = torch.cat([(owners == cloud).nonzero()[:n_labeled, 0] for cloud in range(3)])
        known = scatter_statistics(features[rows], owners[rows], n_categories=3)
    freedom = 3 * max(n_labeled - 1, 0)
    expected = slow_neighbor_covariance(features, 3)
    expected = rounder(expected, slow_noise_share(expected, rounder(expected, 1.0), len(features) * 3 // 2))
    if freedom:
        labeled = known.scatter / freedom
        neighbors = expected * labeled.trace() / expected.trace()
        weight = slow_noise_share(labeled, neighbors, freedom)
        assert (weight == 1) == (n_labeled == 3)
        expected = (1 - weight) * rounder(labeled, 0.0) + weight * neighbors
    matrix = fit_whitening(features, known, generator=gen()).matrix
    torch.testing.assert_close(matrix.T @ expected @ matrix, torch.eye(6, dtype=torch.float64))


def test_few_labels_of_round_categories_do_not_bend_the_space():
    """Their covariance is noise, and the neighbors' is round: the noise may not make some directions count more."""
    generator = torch.Generator().manual_seed(0)
    owners = torch.arange(40).repeat_interleave(50)
    features = torch.randn(40, 30, generator=generator)[owners] * 0.6 + torch.randn(2000, 30, generator=generator)
    rows = torch.cat([(owners == category).nonzero()[:3, 0] for category in range(40)])
    known = scatter_statistics(features[rows], owners[rows], n_categories=40)
    spreads = torch.linalg.svdvals(fit_whitening(features, known, generator=gen()).matrix)
    assert spreads[0] / spreads[-1] < 1.4  # 2.0 where labels weigh by their number alone
