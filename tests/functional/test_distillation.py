import pytest
import torch

from igcd.functional.distillation import feature_distillation


def test_equals_slow_twin():
    generator = torch.Generator().manual_seed(0)
    new, old = torch.randn(2, 6, 4, generator=generator, dtype=torch.float64)
    lengths = [float((a / a.norm() - b / b.norm()).norm()) for a, b in zip(new, old, strict=True)]
    assert float(feature_distillation(new, old)) == pytest.approx(sum(lengths) / 6)
    squared = feature_distillation(new, old, distance="squared")
    assert float(squared) == pytest.approx(sum(length**2 for length in lengths) / 6)


@pytest.mark.parametrize("distance", ["length", "squared"])
def test_the_first_step_of_a_copied_model_has_a_gradient_of_zero(distance):
    old = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    new = (5 * old).requires_grad_()  # the length of features does not matter
    loss = feature_distillation(new, new, distance=distance)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert new.grad.tolist() == torch.zeros(3, 4).tolist()


def test_opposite_features_are_two_apart_and_only_the_new_ones_learn():
    new, old = torch.tensor([[3.0, 0.0]], requires_grad=True), torch.tensor([[-1.0, 0.0]], requires_grad=True)
    loss = feature_distillation(new, old)
    assert float(loss.detach()) == pytest.approx(2.0)
    loss.backward()
    assert old.grad is None
    empty = torch.empty(0, 2, requires_grad=True)
    feature_distillation(empty, empty).backward()
    assert empty.grad.shape == (0, 2)
