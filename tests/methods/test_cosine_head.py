import math

import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from igcd.methods.cosine_head import CosineHead, HeadedModel, random_prototypes
from igcd.methods.projector import Projector, TailAndProjector
from igcd.training import Optimization, train


def head_of(*prototypes):
    head = CosineHead(2)
    head.grow(torch.tensor(prototypes, dtype=torch.float32))
    return head


def test_cosines_by_hand():
    head = head_of([3.0, 0.0], [1.0, 1.0])
    h = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    half = math.sqrt(0.5)
    assert torch.allclose(head(h), torch.tensor([[1.0, half], [0.0, half]]))


def test_only_the_direction_of_a_prototype_counts():
    head = head_of([3.0, 4.0], [1.0, -1.0])
    h = torch.tensor([[0.6, 0.8]])
    before = head(h)
    with torch.no_grad():
        head.prototypes.mul_(torch.tensor([[5.0], [0.1]]))
    assert torch.allclose(head(h), before)


def test_growing_adds_rows_behind_and_changes_none():
    head = head_of([1.0, 0.0])
    head.close([0])
    head.grow(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    assert len(head) == 3
    assert head.prototypes.tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    assert head.is_open.tolist() == [False, True, True]
    head.grow(torch.empty(0, 2))
    assert len(head) == 3


def test_a_closed_cluster_is_for_no_image():
    head = head_of([1.0, 0.0], [0.0, 1.0])
    head.close([0])
    probs = (head(torch.tensor([[1.0, 0.0]])) / 0.1).softmax(dim=1)
    assert probs.tolist() == [[0.0, 1.0]]
    head.close([])
    assert head.is_open.tolist() == [False, True]


def test_a_closed_cluster_is_not_trained():
    head = head_of([1.0, 0.0], [0.0, 1.0], [1.0, 1.0])
    head.close([1])
    log_probs = head(torch.tensor([[0.6, 0.8]])).log_softmax(dim=1)
    log_probs[0, 0].backward()
    assert torch.isfinite(head.prototypes.grad).all()
    assert head.prototypes.grad[1].tolist() == [0.0, 0.0]


def test_a_fresh_head_takes_the_size_of_what_is_stored():
    head, again = head_of([1.0, 0.0], [0.0, 1.0], [1.0, 1.0]), CosineHead(2)
    head.close([2])
    again.load_state_dict(head.state_dict())
    h = torch.tensor([[0.6, 0.8]])
    assert torch.equal(again(h), head(h))
    again.grow(torch.tensor([[1.0, 0.0]]))
    assert len(again) == 4


def test_loading_the_same_size_keeps_the_parameter_an_optimizer_holds():
    head = head_of([1.0, 0.0], [0.0, 1.0])
    held = head.prototypes
    head.load_state_dict({"prototypes": torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "is_open": torch.tensor([True, False])})
    assert head.prototypes is held
    assert held.tolist() == [[0.0, 1.0], [1.0, 0.0]] and head.is_open.tolist() == [True, False]


def test_a_resumed_training_trains_the_head(in_memory):
    """Four epochs at once, or two and two: the same prototypes, and not those of after two."""

    def fit(checkpoint):
        head = head_of([1.0, 0.0], [0.0, 1.0])
        h = torch.tensor([[0.6, 0.8], [0.8, 0.6]])

        def loss(model, batch, _epoch):
            return -model(h[batch.labeled_rows]).log_softmax(dim=1).diagonal().sum()

        optimization = Optimization(4, learning_rate=0.5, batch_size=2)
        fabric = Fabric(accelerator="cpu", devices=1)
        train(
            head,
            loss,
            n_labeled=2,
            n_unlabeled=0,
            optimization=optimization,
            fabric=fabric,
            seed=0,
            checkpoint=checkpoint,
        )
        return head.prototypes

    checkpoint = in_memory()
    whole = fit(checkpoint)
    resumed = fit(in_memory(2, checkpoint.saved[2]))
    assert torch.equal(whole, resumed)
    assert not torch.equal(whole, checkpoint.saved[2]["module.prototypes"])


@pytest.mark.parametrize("n", [0, 5])
def test_random_prototypes_have_length_one_and_depend_on_the_generator(n):
    drawn, again, other = (random_prototypes(n, 7, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert drawn.shape == (n, 7)
    assert torch.allclose(drawn.norm(dim=1), torch.ones(n))
    assert torch.equal(drawn, again)
    assert n == 0 or not torch.equal(drawn, other)


def test_the_model_compares_what_the_tail_gives():
    generator = torch.Generator().manual_seed(0)
    model = HeadedModel(
        nn.Identity(), Projector(2, generator=generator, n_hidden=4, n_projected=3), head_of([0.0, 1.0])
    )
    h, z, cosines = model(torch.tensor([[3.0, 4.0]]))
    assert h.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
    assert z.shape == (1, 3) and z.norm().item() == pytest.approx(1)
    assert cosines.tolist() == [[pytest.approx(0.8)]]


@pytest.mark.parametrize("with_head", [True, False])
def test_the_projector_sees_the_feature_before_it_is_normalised(with_head):
    """A projector whose layers have biases tells (3, 4) from (0.6, 0.8), which are one and the same h."""
    projector = Projector(2, generator=torch.Generator().manual_seed(0), n_hidden=4, n_projected=3)
    nn.init.ones_(projector.layers[0].bias)
    model = (
        HeadedModel(nn.Identity(), projector, head_of([0.0, 1.0]))
        if with_head
        else TailAndProjector(nn.Identity(), projector)
    )
    long, short = torch.tensor([[3.0, 4.0]]), torch.tensor([[0.6, 0.8]])
    assert torch.allclose(model(long)[0], model(short)[0])
    torch.testing.assert_close(model(long)[1], projector(long))
    assert not torch.allclose(model(long)[1], model(short)[1])
