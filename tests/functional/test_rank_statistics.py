import math

import pytest
import torch

from igcd.errors import IgcdError
from igcd.functional.rank_statistics import (
    pair_cross_entropy,
    ramp_up,
    same_ranks,
    same_top_dimensions,
    view_consistency,
)


def log_probs(n, c, seed):
    return torch.randn(n, c, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).log_softmax(1)


def slow_same(features, k):
    def top(row):
        return set(sorted(range(len(row)), key=lambda d: (-row[d], d))[:k])

    sets = [top(row) for row in features.tolist()]
    return [[a == b for b in sets] for a in sets]


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_pairs_equal_slow_twin(k):
    features = torch.randn(40, 6, generator=torch.Generator().manual_seed(k))
    features[:10] = features[:10].clamp(min=0)  # ties at 0, as after a ReLU
    same = same_top_dimensions(features, k=k)
    assert same.tolist() == slow_same(features, k)
    assert (same == same.T).all()
    assert same.diagonal().all()


def test_order_among_the_largest_does_not_matter_and_scale_neither():
    a, b = torch.tensor([9.0, 8.0, 7.0, 0.0]), torch.tensor([7.0, 9.0, 8.0, 6.0])
    assert same_top_dimensions(torch.stack([a, b, 100 * a]), k=3).all()
    assert not same_top_dimensions(torch.stack([a, b]), k=1).all()
    with pytest.raises(IgcdError, match="got 5 for 4"):
        same_top_dimensions(torch.stack([a, b]))


def slow_pair_loss(p, q, same):
    losses = []
    for i in range(len(p)):
        for j in range(len(q)):
            both = sum(float(a * b) for a, b in zip(p[i], q[j], strict=True))
            losses.append(-math.log((both if same[i][j] else 1 - both) + 1e-7))
    return sum(losses) / len(losses)


def test_pair_loss_equals_slow_twin():
    first, second = log_probs(7, 4, 0), log_probs(7, 4, 1)
    same = same_top_dimensions(torch.randn(7, 3, generator=torch.Generator().manual_seed(2)), k=1)
    expected = slow_pair_loss(first.exp(), second.exp(), same.tolist())
    assert float(pair_cross_entropy(first, second, same)) == pytest.approx(expected)


def test_pair_loss_is_least_where_predictions_say_what_pairs_say():
    sure = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64).clamp(min=1e-30).log()
    right, wrong = torch.eye(2, dtype=torch.bool), ~torch.eye(2, dtype=torch.bool)
    assert float(pair_cross_entropy(sure, sure, right)) == pytest.approx(0.0, abs=1e-6)
    assert float(pair_cross_entropy(sure, sure, wrong)) == pytest.approx(-math.log(1e-7))


def test_consistency_is_the_mean_over_images_and_categories():
    first, second = log_probs(5, 3, 4), log_probs(5, 3, 5)
    expected = sum(
        float(a - b) ** 2 for p, q in zip(first.exp(), second.exp(), strict=True) for a, b in zip(p, q, strict=True)
    )
    assert float(view_consistency(first, second)) == pytest.approx(expected / 15)
    assert float(view_consistency(first, first)) == 0.0


def test_an_empty_batch_has_no_loss_but_a_gradient():
    empty = torch.empty(0, 3, requires_grad=True)
    for loss in (pair_cross_entropy(empty, empty, torch.empty(0, 0, dtype=torch.bool)), view_consistency(empty, empty)):
        assert float(loss.detach()) == 0.0
        loss.backward()


def test_the_ramp_rises_from_exp_minus_five_to_one():
    values = [ramp_up(t / 10) for t in range(11)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(math.exp(-5))
    assert ramp_up(-1) == values[0]
    assert ramp_up(7) == values[-1] == 1.0


@pytest.mark.parametrize("k", [1, 2, 3])
def test_ranks_of_known_categories_equal_their_slow_twin(k):
    generator = torch.Generator().manual_seed(k)
    features, cosines = torch.randn(12, 40, generator=generator), torch.randn(12, 4, generator=generator)
    assert same_ranks(features, cosines, ranked="known", k=k).tolist() == slow_same(cosines, k)
    assert same_ranks(features, cosines, ranked="feature", k=k).tolist() == slow_same(features, k)


def test_where_all_known_categories_would_be_named_dimensions_are_ranked():
    """The four most similar of four categories are the same for every image, and say nothing."""
    generator = torch.Generator().manual_seed(0)
    features, cosines = torch.randn(6, 9, generator=generator), torch.randn(6, 4, generator=generator)
    assert torch.equal(same_ranks(features, cosines, ranked="known", k=4), same_top_dimensions(features, k=4))
    assert torch.equal(same_ranks(features[:, :2], cosines[:, :0], ranked="known", k=4), torch.ones(6, 6) > 0)
