import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from igcd.errors import IgcdError
from igcd.training import Optimization, Share, draw_batches, numbered_generator, parameter_groups, train


@pytest.fixture
def fabric():
    return Fabric(accelerator="cpu", devices=1)


class InMemory:
    """A checkpoint that remembers every epoch."""

    def __init__(self, n_done=0, state=None):
        self.saved = {n_done: state or {}}

    def load(self):
        last = max(self.saved)
        return last, self.saved[last]

    def save(self, n_epochs_done, state):
        self.saved[n_epochs_done] = state


def fit(fabric, checkpoint=None, n_epochs=4, seed=0):
    torch.manual_seed(0)
    module = nn.Linear(3, 1)
    inputs = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))

    def loss(model, batch, _epoch):
        noise = torch.randn(len(batch.labeled_rows), 3, generator=batch.generator)
        return (model(inputs[batch.labeled_rows] + 0.1 * noise) - 1).square().mean()

    reports = []
    train(
        module,
        loss,
        n_labeled=40,
        n_unlabeled=0,
        optimization=Optimization(n_epochs, learning_rate=0.05, batch_size=16),
        fabric=fabric,
        seed=seed,
        after_epoch=reports.append,
        checkpoint=checkpoint,
    )
    return module, reports


def test_the_loss_falls_and_is_reported(fabric):
    _, reports = fit(fabric, n_epochs=10)
    assert [report.epoch for report in reports] == list(range(10))
    assert reports[-1].loss < reports[0].loss / 2


def test_the_seed_decides(fabric):
    first, second, other = fit(fabric)[0], fit(fabric)[0], fit(fabric, seed=1)[0]
    assert torch.equal(first.weight, second.weight)
    assert not torch.equal(first.weight, other.weight)


@pytest.mark.parametrize("n_before", [1, 2, 3, 4])
def test_a_resumed_training_ends_where_the_whole_one_ends(fabric, n_before):
    checkpoint = InMemory()
    whole, _ = fit(fabric, checkpoint)
    resumed, reports = fit(fabric, InMemory(n_before, checkpoint.saved[n_before]))
    assert torch.equal(whole.weight, resumed.weight)
    assert len(reports) == 4 - n_before


def test_a_loss_that_is_no_number_stops_with_a_sentence(fabric):
    with pytest.raises(IgcdError, match="epoch 1, step 1; lower the learning rate"):
        train(
            nn.Linear(1, 1),
            lambda model, *_: model(torch.zeros(1, 1)).sum() * torch.nan,
            n_labeled=4,
            n_unlabeled=0,
            optimization=Optimization(1),
            fabric=fabric,
            seed=0,
        )


def test_batches_are_half_labeled_and_half_unlabeled():
    batches = list(draw_batches(30, 200, 64, seed=0, epoch=0))
    assert len(batches) == 4  # as many images as there are
    assert all(len(batch.labeled_rows) == len(batch.unlabeled_rows) == 32 for batch in batches)
    labeled = np.concatenate([batch.labeled_rows for batch in batches])
    assert set(labeled.tolist()) == set(range(30))  # the smaller set again and again
    unlabeled = np.concatenate([batch.unlabeled_rows for batch in batches])
    assert len(set(unlabeled.tolist())) == 128


@pytest.mark.parametrize(("n_labeled", "n_unlabeled"), [(50, 0), (0, 50)])
def test_one_set_alone_fills_the_batch(n_labeled, n_unlabeled):
    batches = list(draw_batches(n_labeled, n_unlabeled, 20, seed=0, epoch=3))
    rows = np.concatenate([np.concatenate([batch.labeled_rows, batch.unlabeled_rows]) for batch in batches])
    assert len(rows) == 60 and set(rows.tolist()) == set(range(50))


def test_epochs_draw_differently_and_no_images_give_no_batches():
    first, second = (next(draw_batches(50, 0, 20, seed=0, epoch=epoch)) for epoch in (0, 1))
    assert first.labeled_rows.tolist() != second.labeled_rows.tolist()
    assert list(draw_batches(0, 0, 20, seed=0, epoch=0)) == []


