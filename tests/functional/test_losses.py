import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from igcd.functional.losses import (
    classifier_loss,
    distillation_loss,
    labeled_loss,
    mean_prediction_entropy,
    representation_loss,
    self_supervised_contrastive,
    supervised_contrastive,
    target_temperature,
    total_loss,
    unlabeled_loss,
)


def views(n, *, seed=0, width=5, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    z = normalize(torch.randn(2, n, width, generator=generator, dtype=torch.float64), dim=2)
    return z[0].to(dtype), z[1].to(dtype)


def predictions(n, c, *, seed=0, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(2, n, c, generator=generator, dtype=torch.float64)).log_softmax(dim=2).unbind()


def slow_contrastive(anchors, others, is_positive, is_compared, tau):
    """Anchor by anchor, positive by positive: the sums of the appendix."""
    total = 0.0
    for i, anchor in enumerate(anchors):
        exps = [math.exp(float(anchor @ other) / tau) for other in others]
        denominator = sum(e for n, e in enumerate(exps) if is_compared(i, n))
        positives = [q for q in range(len(others)) if is_positive(i, q)]
        if positives and denominator:
            total += sum(-math.log(exps[q] / denominator) for q in positives) / len(positives)
    return total / len(anchors)


def slow_self_supervised(z1, z2, tau):
    n = len(z1)
    both = torch.cat([z1, z2])
    return slow_contrastive(both, both, lambda i, q: i != q and i % n == q % n, lambda i, m: m != i, tau)


def slow_supervised(z1, z2, categories, tau):
    c = categories.tolist()
    both, c = torch.cat([z1, z2]), c + c
    return slow_contrastive(both, both, lambda i, q: i != q and c[i] == c[q], lambda i, m: m != i, tau)


@pytest.mark.parametrize("n", [2, 3, 9])
def test_self_supervised_equals_double_loop(n):
    z1, z2 = views(n)
    loss = self_supervised_contrastive(z1, z2, tau=0.2)
    assert float(loss) == pytest.approx(slow_self_supervised(z1, z2, 0.2))


@pytest.mark.parametrize("categories", [[0, 0], [0, 1, 1, 0, 2, 1], [3, 3, 3, 3], [0, 1, 2, 3, 4]])
def test_supervised_equals_double_loop(categories):
    categories = torch.tensor(categories)
    z1, z2 = views(len(categories))
    loss = supervised_contrastive(z1, z2, categories, tau=0.2)
    assert float(loss) == pytest.approx(slow_supervised(z1, z2, categories, 0.2))


def test_self_supervised_is_supervised_with_every_image_its_own_category():
    z1, z2 = views(6)
    alone = supervised_contrastive(z1, z2, torch.arange(6), tau=0.1)
    torch.testing.assert_close(self_supervised_contrastive(z1, z2, tau=0.1), alone)


def test_two_views_alike_and_images_apart_have_almost_no_loss():
    z = torch.eye(4)
    good, bad = (self_supervised_contrastive(z, other) for other in (z, z.flip(0)))
    assert float(good) < 1e-3 < 10 < float(bad)


@given(seed=st.integers(0, 1000), n=st.integers(2, 8))
@settings(max_examples=15, deadline=None)
def test_contrastive_losses_do_not_know_the_order_nor_the_names(seed, n):
    generator = torch.Generator().manual_seed(seed)
    z1, z2 = views(n, seed=seed)
    categories = torch.randint(3, (n,), generator=generator)
    order, names = torch.randperm(n, generator=generator), torch.randperm(3, generator=generator)
    shuffled = supervised_contrastive(z1[order], z2[order], names[categories[order]])
    torch.testing.assert_close(shuffled, supervised_contrastive(z1, z2, categories))
    shuffled = self_supervised_contrastive(z1[order], z2[order])
    torch.testing.assert_close(shuffled, self_supervised_contrastive(z1, z2))


@pytest.mark.parametrize("tau", [1e-3, 0.07])
@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_contrastive_losses_and_gradients_are_finite_in_float32(n, tau):
    for z1, z2 in [views(n, dtype=torch.float32), (torch.ones(n, 4) / 2, torch.ones(n, 4) / 2)]:
        z1.requires_grad_()
        for loss in (
            self_supervised_contrastive(z1, z2, tau=tau),
            supervised_contrastive(z1, z2, torch.zeros(n, dtype=torch.int64), tau=tau),
            supervised_contrastive(z1, z2, torch.arange(n), tau=tau),
        ):
            (gradient,) = torch.autograd.grad(loss, z1)
            assert torch.isfinite(loss)
            assert torch.isfinite(gradient).all()


def test_float32_agrees_with_float64():
    z1, z2 = views(20)
    categories = torch.arange(20) % 7
    for tau in (0.01, 0.1):
        exact = supervised_contrastive(z1, z2, categories, tau=tau)
        single = supervised_contrastive(z1.float(), z2.float(), categories, tau=tau)
        torch.testing.assert_close(single.double(), exact, rtol=1e-5, atol=1e-4)


def test_labeled_loss_equals_loop():
    log_probs, _ = predictions(5, 3)
    categories = torch.tensor([0, 2, 1, 1, 0])
    expected = sum(-float(row[c]) for row, c in zip(log_probs, categories, strict=True)) / 5
    assert float(labeled_loss(log_probs, categories)) == pytest.approx(expected)


def test_unlabeled_loss_equals_loop():
    target, anchor = predictions(6, 4)
    p_target, p_anchor = target.exp().tolist(), anchor.exp().tolist()
    cross_entropy = sum(-p_target[i][c] * math.log(p_anchor[i][c]) for i in range(6) for c in range(4)) / 6
    mean = [sum(p_target[i][c] + p_anchor[i][c] for i in range(6)) / 12 for c in range(4)]
    entropy = -sum(p * math.log(p) for p in mean)
    assert float(distillation_loss(target, anchor)) == pytest.approx(cross_entropy)
    assert float(mean_prediction_entropy(target, anchor)) == pytest.approx(entropy)
    assert float(unlabeled_loss(target, anchor)) == pytest.approx(cross_entropy - 2.0 * entropy)
    assert float(unlabeled_loss(target, anchor, entropy_weight=0.5)) == pytest.approx(cross_entropy - 0.5 * entropy)


def test_gradient_of_the_unlabeled_loss_goes_to_the_anchor_only():
    target, anchor = (p.clone().requires_grad_() for p in predictions(6, 4))
    unlabeled_loss(target, anchor).backward()
    assert target.grad is None
    assert anchor.grad.abs().max() > 0


@given(seed=st.integers(0, 1000), n=st.integers(1, 8), c=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_bounds_of_the_unlabeled_terms(seed, n, c):
    target, anchor = predictions(n, c, seed=seed)
    assert -1e-9 <= float(mean_prediction_entropy(target, anchor)) <= math.log(c) + 1e-9
    own_entropy = -(target.exp() * target).sum(dim=1).mean()
    assert float(distillation_loss(target, anchor)) >= float(own_entropy) - 1e-9  # least where the views agree
    torch.testing.assert_close(distillation_loss(target, target), own_entropy)


def test_predictions_that_are_certain_give_finite_losses():
    certain = torch.tensor([[0.0, -2000.0], [-2000.0, 0.0]], requires_grad=True)
    loss = unlabeled_loss(certain, certain)
    assert loss.item() == pytest.approx(-2 * math.log(2))
    assert torch.isfinite(torch.autograd.grad(loss, certain)[0]).all()


def test_empty_batches_have_loss_and_gradient_zero():
    z = torch.empty(0, 5, requires_grad=True)
    nobody = torch.empty(0, dtype=torch.int64)
    for loss in (
        self_supervised_contrastive(z, z),
        supervised_contrastive(z, z, nobody),
        labeled_loss(z, nobody),
        unlabeled_loss(z, z),
    ):
        assert loss.item() == 0
        assert torch.autograd.grad(loss, z)[0].shape == (0, 5)


def test_sums_of_losses():
    a, b = torch.tensor(2.0), torch.tensor(4.0)
    assert float(representation_loss(a, b)) == pytest.approx(0.35 * 2 + 0.65 * 4)
    assert float(classifier_loss(a, b, labeled_weight=0.5)) == 3
    assert float(total_loss(a, b)) == 6


def test_target_temperature_falls_and_stays():
    temperatures = [target_temperature(epoch / 20, warmup_share=0.5) for epoch in range(20)]
    assert temperatures[0] == 0.07
    assert temperatures[10:] == [pytest.approx(0.04)] * 10
    assert temperatures == sorted(temperatures, reverse=True)
    assert target_temperature(0, warmup_share=0) == pytest.approx(0.04)


@pytest.mark.parametrize("n_epochs", [3, 6, 200])
def test_the_warm_up_ends_within_a_short_training_too(n_epochs):
    """It is a share of the epochs: the sharpest target is reached whatever their number."""
    assert target_temperature((n_epochs - 1) / n_epochs) == pytest.approx(0.04)
