"""Targets of equal size against a plain loop."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from igcd.errors import IgcdError
from igcd.functional.sinkhorn import sinkhorn, soft_cross_entropy

SCORES = st.integers(1, 6).flatmap(
    lambda width: st.lists(st.lists(st.floats(-1, 1), min_size=width, max_size=width), min_size=1, max_size=8)
)


def slow(scores, epsilon, n_rounds):
    shares = [[math.exp(score / epsilon) for score in row] for row in scores]
    for _ in range(n_rounds):
        for column in range(len(shares[0])):
            total = sum(row[column] for row in shares)
            for row in shares:
                row[column] /= total
        for row in shares:
            total = sum(row)
            row[:] = [share / total for share in row]
    return torch.tensor(shares, dtype=torch.float64)


@given(SCORES, st.integers(1, 5))
def test_as_the_slow_twin(scores, n_rounds):
    found = sinkhorn(torch.tensor(scores, dtype=torch.float64), epsilon=0.1, n_rounds=n_rounds)
    assert torch.allclose(found, slow(scores, 0.1, n_rounds), atol=1e-9)
    assert torch.allclose(found.sum(dim=1), torch.ones(len(scores), dtype=torch.float64))


def test_columns_become_equally_large_and_a_constant_changes_nothing():
    scores = torch.rand(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = sinkhorn(scores, epsilon=0.2, n_rounds=200)
    assert torch.allclose(found.sum(dim=0), torch.full((4,), 3.0, dtype=torch.float64), atol=1e-6)
    assert torch.allclose(sinkhorn(scores + 5, epsilon=0.2), sinkhorn(scores, epsilon=0.2))


def test_small_epsilons_do_not_overflow_and_no_row_is_no_trouble():
    assert sinkhorn(torch.tensor([[1.0, -1.0], [-1.0, 1.0]]), epsilon=1e-4).tolist() == [[1, 0], [0, 1]]
    assert sinkhorn(torch.empty(0, 3)).shape == (0, 3)
    assert soft_cross_entropy(torch.empty(0, 3), torch.empty(0, 3)) == 0


def test_soft_cross_entropy_by_hand():
    logits, targets = torch.tensor([[0.0, math.log(3)]]), torch.tensor([[0.5, 0.5]])
    assert float(soft_cross_entropy(logits, targets)) == pytest.approx(-0.5 * math.log(0.25) - 0.5 * math.log(0.75))


def test_impossible_options_get_a_sentence():
    with pytest.raises(IgcdError, match="epsilon above 0"):
        sinkhorn(torch.ones(2, 2), epsilon=0)
