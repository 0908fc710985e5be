"""Heads that stand still on a frozen feature; what holds for every newer method is in test_newer_methods."""

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from igcd.functional.sinkhorn import sinkhorn
from igcd.methods.msc_incd import MscIncd


def test_the_encoder_and_earlier_heads_stand_still(make_method, stages):
    method = make_method(MscIncd, n_epochs=2)
    tail = [parameter.clone() for parameter in method._model.tail.parameters()]
    (first, _), (second, _), *_ = stages("mi")
    method.learn(first)
    before = method._prototypes.clone()
    method.learn(second)
    assert torch.allclose(method._prototypes[: len(before)], before, atol=1e-6)
    assert all(torch.equal(*pair) for pair in zip(tail, method._model.tail.parameters(), strict=True))


def test_new_prototypes_are_trained(make_method, stages):
    def novel_prototypes(n_epochs):
        method = make_method(MscIncd, n_epochs=n_epochs)
        for stage, _ in stages("igcd-u")[:2]:
            method.learn(stage)
        return method._prototypes[4:]

    assert not torch.allclose(novel_prototypes(0), novel_prototypes(2))


def test_self_training_is_of_images_that_the_new_head_has(make_method):
    method = make_method(MscIncd)
    method._n_frozen = 2
    first = torch.tensor([[0.9, 0.0, 0.1, 0.2], [0.1, 0.0, 0.8, 0.2], [0.0, 0.3, 0.2, 0.7], [0.1, 0.1, 0.6, 0.5]])
    second = first + 0.05 * torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    expected = 0.0
    for own, other in ((first, second), (second, first)):
        targets = torch.cat([torch.zeros(3, 2), sinkhorn(other[1:, 2:], epsilon=0.05, n_rounds=3)], dim=1)
        expected += float(cross_entropy(own[1:] / 0.1, targets)) / 2
    assert float(method._self_training(first, second)) == pytest.approx(expected, abs=1e-6)
    assert float(method._self_training(first[:1], second[:1])) == 0


def test_replayed_features_move_new_prototypes_alone(make_method):
    method = make_method(MscIncd)
    generator = torch.Generator().manual_seed(0)
    method._model.head.grow(torch.randn(3, method._n_features, generator=generator))
    method._n_frozen = 2
    h = normalize(torch.randn(8, method._n_features, generator=generator), dim=1)
    method._statistics.put(h, torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]))
    method._replay(16, generator).backward()
    gradient = method._model.head.prototypes.grad
    assert (gradient[:2] == 0).all() and (gradient[2] != 0).any()
