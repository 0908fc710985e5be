import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from igcd.functional.map_equation import bits_per_step


def slow_bits(groups, neighbors):
    """The map equation as it is printed: entropy of exits, and of each group with its exit, weighted by use."""
    n, k = neighbors.shape
    weight = {}
    for row in range(n):
        for other in neighbors[row].tolist():
            for pair in ((row, other), (other, row)):
                weight[pair] = weight.get(pair, 0) + 1 / (2 * n * k)
    visit = [sum(w for (a, _), w in weight.items() if a == row) for row in range(n)]
    names = sorted(set(groups.tolist()))
    leave = {g: sum(w for (a, b), w in weight.items() if groups[a] == g and groups[b] != g) for g in names}
    leaving = sum(leave.values())

    def entropy(parts):
        total = sum(parts)
        return -sum(p / total * np.log2(p / total) for p in parts if p > 0) if total > 0 else 0.0

    bits = leaving * entropy(list(leave.values()))
    for g in names:
        parts = [leave[g], *(visit[row] for row in range(n) if groups[row] == g)]
        bits += sum(parts) * entropy(parts)
    return bits


def a_graph(seed, n=24, k=3):
    rng = np.random.default_rng(seed)
    return np.stack([rng.choice(np.delete(np.arange(n), row), k, replace=False) for row in range(n)])


@pytest.mark.parametrize("seed", range(8))
def test_equals_the_printed_equation(seed):
    groups = np.unique(np.random.default_rng(seed).integers(0, 5, 24), return_inverse=True)[1]
    assert bits_per_step(groups, a_graph(seed)) == pytest.approx(slow_bits(groups, a_graph(seed)))


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_names_of_groups_and_the_order_of_rows_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    groups, neighbors = np.unique(rng.integers(0, 5, 24), return_inverse=True)[1], a_graph(seed)
    bits = bits_per_step(groups, neighbors)
    assert bits_per_step(rng.permutation(groups.max() + 1)[groups], neighbors) == pytest.approx(bits)
    order = rng.permutation(24)
    place = np.argsort(order)
    assert bits_per_step(groups[order], place[neighbors[order]]) == pytest.approx(bits)


def test_regions_that_a_walk_stays_in_take_the_fewest_bits():
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(6), 20)
    neighbors = np.stack([rng.choice(np.flatnonzero(owners == owner), 4, replace=False) for owner in owners])
    neighbors[::10, 0] = rng.integers(0, 120, 12)  # a few ways out
    true = bits_per_step(owners, neighbors)
    assert true < bits_per_step(owners // 2, neighbors)
    assert true < bits_per_step(np.arange(120) // 10, neighbors)
    assert true < bits_per_step(np.zeros(120, dtype=np.int64), neighbors)
