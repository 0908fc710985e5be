"""The floor: k-means on the pretrained feature that keeps nothing but means."""

import numpy as np
import pytest
import torch

from igcd.errors import IgcdError
from igcd.functional.kmeans import semi_supervised_kmeans
from igcd.functional.novel_start import novel_centers
from igcd.methods.kmeans import KMeans
from igcd.types import UNLABELED, Stage


def clusters_of(method):
    return set(method.clusters_of_categories().values()) | {found.cluster for found in method.discoveries()}


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
def test_every_protocol(make_method, stages, protocol):
    counts = (5,) if protocol == "static" else (0, 2, 2)
    method = make_method(KMeans, counts=counts, n_starts=2)
    before: dict[int, int] = {}
    for stage, truth in stages(protocol):
        method.learn(stage)
        assignment = method.predict(truth.test_images)
        assert set(assignment.cluster.tolist()) <= clusters_of(method)
        now = method.clusters_of_categories()
        assert set(now) == set(range(len(stage.category_names)))
        assert before.items() <= now.items() and len(set(now.values())) == len(now)
        before = now
        found = [discovery for discovery in method.discoveries() if discovery.stage == stage.index]
        assert len(found) == counts[stage.index] and all(discovery.members for discovery in found)
        assert method.kept().images == 0


def category_means_as_they_are(x, labels):
    """Not normalised, (c, d)."""
    return torch.stack([x[torch.from_numpy(labels == category)].mean(dim=0) for category in np.unique(labels)])


def test_no_novel_cluster_is_one_odd_image(make_method, stages):
    """k-means++ starts at outliers, and an outlier keeps a cluster to itself."""
    method = make_method(KMeans)
    (first, _), (second, _), *_ = stages("mi")
    method.learn(first)
    compared = method._compared

    def with_an_odd_one(views):
        x = compared(views)
        x[-1:] = -torch.ones(1, x.shape[1]) / x.shape[1] ** 0.5  # as long as all features, and opposite to all
        return x

    method._compared = with_an_odd_one
    method.learn(second)
    sizes = dict(zip(method._clamped.tolist(), method._counts.tolist(), strict=True))
    assert all(sizes[discovery.cluster] > 1 for discovery in method.discoveries())


def test_means_do_what_the_images_would_do(make_method, stages):
    """Stage 1 without labels has the centers it would have with all labeled images of stage 0 at hand."""
    method = make_method(KMeans, n_starts=3)
    (first, _), (second, _), *_ = stages("igcd-u")
    method.learn(first)
    method.learn(second)
    labeled, unlabeled = (
        method._compared(method._encoder.plain_views(images)) for images in (first.labeled, second.unlabeled)
    )
    means = category_means_as_they_are(labeled, first.labels)
    draws = torch.Generator().manual_seed(1)
    expected = semi_supervised_kmeans(
        labeled,
        torch.from_numpy(first.labels),
        unlabeled,
        n_clusters=6,
        generator=torch.Generator().manual_seed(1),
        initial_centers=torch.cat([means, novel_centers(unlabeled, means, 2, generator=draws, n_starts=3)]),
    )
    assert torch.allclose(method._centers, expected.centers, atol=1e-5)


def test_the_same_labeled_images_again_are_not_counted_twice(make_method, stages):
    method = make_method(KMeans, counts=(0, 0))
    (stage, _), *_ = stages("igcd-l")
    for index in range(2):
        method.learn(Stage(index, stage.labeled, stage.labels, stage.unlabeled, stage.category_names))
    assert method._counts.tolist() == np.bincount(stage.labels).tolist()


def test_a_revealed_label_replaces_the_guessed_mean(make_method, stages):
    (first, _), (second, truth), *_ = stages("igcd-l")
    method = make_method(KMeans)
    method.learn(first)
    method.learn(second)
    hidden = np.asarray(truth.unlabeled.categories)
    names = (*second.category_names, *sorted(set(hidden.tolist()) - set(second.category_names)))
    labels = np.asarray([names.index(category) for category in hidden], dtype=np.int64)
    method.learn(Stage(2, second.unlabeled, labels, second.unlabeled.take([]), names))
    named = method.clusters_of_categories()
    counts = dict(zip(method._clamped.tolist(), method._counts.tolist(), strict=True))
    for category in range(len(second.category_names), len(names)):
        assert counts[named[category]] == (labels == category).sum()
    assert set(counts) == set(named.values())


def test_the_state_can_be_taken_up_again(make_method, stages):
    method, again = make_method(KMeans), make_method(KMeans)
    *earlier, (last, truth) = stages("igcd-l")
    for stage, _ in earlier:
        method.learn(stage)
    again.load_state_dict(*method.state_dict())
    for each in (method, again):
        each.learn(last)
    assert torch.equal(method.predict(truth.test_images).cluster, again.predict(truth.test_images).cluster)
    assert again.discoveries() == method.discoveries() and again.kept() == method.kept()


@pytest.mark.parametrize("n_unlabeled", [0, 1])
def test_few_unlabeled_images_are_no_trouble(make_method, stages, n_unlabeled):
    method = make_method(KMeans)
    (first, _), (second, truth), *_ = stages("igcd-u")
    method.learn(first)
    few = second.unlabeled.take(range(n_unlabeled))
    method.learn(Stage(1, second.labeled, second.labels, few, second.category_names))
    assert len(method.discoveries()) == n_unlabeled
    assert (method.predict(truth.test_images).cluster != UNLABELED).all()


def test_predicting_before_learning_is_a_sentence(make_method, stages):
    (_, truth), *_ = stages("mi")
    with pytest.raises(IgcdError, match="learn"):
        make_method(KMeans).predict(truth.test_images)
