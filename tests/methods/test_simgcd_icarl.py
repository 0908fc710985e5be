"""SimGCD with iCaRL's memory on a few digits."""

import numpy as np
import pytest
import torch

from igcd.functional.herding import herding
from igcd.methods.simgcd import SimGcd
from igcd.methods.simgcd_icarl import SimGcdIcarl
from igcd.types import Stage


def clusters_of(method):
    return set(method.clusters_of_categories().values()) | {found.cluster for found in method.discoveries()}


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
def test_every_protocol_within_its_budget(make_method, stages, protocol):
    method = make_method(SimGcdIcarl, counts=(5,) if protocol == "static" else (0, 2, 2), n_replay=3)
    for stage, truth in stages(protocol):
        method.learn(stage)
        assignment = method.predict(truth.test_images)
        assert set(assignment.cluster.tolist()) <= clusters_of(method)
        assert set(assignment.cluster.tolist()) <= set(method._memory.clusters.tolist())
        assert ((assignment.probability > 0) & (assignment.probability <= 1 + 1e-6)).all()
        assert 0 < method.kept().images <= 3 * len(clusters_of(method))
        assert torch.bincount(method._memory.clusters).max() <= 3


def test_the_memory_of_a_labeled_category_is_its_herd(make_method, encoder, stages):
    (first, _), *_ = stages("mi")
    method = make_method(SimGcdIcarl, n_replay=4)
    method.learn(first)
    h = method._h(encoder.plain_views(first.labeled))
    for category, cluster in method.clusters_of_categories().items():
        idx = np.flatnonzero(first.labels == category)
        herd = [first.labeled.ids[i] for i in idx[herding(h[torch.from_numpy(idx)], 4).numpy()]]
        rows = (method._memory.clusters == cluster).nonzero()[:, 0].tolist()
        assert [method._memory.entries.image_ids[row] for row in rows] == herd


def test_predicts_the_nearest_mean_of_exemplars(make_method, encoder, stages):
    """In plain loops, from the images in the memory alone."""
    (first, truth), *_ = stages("mi")
    method = make_method(SimGcdIcarl, n_replay=3)
    method.learn(first)
    exemplars = method._h(encoder.plain_views(method._memory.images()))
    means = {}
    for cluster in set(method._memory.clusters.tolist()):
        mean = sum(exemplars[row] for row in (method._memory.clusters == cluster).nonzero()[:, 0].tolist())
        means[cluster] = mean / mean.norm()
    queries = method._h(encoder.plain_views(truth.test_images))
    nearest = [min(means, key=lambda cluster, query=query: (query - means[cluster]).norm()) for query in queries]
    assert method.predict(truth.test_images).cluster.tolist() == nearest


def test_unlabeled_images_join_under_their_predicted_category_behind_labeled_ones(make_method, stages):
    (first, _), (second, _), *_ = stages("mi")
    method = make_method(SimGcdIcarl, n_replay=3)
    method.learn(first)
    labeled = set(method._memory.entries.image_ids)
    method.learn(second)
    entries = method._memory.entries
    assert labeled <= set(entries.image_ids)  # no guess takes the place of a label
    guessed = [image_id for image_id, guess in zip(entries.image_ids, entries.is_pseudo.tolist(), strict=True) if guess]
    assert guessed and set(guessed) <= set(second.unlabeled.ids)
    by_head, _ = method._by_head(method._h(method._encoder.plain_views(second.unlabeled)))
    predicted = dict(zip(second.unlabeled.ids, by_head.tolist(), strict=True))
    cluster_of = dict(zip(entries.image_ids, entries.categories.tolist(), strict=True))
    assert all(cluster_of[image_id] == predicted[image_id] for image_id in guessed)
    assert method.kept().pseudo_labeled == len(guessed)


def test_a_label_that_arrives_corrects_the_memory(make_method, stages):
    """All unlabeled images of stage 1 are labeled at stage 2: no guess about them stays."""
    (first, _), (second, truth), *_ = stages("igcd-l")
    method = make_method(SimGcdIcarl, n_replay=3)
    method.learn(first)
    method.learn(second)
    assert method.kept().pseudo_labeled > 0
    hidden = truth.unlabeled.categories
    names = (*second.category_names, *sorted(set(hidden) - set(second.category_names)))
    labels = np.array([names.index(category) for category in hidden], dtype=np.int64)
    method.learn(Stage(2, second.unlabeled, labels, second.unlabeled.take([]), names))
    assert method.kept().pseudo_labeled == 0
    label_of = dict(zip(second.unlabeled.ids, labels.tolist(), strict=True))
    for image_id, cluster in zip(method._memory.entries.image_ids, method._memory.clusters.tolist(), strict=True):
        if image_id in label_of:
            assert cluster == method.clusters_of_categories()[label_of[image_id]]


def test_the_memory_is_learned_from_at_a_stage_without_labels(make_method, stages):
    (first, _), (second, _), *_ = stages("mi")
    method, without = make_method(SimGcdIcarl), make_method(SimGcd)
    for each in (method, without):
        each.learn(first)
    replayed = method._labeled_views(second)
    assert list(replayed.images.ids) == list(method._memory.entries.image_ids)
    assert torch.equal(replayed.clusters, method._memory.clusters)
    assert set(replayed.clusters.tolist()) == set(method.clusters_of_categories().values())
    assert len(without._labeled_views(second).clusters) == 0


def test_the_state_can_be_taken_up_again(make_method, stages):
    method, again = make_method(SimGcdIcarl), make_method(SimGcdIcarl, seed=5)
    *earlier, (last, truth) = stages("igcd-l")
    for stage, _ in earlier:
        method.learn(stage)
    again.load_state_dict(*method.state_dict())
    first, second = method.predict(truth.test_images), again.predict(truth.test_images)
    assert torch.equal(first.cluster, second.cluster) and torch.equal(first.probability, second.probability)
    assert again.discoveries() == method.discoveries() and again.kept() == method.kept()
    again.learn(last)


@pytest.mark.parametrize("n_unlabeled", [0, 1])
def test_a_stage_with_hardly_an_image(make_method, stages, n_unlabeled):
    (first, _), (second, truth), *_ = stages("mi")
    method = make_method(SimGcdIcarl)
    method.learn(first)
    method.learn(
        Stage(1, second.labeled, second.labels, second.unlabeled.take(range(n_unlabeled)), first.category_names)
    )
    assert torch.isfinite(method.predict(truth.test_images).probability).all()
