"""The upper bound on a few digits."""

import math

import numpy as np
import pytest
import torch

from igcd.functional.losses import self_supervised_contrastive, supervised_contrastive
from igcd.methods.supervised import Supervised
from igcd.methods.two_views import TwoViews
from igcd.streams.revealed import RevealedStream
from igcd.training import Batch
from igcd.types import Stage


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
def test_knows_every_category_so_far(make_method, digit_stream, protocol):
    method = make_method(Supervised)
    before: dict[int, int] = {}
    for stage, truth in RevealedStream(digit_stream(protocol)):
        method.learn(stage)
        named = method.clusters_of_categories()
        assert before.items() <= named.items() and len(named) == len(stage.category_names)
        assert set(truth.test.categories) == set(stage.category_names)
        assert set(method.predict(truth.test_images).cluster.tolist()) <= set(named.values())
        assert method.discoveries() == [] and method.kept().images == 0
        before = named


def test_it_recognises_later_categories_and_forgets_none(make_method, digit_stream):
    """Well above chance, which is 1/8, in every group of a stream that shows some categories no more."""
    method = make_method(Supervised, n_epochs=1)
    *_, (stage, truth) = RevealedStream(digit_stream("igcd-u"))
    method.learn(stage)
    names = {cluster: stage.category_names[label] for label, cluster in method.clusters_of_categories().items()}
    predicted = [names[cluster] for cluster in method.predict(truth.test_images).cluster.tolist()]
    right = np.array([name == true for name, true in zip(predicted, truth.test.categories, strict=True)])
    groups = np.array(truth.test.groups)
    for group in set(truth.test.groups):
        assert right[groups == group].mean() > 0.25


def test_unlabeled_images_have_no_part(make_method, digit_stream):
    _, (stage, truth), *_ = RevealedStream(digit_stream("mi"))
    without = Stage(1, stage.labeled, stage.labels, stage.unlabeled.take([]), stage.category_names)
    methods = make_method(Supervised), make_method(Supervised)
    methods[0].learn(stage)
    methods[1].learn(without)
    first, second = (method.predict(truth.test_images).probability for method in methods)
    assert torch.equal(first, second)


def test_a_stage_depends_on_its_images_and_not_on_earlier_stages(make_method, digit_stream):
    """It starts again: with and without an earlier stage the same."""
    (first, _), (second, truth), *_ = RevealedStream(digit_stream("mi"))
    through, at_once = make_method(Supervised), make_method(Supervised)
    through.learn(first)
    through.learn(second)
    at_once.learn(second)
    assert torch.equal(through.predict(truth.test_images).cluster, at_once.predict(truth.test_images).cluster)


def test_the_state_can_be_taken_up_again(make_method, digit_stream):
    method, again = make_method(Supervised), make_method(Supervised, seed=5)
    (stage, truth), *_ = RevealedStream(digit_stream("mi"))
    method.learn(stage)
    again.load_state_dict(*method.state_dict())
    assert torch.equal(method.predict(truth.test_images).probability, again.predict(truth.test_images).probability)


def test_the_loss_by_hand(make_method):
    """λ SupCon + (1 − λ) SelfCon + cross entropy of both views."""
    generator = torch.Generator().manual_seed(0)
    z = torch.nn.functional.normalize(torch.randn(2, 3, 4, generator=generator, dtype=torch.float64), dim=2).unbind()
    cosines = tuple(torch.rand(2, 3, 2, generator=generator, dtype=torch.float64).unbind())
    targets = torch.tensor([0, 1, 0])
    views = TwoViews(h=z, z=z, cosines=cosines, targets=targets)
    nothing = np.empty(0, dtype=np.int64)
    value = make_method(Supervised)._loss(views, Batch(nothing, nothing, generator), 0)
    cross_entropy = 0.0
    for view in cosines:
        for row, target in zip(view.tolist(), targets.tolist(), strict=True):
            exps = [math.exp(cosine / 0.1) for cosine in row]
            cross_entropy -= math.log(exps[target] / sum(exps)) / 6
    expected = 0.35 * supervised_contrastive(*z, targets, tau=0.07) + 0.65 * self_supervised_contrastive(*z, tau=1.0)
    assert value.item() == pytest.approx(expected.item() + cross_entropy)
