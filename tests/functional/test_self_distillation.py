import math

import pytest
import torch

from igcd.functional.self_distillation import mean_entropy_gap, mutual_distillation


def softmax(row, tau):
    exps = [math.exp(value / tau) for value in row]
    return [value / sum(exps) for value in exps]


def cosines(n=5, c=4, seed=0):
    return torch.rand(n, c, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1


def test_each_view_is_the_truth_of_the_other():
    first, second = cosines(seed=0), cosines(seed=1)
    expected = 0.0
    for row_1, row_2 in zip(first.tolist(), second.tolist(), strict=True):
        for target, anchor in ((row_1, row_2), (row_2, row_1)):
            for q, p in zip(softmax(target, 0.05), softmax(anchor, 0.1), strict=True):
                expected -= q * math.log(p) / 10
    assert mutual_distillation(first, second, tau=0.1, target_tau=0.05).item() == pytest.approx(expected)


def test_swapping_the_views_changes_nothing():
    first, second = cosines(seed=0), cosines(seed=1)
    there = mutual_distillation(first, second, tau=0.1, target_tau=0.05)
    assert mutual_distillation(second, first, tau=0.1, target_tau=0.05).item() == pytest.approx(there.item())


def test_no_gradient_goes_to_a_target():
    """The gradient at an anchor is (p − q) / (2 n τ): that of the cross entropy with a constant q."""
    first, second = cosines(n=1, seed=0).requires_grad_(), cosines(n=1, seed=1)
    mutual_distillation(first, second, tau=0.1, target_tau=0.05).backward()
    p, q = softmax(first[0].tolist(), 0.1), softmax(second[0].tolist(), 0.05)
    assert first.grad[0].tolist() == pytest.approx([(a - b) / (2 * 0.1) for a, b in zip(p, q, strict=True)])


def test_the_gap_by_hand():
    """Mean prediction (3/4, 1/4): log 2 − H = log 2 + 3/4 log 3/4 + 1/4 log 1/4."""
    probs = torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.float64)
    expected = math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25)
    assert mean_entropy_gap(probs.log()).item() == pytest.approx(expected)


def test_the_gap_is_never_negative_and_zero_where_the_mean_is_even():
    for seed in range(5):
        assert mean_entropy_gap((cosines(seed=seed) / 0.1).log_softmax(dim=1)) >= 0
    turned = torch.stack([cosines(n=1)[0].roll(step) for step in range(4)])
    assert mean_entropy_gap((turned / 0.1).log_softmax(dim=1)).item() == pytest.approx(0, abs=1e-12)


def test_both_views_have_a_gradient_in_the_gap():
    logits = (cosines() / 0.1).requires_grad_()
    mean_entropy_gap(logits.log_softmax(dim=1)).backward()
    assert (logits.grad.abs().sum(dim=1) > 0).all()


def test_no_images_no_loss():
    nothing = torch.empty(0, 3, requires_grad=True)
    assert mutual_distillation(nothing, nothing, tau=0.1, target_tau=0.05).item() == 0
    assert mean_entropy_gap(nothing).item() == 0