def test_the_learning_rate_drops_in_steps(fabric):
    """Ten epochs of one step with the gradient 1: each step's length is the learning rate."""
    module = nn.Linear(1, 1, bias=False)
    weights = [module.weight.item()]
    train(
        module,
        lambda model, *_: model(torch.ones(1, 1)).sum(),
        n_labeled=1,
        n_unlabeled=0,
        optimization=Optimization(10, learning_rate=1.0, momentum=0.0, weight_decay=0.0, schedule="steps"),
        fabric=fabric,
        seed=0,
        after_epoch=lambda _report: weights.append(module.weight.item()),
    )
    assert -np.diff(weights) == pytest.approx([1.0] * 7 + [0.1] * 2 + [0.01], abs=1e-5)


def test_the_cosine_falls_to_zero_and_never_rises():
    optimization = Optimization(4, learning_rate=0.2)
    rates = [optimization.learning_rate_at(share / 10) for share in range(11)]
    assert rates[0] == 0.2 and rates[-1] == pytest.approx(0) and rates == sorted(rates, reverse=True)


def test_every_seed_of_63_bits_draws():
    drawn = {
        (seed, number): torch.rand(1, generator=numbered_generator(seed, number)).item()
        for seed in (0, 1, 2**43 + 5, 2**63 - 1)
        for number in (0, 1)
    }
    assert len(set(drawn.values())) == 8
    assert drawn[1, 1] == torch.rand(1, generator=torch.Generator().manual_seed(2**20 + 1)).item()  # as ever


def test_matrices_and_kernels_decay_and_biases_and_norms_do_not(fabric):
    """With the gradient 0 a step moves a parameter by its decay alone."""
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3, 2))
    module[3].bias.requires_grad_(False)
    before = {name: parameter.clone() for name, parameter in module.named_parameters()}
    train(
        module,
        lambda model, *_: sum(0.0 * parameter.sum() for parameter in model.parameters()),
        n_labeled=1,
        n_unlabeled=0,
        optimization=Optimization(1, learning_rate=0.5, momentum=0.0, weight_decay=0.1),
        fabric=fabric,
        seed=0,
    )
    for name, parameter in module.named_parameters():
        factor = 0.95 if name in ("0.weight", "3.weight") else 1.0
        torch.testing.assert_close(parameter.detach(), factor * before[name].detach())


def test_every_trained_parameter_is_in_one_group():
    module = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    module[0].bias.requires_grad_(False)
    grouped = [id(parameter) for group in parameter_groups(module, weight_decay=0.1) for parameter in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in module.parameters() if p.requires_grad)
    assert len(parameter_groups(nn.Linear(2, 2, bias=False), weight_decay=0.1)) == 1


@pytest.mark.parametrize("sizes", [[5, 3, 5, 3], [4], [1, 2], [7, 0, 1]])
@pytest.mark.parametrize("n_processes", [1, 2, 3])
def test_the_shares_of_all_processes_are_the_batch(sizes, n_processes):
    """Each computes every n-th row of every group; gathered, they are in the order of the batch."""
    groups = torch.split(torch.arange(float(sum(sizes)))[:, None].requires_grad_(), sizes)
    n_most = max(sum(len(group[own::n_processes]) for group in groups) for own in range(n_processes))

    def computed(own):
        return torch.cat([group[Share(own, n_processes).part] for group in groups])

    def padded(own):
        return nn.functional.pad(computed(own), (0, 0, 0, n_most - len(computed(own))))

    def gather(_rows):
        return torch.stack(
            [nn.functional.pad(computed(own), (0, 0, 0, n_most - len(computed(own)))) for own in range(n_processes)]
        )

    for own in range(n_processes):
        whole = Share(own, n_processes, gather).whole(computed(own), sizes)
        assert whole.ravel().tolist() == list(range(sum(sizes)))
        assert whole.requires_grad
