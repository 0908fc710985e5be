"""Information between features and clusters: loops over rows, and what maximising it does to blobs."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional import information
from igcd.functional.information import (
    choose_conditional_weight,
    entropy_of_mean,
    information_loss,
    maximise_information,
    mean_entropy,
)


def slow_entropy(probs):
    return -sum(p * math.log(p) for p in probs if p > 0)


def test_the_loss_is_the_sum_of_its_terms():
    logits = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    categories = torch.tensor([0, 3, 3, -1, -1, -1, -1])
    probs = logits.softmax(dim=1).tolist()
    conditional = sum(slow_entropy(row) for row in probs[3:]) / 4
    marginal = slow_entropy([sum(row[c] for row in probs) / 7 for c in range(4)])
    labeled = -(math.log(probs[0][0]) + math.log(probs[1][3]) + math.log(probs[2][3])) / 3
    loss = float(information_loss(logits, categories, conditional_weight=0.3))
    assert loss == pytest.approx(0.3 * conditional - marginal + labeled, abs=1e-6)


def test_without_labels_it_is_minus_the_mutual_information():
    """Sure and even predictions have the most there can be, log c; even ones for every row have none."""
    hidden = torch.full((4,), -1)
    sure = 50 * torch.eye(2).repeat(2, 1)
    assert float(information_loss(sure, hidden, conditional_weight=1.0)) == pytest.approx(-math.log(2), abs=1e-5)
    assert float(information_loss(torch.zeros(4, 2), hidden, conditional_weight=1.0)) == pytest.approx(0, abs=1e-6)
    log_probs = torch.randn(9, 3, generator=torch.Generator().manual_seed(1)).log_softmax(dim=1)
    assert float(entropy_of_mean(log_probs)) >= float(mean_entropy(log_probs)) >= 0


def blobs(n_each, seed=0):
    rows = torch.arange(3).repeat_interleave(n_each)
    noise = 0.2 * torch.randn(len(rows), 8, generator=torch.Generator().manual_seed(seed))
    return normalize(torch.eye(8)[rows] + noise, dim=1), rows


def test_maximising_lowers_the_loss_and_finds_the_unlabeled_blob():
    x, truth = blobs(30)
    categories = torch.where((truth < 2) & (torch.arange(90) % 2 == 0), truth, -1)
    start = torch.eye(8)[:3] + 0.3 * torch.randn(3, 8, generator=torch.Generator().manual_seed(2))
    moved = maximise_information(x, categories, start, conditional_weight=0.5, n_steps=200)
    before, after = (
        float(information_loss(25 * x @ centers.T, categories, conditional_weight=0.5)) for centers in (start, moved)
    )
    assert after < before
    assert ((x @ moved.T).argmax(dim=1) == truth).float().mean() > 0.95


def test_the_weight_that_fits_the_labels_best_is_taken():
    x, truth = blobs(20)
    categories = torch.where(torch.arange(60) % 3 == 0, truth, -1)
    assert choose_conditional_weight(x, categories, torch.eye(8)[:3], n_steps=3, weights=(0.2, 0.9)) == 0.2  # a tie
    assert choose_conditional_weight(x, torch.full((60,), -1), torch.eye(8)[:3], n_steps=3) == 1.0


def test_the_numbers_are_pims_unless_others_are_given(monkeypatch):
    x, truth = blobs(10)
    start = torch.eye(8)[:3]
    numbers = {"scale": 25.0, "learning_rate": 1e-3, "weight_decay": 1e-2}
    by_default = maximise_information(x, truth, start, conditional_weight=0.5, n_steps=5)
    assert torch.equal(by_default, maximise_information(x, truth, start, conditional_weight=0.5, n_steps=5, **numbers))
    other = maximise_information(x, truth, start, conditional_weight=0.5, n_steps=5, **numbers | {"scale": 26.0})
    assert not torch.equal(by_default, other)
    scales = []
    monkeypatch.setattr(
        information, "maximise_information", lambda *_args, scale, **_options: scales.append(scale) or start
    )
    choose_conditional_weight(x, truth, start, n_steps=5)
    assert scales == [25.0] * len(information.CONDITIONAL_WEIGHTS)
