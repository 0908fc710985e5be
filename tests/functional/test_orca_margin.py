import math

import pytest
import torch

from igcd.functional.orca_margin import (
    adaptive_margin,
    another_of_its_category,
    margin_cross_entropy,
    nearest_other,
    pair_attraction,
    uncertainty,
)


def gen(seed):
    return torch.Generator().manual_seed(seed)


def test_uncertainty_is_the_mean_of_what_is_missing_to_one():
    log_probs = torch.randn(9, 4, generator=gen(0), dtype=torch.float64).log_softmax(1)
    expected = sum(1 - max(row) for row in log_probs.exp().tolist()) / 9
    assert float(uncertainty(log_probs)) == pytest.approx(expected)
    assert float(uncertainty(torch.full((3, 5), 0.2).log())) == pytest.approx(0.8)
    assert float(uncertainty(log_probs[:0])) == 0.0
    assert adaptive_margin(0.8) == 0.5
    assert adaptive_margin(0.3) == 0.3


def slow_margin_loss(logits, categories, margin):
    losses = []
    for row, category in zip(logits.tolist(), categories.tolist(), strict=True):
        raised = [value + (10 * margin if c == category else 0.0) for c, value in enumerate(row)]
        losses.append(math.log(sum(math.exp(v) for v in raised)) - raised[category])
    return sum(losses) / len(losses)


@pytest.mark.parametrize("margin", [0.0, 0.2, 0.5])
def test_margin_loss_equals_slow_twin(margin):
    logits = 10 * torch.rand(8, 5, generator=gen(1), dtype=torch.float64)
    categories = torch.arange(8) % 5
    loss = margin_cross_entropy(logits, categories, margin=margin)
    assert float(loss) == pytest.approx(slow_margin_loss(logits, categories, margin))


def test_a_larger_margin_means_less_loss_and_less_gradient():
    def loss_and_gradient(margin):
        logits = torch.zeros(1, 4, requires_grad=True)
        loss = margin_cross_entropy(logits, torch.tensor([2]), margin=margin)
        loss.backward()
        return float(loss.detach()), float(logits.grad.abs().sum())

    values = [loss_and_gradient(margin) for margin in (0.0, 0.1, 0.3, 0.5)]
    assert values == sorted(values, reverse=True)
    # By hand: e^5 against three times e^0.
    assert values[-1][0] == pytest.approx(math.log(1 + 3 * math.exp(-5)), rel=1e-5)


def slow_nearest(features, i):
    def cosine(j):
        return float(features[i] @ features[j] / features[i].norm() / features[j].norm())

    return max((j for j in range(len(features)) if j != i), key=cosine)


@pytest.mark.parametrize("seed", range(5))
def test_partners_equal_their_definition(seed):
    labels = [4, 9, 4, 4, 7, 9, 9, 9]
    partners = another_of_its_category(torch.tensor(labels), generator=gen(seed)).tolist()
    for i, label in enumerate(labels):
        others = [j for j, other in enumerate(labels) if other == label and j != i]
        assert partners[i] in (others or [i])
    assert partners[4] == 4  # the only one of its category
    features = torch.randn(20, 3, generator=gen(seed))
    assert nearest_other(features).tolist() == [slow_nearest(features, i) for i in range(20)]


def test_every_other_image_of_a_category_is_as_likely():
    labels, n_draws = torch.tensor([1, 0, 1, 1, 0, 1]), 3000
    generator, seen = gen(0), torch.zeros(6)
    for _ in range(n_draws):
        seen[another_of_its_category(labels, generator=generator)[2]] += 1
    assert seen[[1, 2, 4]].sum() == 0
    for j in (0, 3, 5):
        assert float(seen[j]) / n_draws == pytest.approx(1 / 3, abs=4 * (2 / 9 / n_draws) ** 0.5)


def test_nobody_is_a_partner_where_there_is_one_image_or_none():
    assert nearest_other(torch.eye(2)).tolist() == [1, 0]
    assert nearest_other(torch.ones(1, 2)).tolist() == [0] and nearest_other(torch.empty(0, 2)).tolist() == []
    assert another_of_its_category(torch.empty(0, dtype=torch.int64), generator=gen(0)).tolist() == []


def test_attraction_equals_slow_twin():
    first = torch.randn(6, 4, generator=gen(2), dtype=torch.float64).log_softmax(1)
    second = torch.randn(6, 4, generator=gen(3), dtype=torch.float64).log_softmax(1)
    partners = torch.tensor([3, 0, 0, 5, 1, 2])
    expected = [
        -math.log(sum(float(a * b) for a, b in zip(first[i].exp(), second[j].exp(), strict=True)))
        for i, j in enumerate(partners.tolist())
    ]
    assert float(pair_attraction(first, second[partners])) == pytest.approx(sum(expected) / 6)


def test_attraction_is_zero_for_sure_agreement_and_finite_for_sure_disagreement():
    agree = torch.tensor([[0.0, -900.0]])
    disagree = torch.tensor([[-900.0, 0.0]])
    assert float(pair_attraction(agree, agree)) == 0.0
    # exp(-900) is 0 in float32; in log space the loss still says how wrong it is: two ways of weight e^-900 each
    assert float(pair_attraction(agree, disagree)) == pytest.approx(900 - math.log(2))


def test_an_empty_batch_has_no_loss_but_a_gradient():
    empty, nobody = torch.empty(0, 3, requires_grad=True), torch.empty(0, dtype=torch.int64)
    for loss in (margin_cross_entropy(empty, nobody, margin=0.5), pair_attraction(empty, empty)):
        assert float(loss.detach()) == 0.0
        loss.backward()
