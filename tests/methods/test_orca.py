"""ORCA on a few digits."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from igcd.methods import parametric
from igcd.methods.orca import Orca
from igcd.methods.two_views import TwoViews, two_views
from igcd.types import Stage


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
def test_every_protocol(make_method, stages, protocol):
    counts = (5,) if protocol == "static" else (0, 2, 2)
    method = make_method(Orca, counts=counts)
    before: dict[int, int] = {}
    for stage, truth in stages(protocol):
        method.learn(stage)
        assignment = method.predict(truth.test_images)
        found = {discovery.cluster for discovery in method.discoveries()}
        named = method.clusters_of_categories()
        assert set(assignment.cluster.tolist()) <= set(named.values()) | found
        assert ((assignment.probability > 0) & (assignment.probability <= 1 + 1e-6)).all()
        assert sum(discovery.stage == stage.index for discovery in method.discoveries()) == counts[stage.index]
        assert before.items() <= named.items() and 0 < method.kept().images <= 8 * (len(named) + len(found))
        before = named


def test_trains_in_steps_with_its_own_weight_decay(make_method):
    method = make_method(Orca)
    for optimization in (method._first_stage, method._later_stages):
        assert optimization.schedule == "steps" and optimization.weight_decay == 5e-4
        assert optimization.learning_rate == 0.05  # as given


def test_the_margin_is_the_mean_uncertainty_within_bounds(make_method, encoder, stages):
    [(stage, _)] = stages("static")
    unlabeled = encoder.plain_views(stage.unlabeled)
    method = make_method(Orca, counts=(5,), max_margin=1.0)
    method.learn(stage)
    expected = np.mean([1 - probability for probability in method.predict(stage.unlabeled).probability.tolist()])
    assert method._margin(method._h(unlabeled)) == pytest.approx(expected, abs=1e-5)
    bounded = make_method(Orca, counts=(5,), max_margin=0.01)
    bounded.load_state_dict(*method.state_dict())
    assert bounded._margin(bounded._h(unlabeled)) == 0.01
    assert method._margin(method._h(encoder.plain_views(stage.unlabeled.take([])))) == 0.0


def views_of(images, partners, targets):
    """A batch with these cosines of the images and of their partners."""
    cosines = tuple(torch.tensor(rows, dtype=torch.float64) for rows in (images, partners))
    h = torch.eye(len(images), dtype=torch.float64)
    return TwoViews((h, h), (h, h), cosines, torch.tensor(targets, dtype=torch.int64))


def softmax(row):
    exps = [math.exp(10 * value) for value in row]
    return [value / sum(exps) for value in exps]


def test_the_loss_by_hand(make_method):
    """Images 0 and 1 are labeled 0."""
    first = [[0.5, 0.1, 0.0], [0.3, 0.2, 0.1], [0.0, 0.2, 0.4], [0.1, 0.1, 0.3]]
    partners = [[0.5, 0.0, 0.0], [0.4, 0.2, 0.1], [0.0, 0.0, 0.5], [0.1, 0.3, 0.2]]
    value = make_method(Orca)._loss(views_of(first, partners, [0, 0]), margin=0.25)

    known = 0.0
    for row in first[:2]:
        raised = [row[0] + 0.25, row[1], row[2]]
        known -= math.log(softmax(raised)[0]) / 2
    pairs = 0.0
    for image, partner in zip(first, partners, strict=True):
        both = zip(softmax(image), softmax(partner), strict=True)
        pairs -= math.log(sum(p * q for p, q in both)) / 4
    mean = [sum(softmax(row)[cluster] for row in first) / 4 for cluster in range(3)]
    gap = math.log(3) + sum(p * math.log(p) for p in mean)
    assert value.item() == pytest.approx(known + pairs + gap)


def test_a_larger_margin_holds_known_categories_back(make_method):
    """The pull of the labels on the logits shrinks as the margin grows."""
    rows = [[0.3, 0.2], [0.2, 0.3]]

    def pull(margin):
        views = views_of(rows, rows, [0, 1])
        leaf = views.cosines[0].requires_grad_()
        make_method(Orca, entropy_weight=0.0)._loss(views, margin).backward()
        return leaf.grad.abs().sum().item()

    assert pull(0.5) < pull(0.2) < pull(0.0)


def test_pairs_pull_an_unlabeled_image_to_what_its_neighbor_is(make_method):
    """Image 0 is unsure, its nearest neighbor is sure of cluster 1: so image 0 moves to cluster 1."""
    views = views_of([[0.2, 0.2]], [[0.0, 0.8]], [])
    leaf = views.cosines[0].requires_grad_()
    make_method(Orca, entropy_weight=0.0)._loss(views, 0.0).backward()
    assert leaf.grad[0, 1] < 0 < leaf.grad[0, 0]


def test_partners_are_of_the_whole_set(make_method, encoder, stages, monkeypatch):
    """Not of the batch: the nearest of all unlabeled images, and any labeled image of the category."""
    [(stage, _)] = stages("static")
    method, seen = make_method(Orca, counts=(5,)), []

    def spy(model, batch, labeled, targets, unlabeled, is_open, *, partners):
        seen.append((batch, partners))
        return two_views(model, batch, labeled, targets, unlabeled, is_open, partners=partners)

    monkeypatch.setattr(parametric, "two_views", spy)
    h = method._h(encoder.plain_views(stage.unlabeled))  # as before the first and only epoch
    method.learn(stage)
    h = normalize(h, dim=1)
    similarity = (h @ h.T).fill_diagonal_(-2)
    for batch, (of_labeled, of_unlabeled) in seen:
        assert (stage.labels[of_labeled] == stage.labels[batch.labeled_rows]).all()
        chosen = similarity[batch.unlabeled_rows, of_unlabeled]
        torch.testing.assert_close(chosen, similarity[batch.unlabeled_rows].amax(dim=1), atol=1e-5, rtol=0)
    assert any(not set(others) <= set(batch.unlabeled_rows) for batch, (_, others) in seen)


def test_a_stage_without_labels_has_the_memory(make_method, stages):
    """What was labeled at stage 0 is replayed later: no labels, and yet the margin has something to act on."""
    (first, _), (second, _), *_ = stages("mi")
    method = make_method(Orca, n_replay=3)
    method.learn(first)
    assert method.kept().images == 3 * 4 and method.kept().pseudo_labeled == 0
    replayed = method._labeled_views(second)
    assert len(second.labels) == 0 and replayed.clusters.bincount().tolist() == [3, 3, 3, 3]
    method.learn(second)
    assert method.kept().pseudo_labeled > 0


def test_the_state_can_be_taken_up_again_and_the_seed_decides(make_method, stages):
    [(stage, truth)] = stages("static")

    def learned(seed):
        method = make_method(Orca, counts=(5,), seed=seed)
        method.learn(stage)
        return method

    first, same, other = learned(0), learned(0), learned(1)
    again = make_method(Orca, counts=(5,), seed=9)
    again.load_state_dict(*first.state_dict())
    expected = first.predict(truth.test_images).probability
    assert torch.equal(expected, again.predict(truth.test_images).probability)
    assert torch.equal(expected, same.predict(truth.test_images).probability)
    assert not torch.equal(expected, other.predict(truth.test_images).probability)


def test_a_stage_that_was_stopped_ends_as_if_it_had_not_been(make_method, in_memory, stages):
    """The margin is measured from the state alone, so a resumed epoch has the same one."""
    [(stage, truth)] = stages("static")
    checkpoint = in_memory()
    whole = make_method(Orca, counts=(5,), n_epochs=3, checkpoint=checkpoint)
    whole.learn(stage)
    resumed = make_method(Orca, counts=(5,), n_epochs=3, checkpoint=in_memory(2, checkpoint.saved[2]))
    resumed.learn(stage)
    assert torch.equal(whole.predict(truth.test_images).probability, resumed.predict(truth.test_images).probability)


@pytest.mark.parametrize("n_unlabeled", [0, 1])
def test_a_stage_with_hardly_an_image(make_method, stages, n_unlabeled):
    (first, _), (second, truth), *_ = stages("mi")
    method = make_method(Orca)
    method.learn(first)
    method.learn(
        Stage(1, second.labeled, second.labels, second.unlabeled.take(range(n_unlabeled)), first.category_names)
    )
    assert torch.isfinite(method.predict(truth.test_images).probability).all()
