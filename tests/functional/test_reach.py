import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional import reach as reach_module
from igcd.functional.reach import WINDOW, Reach, growth, measure_reach


def clouds(n_clouds, n_each, *, width=32, spread=0.4, seed=0):
    """Clouds of rows around random directions, rows of length 1."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(n_clouds, width, generator=generator).repeat_interleave(n_each, dim=0)
    return normalize(centers + spread * torch.randn(len(centers), width, generator=generator), dim=1)


def slow_distance(rows, rank):
    """Root of the mean squared distance to the r-th nearest other row, by a loop over rows."""
    squares = []
    for row in range(len(rows)):
        others = [float((rows[row] - rows[other]).square().sum()) for other in range(len(rows)) if other != row]
        squares.append(sorted(others)[rank - 1])
    return float(np.mean(squares)) ** 0.5


def slow_growth(reach, n_groups):
    """The slope around one number of groups from the textbook formula."""
    size = max(reach.n_rows / n_groups, 8)  # smaller ones count as so large
    points = [
        (np.log(rank), distance)
        for rank, distance in zip(reach.ranks, reach.distances, strict=True)
        if size / WINDOW <= rank <= size * WINDOW
    ]
    if len(points) < 2:
        return 0.0
    x, y = np.array(points).T
    return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())


def test_distances_equal_slow_twin():
    rows = clouds(3, 8)
    reach = measure_reach(rows)
    assert reach.ranks.tolist() == list(range(1, 24))
    assert reach.distances == pytest.approx([slow_distance(rows, rank) for rank in reach.ranks], abs=1e-5)


def test_growth_equals_slow_twin():
    reach = measure_reach(clouds(5, 20)[:97])  # no size falls on the edge of a window
    tried = np.arange(2, 30)
    twin = np.array([slow_growth(reach, n) for n in tried])
    np.testing.assert_allclose(growth(reach, tried), twin / twin.max(), atol=1e-9)


@pytest.mark.parametrize(("n_clouds", "n_each"), [(2, 150), (5, 60), (10, 30), (40, 12), (8, 200)])
def test_distances_grow_fastest_at_the_size_of_the_clouds(n_clouds, n_each):
    """Whether clouds are few and large or many and small."""
    tried = np.arange(2, 80)
    found = tried[growth(measure_reach(clouds(n_clouds, n_each)), tried).argmax()]
    assert found == pytest.approx(n_clouds, rel=0.15)


def test_half_of_the_rows_show_the_same_number():
    rows, tried = clouds(12, 80), np.arange(2, 60)
    numbers = [tried[growth(measure_reach(some), tried).argmax()] for some in (rows, rows[::2], rows[::4])]
    assert numbers == pytest.approx([12] * 3, rel=0.15)


def test_the_order_of_rows_does_not_matter():
    rows = clouds(4, 10)
    shuffled = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))]
    np.testing.assert_allclose(measure_reach(shuffled).distances, measure_reach(rows).distances, atol=1e-6)


def test_a_sample_of_rows_sees_the_same(monkeypatch):
    rows, tried = clouds(10, 40), np.arange(2, 60)
    monkeypatch.setattr(reach_module, "MAX_DISTANCES", 100 * len(rows))
    sampled = measure_reach(rows, seed=3)
    assert tried[growth(sampled, tried).argmax()] == pytest.approx(10, rel=0.15)
    assert (sampled.distances == measure_reach(rows, seed=3).distances).all()


@pytest.mark.parametrize("at_a_time", [1, 500, 2**22])
def test_parts_of_any_size_give_the_same(monkeypatch, at_a_time):
    rows = clouds(5, 12)
    whole = measure_reach(rows).distances
    monkeypatch.setattr(reach_module, "_DISTANCES_AT_A_TIME", at_a_time)
    np.testing.assert_allclose(measure_reach(rows).distances, whole, atol=1e-6)


def test_half_precision_is_enough():
    rows = clouds(5, 12)
    np.testing.assert_allclose(measure_reach(rows.half()).distances, measure_reach(rows).distances, atol=2e-3)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_row_or_two(n):
    reach = measure_reach(clouds(1, 2)[:n])
    assert reach.n_rows == n
    assert growth(reach, np.array([2])).tolist() == [0.0]


def test_copies_of_one_row_do_not_grow():
    reach = measure_reach(clouds(1, 1).repeat(20, 1))
    assert reach.distances.max() < 1e-3
    assert growth(Reach(20, reach.ranks, np.zeros(len(reach.ranks))), np.arange(2, 8)).tolist() == [0.0] * 6
