import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.snn import predict_by_support, soft_nearest_neighbor, soft_nearest_neighbor_log_probs


def draw(n, s, c, *, seed=0, width=6, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    queries = normalize(torch.randn(n, width, generator=generator, dtype=torch.float64), dim=1)
    support = normalize(torch.randn(s, width, generator=generator, dtype=torch.float64), dim=1)
    rows = torch.cat([torch.arange(c), torch.randint(c, (s - c,), generator=generator)])
    return queries.to(dtype), support.to(dtype), rows


def slow_snn(queries, support, rows, c, tau):
    probs = []
    for query in queries:
        weights = [math.exp(float(query @ other) / tau) for other in support]
        by_category = [0.0] * c
        for weight, row in zip(weights, rows.tolist(), strict=True):
            by_category[row] += weight / sum(weights)
        probs.append(by_category)
    return torch.tensor(probs, dtype=torch.float64)


def test_three_points_that_can_be_drawn():
    support = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    probs = soft_nearest_neighbor(torch.tensor([[1.0, 0.0]]), support, torch.tensor([0, 1, 1]), n_categories=2, tau=1.0)
    e = math.e
    assert probs[0].tolist() == pytest.approx([e / (e + 1 + 1 / e), (1 + 1 / e) / (e + 1 + 1 / e)])


@pytest.mark.parametrize("tau", [0.02, 0.1, 1.0])
def test_equals_slow_twin(tau):
    queries, support, rows = draw(7, 15, 4)
    expected = slow_snn(queries, support, rows, 4, tau)
    torch.testing.assert_close(soft_nearest_neighbor(queries, support, rows, n_categories=4, tau=tau), expected)


@given(seed=st.integers(0, 10_000), tau=st.floats(1e-3, 10), c=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_rows_sum_to_one_and_the_order_of_support_does_not_matter(seed, tau, c):
    queries, support, rows = draw(5, 12, c, seed=seed, dtype=torch.float32)
    probs = soft_nearest_neighbor(queries, support, rows, n_categories=c, tau=tau)
    torch.testing.assert_close(probs.sum(dim=1), torch.ones(5))
    order = torch.randperm(12, generator=torch.Generator().manual_seed(seed))
    shuffled = soft_nearest_neighbor(queries, support[order], rows[order], n_categories=c, tau=tau)
    torch.testing.assert_close(shuffled, probs, rtol=1e-3, atol=1e-5)


def test_small_tau_is_finite_and_agrees_with_float64():
    queries, support, rows = draw(6, 20, 5)
    queries.requires_grad_()
    single = queries.detach().float().requires_grad_()
    exact = soft_nearest_neighbor_log_probs(queries, support, rows, n_categories=5, tau=1e-3)
    log_probs = soft_nearest_neighbor_log_probs(single, support.float(), rows, n_categories=5, tau=1e-3)
    assert log_probs.min().item() < -200  # a softmax in float32 would have said 0 here, and its logarithm −inf
    torch.testing.assert_close(log_probs.double(), exact, rtol=1e-4, atol=1e-2)
    log_probs.sum().backward()
    exact.sum().backward()
    torch.testing.assert_close(single.grad.double(), queries.grad, rtol=1e-3, atol=1e-1)


def test_gradient_is_that_of_the_formula():
    queries, support, rows = draw(3, 7, 3)
    queries.requires_grad_()
    support.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda q, s: soft_nearest_neighbor_log_probs(q, s, rows, n_categories=3, tau=0.3), (queries, support)
    )


def test_prediction_is_the_same_in_chunks():
    queries, support, rows = draw(23, 20, 5)
    probs = soft_nearest_neighbor(queries, support, rows, n_categories=5, tau=0.1)
    for max_bytes in (1, 2_000, 2**20):
        found, best = predict_by_support(queries, support, rows, n_categories=5, tau=0.1, max_bytes=max_bytes)
        assert found.tolist() == probs.argmax(dim=1).tolist()
        torch.testing.assert_close(best, probs.max(dim=1).values)


def test_a_support_image_is_its_own_category_at_small_tau():
    _, support, rows = draw(1, 20, 5)
    found, best = predict_by_support(support, support, rows, n_categories=5, tau=1e-3)
    assert found.tolist() == rows.tolist()
    assert (best > 0.999).all()


@pytest.mark.parametrize(("rows", "n_categories"), [([0, 2], 3), ([0, 1], 1)])
def test_a_category_without_support_is_an_error(rows, n_categories):
    with pytest.raises(IgcdError, match="needs a support image"):
        soft_nearest_neighbor(torch.eye(2), torch.eye(2), torch.tensor(rows), n_categories=n_categories, tau=0.1)
