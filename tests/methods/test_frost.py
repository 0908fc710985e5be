"""What is particular to FRoST; what it shares with others is in test_predecessor.py and test_simgcd.py."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from igcd.methods.frost import Frost
from igcd.methods.two_views import TwoViews
from igcd.training import Batch


class Before:
    """Stands in for the network of before."""

    def __init__(self, h):
        self.h = h


@pytest.fixture
def at_stage_1(make_method, stages):
    """A method before the training of stage 1: 4 old categories in head 1, 2 novel ones in both heads."""

    def make(**options):
        method = make_method(Frost, n_epochs=0, **options)
        (first, _), (second, _), *_ = stages("mi")
        method.learn(first)
        method.learn(second)
        return method

    return make


def views_of(method, h_1, h_2, targets=()):
    with torch.no_grad():
        cosines = tuple(method._model.head(h) for h in (h_1, h_2))
    return TwoViews((h_1, h_2), (h_1, h_2), cosines, torch.tensor(targets, dtype=torch.int64))


def some_h(method, n=5, seed=0):
    drawn = torch.randn(2, n, method._n_features, generator=torch.Generator().manual_seed(seed))
    return normalize(drawn, dim=2).unbind()


def test_both_heads_start_alike(at_stage_1):
    method = at_stage_1()
    assert len(method._model.head) == 6 and len(method._model.novel_head) == 2
    assert torch.equal(method._model.novel_head.prototypes, method._prototypes[4:])


def slow_discovery(method, views, ramp, pseudo_label_weight):
    """Pairs, consistency and self-training in plain loops."""
    first, second = (h[len(views.targets) :] for h in views.h)
    rows = normalize(method._model.novel_head.prototypes, dim=1)
    probs_1, probs_2 = ((h @ rows.T / 0.1).softmax(dim=1).tolist() for h in (first, second))
    ranked = views.cosines[0][len(views.targets) :, :4] if method._ranked == "known" else first
    top = [set(row.argsort(descending=True)[: method._n_ranked].tolist()) for row in ranked]
    n = len(first)
    pairs = consistency = self_training = 0.0
    for i in range(n):
        for j in range(n):
            same = sum(p * q for p, q in zip(probs_1[i], probs_2[j], strict=True))
            pairs -= math.log((same if top[i] == top[j] else 1 - same) + 1e-7) / n**2
        consistency += sum((p - q) ** 2 for p, q in zip(probs_1[i], probs_2[i], strict=True)) / (n * len(rows))
        by_head_1 = (views.cosines[0][len(views.targets) + i] / 0.1).softmax(dim=0).tolist()
        pseudo_label = 4 + max(range(len(rows)), key=lambda c: probs_1[i][c])
        self_training -= math.log(by_head_1[pseudo_label]) / n
    return pairs + ramp * 25 * consistency + pseudo_label_weight * ramp * self_training


@pytest.mark.parametrize("options", [{}, {"ranked": "feature", "n_ranked": 5}])
@pytest.mark.parametrize("targets", [(), (0, 3)])
def test_discovery_against_plain_loops(at_stage_1, targets, options):
    method = at_stage_1(pseudo_label_weight=0.3, **options)
    h_1, h_2 = some_h(method)
    h_1 = torch.cat([h_1[:4], h_1[3:4]])  # the last two have the same strongest features
    views = views_of(method, h_1, h_2, targets)
    value = method._discover(views, ramp=0.5).item()
    assert value == pytest.approx(slow_discovery(method, views, 0.5, 0.3), rel=1e-4)


def test_the_weights_of_the_objective(at_stage_1):
    """Distillation 10, replay 1, labels 1; the ramp is 1 in the last epoch."""
    method = at_stage_1()
    method._later_stages = method._first_stage.__class__(4)
    h_1, h_2 = some_h(method)
    views = views_of(method, h_1, h_2, targets=(2,))
    before = Before(normalize(torch.cat([h_1, h_2]).roll(1, dims=1), dim=1))
    nothing = np.empty(0, dtype=np.int64)
    value = method._loss(before, views, Batch(nothing, nothing, torch.Generator().manual_seed(3)), epoch=3)
    labeled = -(torch.cat([cosines[:1] for cosines in views.cosines]) / 0.1).log_softmax(dim=1)[:, 2].mean()
    apart = (torch.cat([h_1, h_2]) - before.h).norm(dim=1).mean()
    expected = method._discover(views, ramp=1.0) + labeled + 10 * apart
    expected = expected + method._replay(torch.Generator().manual_seed(3))
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)


def test_replay_without_spread_is_the_cross_entropy_of_the_means(at_stage_1):
    method = at_stage_1(n_drawn=3)
    method._statistics.of.variances.zero_()
    value = method._replay(torch.Generator().manual_seed(0))
    logits = normalize(method._statistics.of.means, dim=1) @ method._prototypes.T / 0.1
    own = logits[torch.arange(len(logits)), method._statistics.clusters]
    assert value.item() == pytest.approx((logits.logsumexp(dim=1) - own).mean().item(), rel=1e-4)


def test_replay_drives_new_prototypes_off_the_old_categories(at_stage_1):
    """The new prototypes start on top of two old categories, which they would take over; replay alone parts them."""
    method = at_stage_1()
    kept, prototypes = method._statistics, method._model.head.prototypes
    kept.remove([4, 5])
    kept.of.means.copy_(torch.eye(4, method._n_features))
    kept.of.variances.fill_(1e-4)
    prototypes.data.copy_(torch.eye(6, method._n_features))
    prototypes.data[4:] = normalize(torch.eye(6, method._n_features)[:2] + 0.01, dim=1)
    prototypes.data[:2] += 0.05  # a little off: both new ones are nearer
    taken_over = method._classify(kept.of.means)[0]
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        prototypes.grad = None
        method._replay(generator).backward()
        prototypes.data -= 0.1 * prototypes.grad
    assert taken_over.tolist() == [4, 5, 2, 3]
    assert method._classify(kept.of.means)[0].tolist() == [0, 1, 2, 3]


def test_no_novel_category_is_nothing_to_discover(make_method, stages):
    method = make_method(Frost, counts=(0, 0, 0))
    for stage, truth in stages("igcd-l"):
        method.learn(stage)
        assert torch.isfinite(method.predict(truth.test_images).probability).all()
    assert method.discoveries() == []
