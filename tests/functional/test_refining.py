import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from igcd.functional import refining as module
from igcd.functional.refining import follow_neighbors, nearest_mean, refine


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def alone(rows):
    """Neighbors of rows of which each has itself for company: nobody else is asked."""
    return torch.arange(len(rows))[:, None]


def test_nearest_mean_equals_slow_twin():
    rows, means = torch.randn(50, 3, generator=gen(1)), torch.randn(7, 3, generator=gen(2))
    expected = [min(range(7), key=lambda c, row=row: float((row - means[c]).square().sum())) for row in rows]
    assert nearest_mean(rows, means).tolist() == expected


def slow_vote(rows, neighbors, owners, means):
    """Row by row: the probabilities of its neighbors and twice its own, category by category."""
    probs = []
    for i, row in enumerate(rows):
        weights = [math.exp(-module.SHARPNESS * float((row - mean).square().sum()) / 2) for mean in means]
        kept = sorted(weights, reverse=True)[: module.N_VOTED]
        own = [weight / sum(weights) if weight in kept else 0.0 for weight in weights]
        probs.append([float(c == owners[i]) for c in range(len(means))] if i < len(owners) else own)
    around = [[i, i, *neighbors[i].tolist()] for i in range(len(rows))]
    votes = [[sum(probs[j][c] for j in each) for c in range(len(means))] for each in around]
    return [max(range(len(means)), key=each.__getitem__) for each in votes]


@given(seed=st.integers(0, 10_000), n_neighbors=st.integers(1, 4), n_labeled=st.integers(0, 10))
@settings(max_examples=25, deadline=None)
def test_follow_neighbors_equals_slow_twin(seed, n_neighbors, n_labeled):
    rows = normalize(torch.randn(40, 3, generator=gen(seed), dtype=torch.float64), dim=1)
    means = normalize(torch.randn(6, 3, generator=gen(seed + 1), dtype=torch.float64), dim=1) / 2
    neighbors = torch.randint(40, (40, n_neighbors), generator=gen(seed + 2))
    owners = torch.randint(6, (n_labeled,), generator=gen(seed + 3))
    found = follow_neighbors(rows, neighbors, owners, means)
    assert found.tolist() == slow_vote(rows, neighbors, owners, means)


def test_rows_are_asked_part_by_part(monkeypatch):
    rows, means = torch.randn(50, 3, generator=gen(1)), torch.randn(7, 3, generator=gen(2))
    neighbors, owners = torch.randint(50, (50, 4), generator=gen(3)), torch.randint(7, (9,), generator=gen(4))
    whole = follow_neighbors(rows, neighbors, owners, means)
    monkeypatch.setattr(module, "_ROWS_AT_A_TIME", 7)
    assert torch.equal(follow_neighbors(rows, neighbors, owners, means), whole)


def test_rows_go_to_the_nearest_mean_and_means_follow_them():
    """Two labeled rows at 0 and a new group around 10 that begins with a row at 1: it goes to the known category."""
    rows = torch.tensor([[0.0], [0.0], [1.0], [9.0], [10.0], [11.0]])
    means, category = refine(rows, alone(rows), torch.tensor([0, 0]), torch.tensor([1, 1, 1, 1]), n_known=1)
    assert category.tolist() == [0, 1, 1, 1]
    assert means[:, 0].tolist() == pytest.approx([1 / 3, 10.0])


def test_a_mean_follows_the_rows_around_its_own():
    """The row at 6 is nearer to the mean of the new ones, its neighbors are all known: it does not move that mean."""
    rows = torch.tensor([[0.0], [1.0], [2.0], [6.0], [9.0], [10.0], [11.0]])
    start, owners = torch.tensor([0, 1, 1, 1, 1]), torch.tensor([0, 0])
    neighbors = torch.tensor([[1, 2], [0, 2], [0, 1], [1, 2], [5, 6], [4, 6], [4, 5]])
    assert refine(rows, alone(rows), owners, start, n_known=1)[0][:, 0].tolist() == pytest.approx([1.0, 9.0])
    means, category = refine(rows, neighbors, owners, start, n_known=1)
    assert means[:, 0].tolist() == pytest.approx([2.25, 10.0])
    assert category.tolist() == [0, 0, 1, 1, 1]  # it is counted with the known ones, where it now is nearer


@pytest.mark.parametrize(("keeps_all", "n_new"), [(True, 3), (False, 2)])
def test_a_new_category_loses_all_of_its_rows_unless_the_number_is_given(keeps_all, n_new):
    """The mean of −10 and 10 is near neither of them: −9 and 9, which are groups of their own, are nearer."""
    rows = torch.tensor([[100.0], [-10.0], [10.0], [-9.0], [9.0]])
    start = torch.tensor([1, 1, 2, 3])
    means, category = refine(rows, alone(rows), torch.tensor([0]), start, n_known=1, keeps_all=keeps_all)
    assert len(means) == 1 + n_new and len(set(category.tolist())) == n_new
