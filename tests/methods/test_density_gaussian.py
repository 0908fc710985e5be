"""Gaussians from statistics: what must hold on a few digits, and what is particular to it on points one could draw."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional import hidden_categories
from igcd.functional.gaussian import scatter_statistics, shared_gaussians
from igcd.functional.left_out_shrinkage import left_out_shrinkage
from igcd.methods.density_gaussian import DensityGaussian
from igcd.types import UNLABELED, Stage


def clusters_of(method):
    return set(method.clusters_of_categories().values()) | {found.cluster for found in method.discoveries()}


def nothing_of(images):
    return images.take([])


@pytest.mark.parametrize("features", ["frozen", "tuned", "dual"])
@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
def test_every_protocol(make_method, stages, protocol, features):
    method = make_method(DensityGaussian, features=features, granularity=1.5)
    for stage, truth in stages(protocol):
        known_before = clusters_of(method)
        method.learn(stage)
        assignment = method.predict(truth.test_images)
        assert set(assignment.cluster.tolist()) <= clusters_of(method)
        assert ((assignment.probability > 0) & (assignment.probability <= 1 + 1e-6)).all()
        assert set(method.clusters_of_categories()) == set(range(len(stage.category_names)))
        predicted = dict(zip(stage.unlabeled.ids, method.predict(stage.unlabeled).cluster.tolist(), strict=True))
        found = [discovery for discovery in method.discoveries() if discovery.stage == stage.index]
        assert found or len(stage.unlabeled) == 0
        for discovery in found:
            assert 1 <= len(discovery.members) <= 12
            assert all(predicted[image_id] == discovery.cluster for image_id in discovery.members)
            assert discovery.cluster not in known_before
            assert discovery.nearest_known in clusters_of(method) - {other.cluster for other in found}
        assert method.kept().images == 0 and method.kept().bytes > 0


def test_ids_are_stable(make_method, stages):
    method = make_method(DensityGaussian, granularity=1.5)
    before: dict[int, int] = {}
    for stage, _ in stages("igcd-l"):
        method.learn(stage)
        now = method.clusters_of_categories()
        assert before.items() <= now.items() and len(set(now.values())) == len(now)
        before = now


@pytest.mark.parametrize("features", ["frozen", "tuned", "dual"])
def test_the_state_can_be_taken_up_again(make_method, stages, features):
    options = {"features": features, "granularity": 1.5}
    method, again = make_method(DensityGaussian, **options), make_method(DensityGaussian, seed=5, **options)
    *earlier, (last, truth) = stages("igcd-l")
    for stage, _ in earlier:
        method.learn(stage)
    again.load_state_dict(*method.state_dict())
    for each in (method, again):
        each.learn(last)
    first, second = method.predict(truth.test_images), again.predict(truth.test_images)
    assert torch.equal(first.cluster, second.cluster) and torch.equal(first.probability, second.probability)
    assert again.discoveries() == method.discoveries() and again.kept() == method.kept()


def test_a_state_of_earlier_versions_is_read(make_method, stages):
    """It does not count the images of found means, and its space takes no roots."""
    method, again = make_method(DensityGaussian), make_method(DensityGaussian, seed=5)
    (first, truth), *_ = stages("mi")
    method._space._takes_roots = False
    method.learn(first)
    tensors, metadata = method.state_dict()
    again.load_state_dict({name: tensor for name, tensor in tensors.items() if name != "statistics.sizes"}, metadata)
    assert torch.equal(again.predict(truth.test_images).cluster, method.predict(truth.test_images).cluster)
    assert "projection.takes_roots" not in tensors
    assert "projection.takes_roots" in make_method(DensityGaussian).state_dict()[0]


def test_only_the_first_stage_trains(make_method, stages):
    method = make_method(DensityGaussian, features="dual")
    (first, _), *later = stages("mi")
    untrained = [parameter.clone() for parameter in method._model.tail.parameters()]
    method.learn(first)
    trained = [parameter.clone() for parameter in method._model.tail.parameters()]
    assert any(not torch.equal(*pair) for pair in zip(untrained, trained, strict=True))
    for stage, _ in later:
        method.learn(stage)
    assert all(torch.equal(*pair) for pair in zip(trained, method._model.tail.parameters(), strict=True))


def test_the_seed_decides_what_is_trained(make_method, stages):
    def answers(seed):
        method = make_method(DensityGaussian, seed=seed, features="tuned")
        (stage, truth), *_ = stages("mi")
        method.learn(stage)
        return method.predict(truth.test_images).probability

    assert torch.equal(answers(0), answers(0))
    assert not torch.equal(answers(0), answers(1))


def test_labeled_images_alone_give_the_linear_discriminant(make_method, stages):
    """After a stage with labels only, predictions are those of the shared Gaussians of its labeled images."""
    method = make_method(DensityGaussian, shrinkage=0.3)
    (stage, truth), *_ = stages("mi")
    method.learn(stage)
    x = method._compared(method._encoder.plain_views(stage.labeled))
    rows = method._book.of(stage.labels)
    gaussians = shared_gaussians(scatter_statistics(x, rows, n_categories=4), shrinkage=0.3)
    queries = method._compared(method._encoder.plain_views(truth.test_images))
    assert torch.equal(method.predict(truth.test_images).cluster, gaussians.predict(queries)[0])


def test_the_same_labeled_images_again_are_not_counted_twice(make_method, stages):
    method = make_method(DensityGaussian)
    (stage, _), *_ = stages("igcd-l")
    method.learn(stage)
    before = method._statistics
    order = np.random.default_rng(0).permutation(len(stage.labeled))
    nothing = nothing_of(stage.unlabeled)
    method.learn(Stage(1, stage.labeled.take(order), stage.labels[order], nothing, stage.category_names))
    assert torch.equal(method._statistics.counts, before.counts)
    assert torch.equal(method._statistics.scatter, before.scatter)


def test_a_revealed_label_replaces_the_guessed_mean_and_keeps_the_id(make_method, stages):
    (first, _), (second, truth), *_ = stages("igcd-l")
    method = make_method(DensityGaussian, granularity=1.5)
    method.learn(first)
    method.learn(second)
    found = {discovery.cluster for discovery in method.discoveries()}
    hidden = np.asarray(truth.unlabeled.categories)
    names = (*second.category_names, *sorted(set(hidden.tolist()) - set(second.category_names)))
    labels = np.asarray([names.index(category) for category in hidden], dtype=np.int64)
    predicted = method.predict(second.unlabeled).cluster.numpy()
    method.learn(Stage(2, second.unlabeled, labels, nothing_of(second.unlabeled), names))
    named = method.clusters_of_categories()
    x = method._compared(method._encoder.plain_views(second.unlabeled))
    n_named = 0
    for category in range(len(second.category_names), len(names)):
        row = method._clusters.tolist().index(named[category])
        assert torch.allclose(method._statistics.means[row], x[labels == category].mean(dim=0), atol=1e-5)
        if named[category] in found:
            n_named += 1
            holds = predicted == named[category]
            assert 2 * (labels[holds] == category).sum() > holds.sum()
    assert n_named
    assert set(method._clusters.tolist()) == set(named.values())  # discoveries that were nothing are gone


class OnPoints(DensityGaussian):
    """The method on points that are given as they are compared."""

    def _compared(self, views):
        return views


def blobs(categories, n_each, seed):
    """Unit vectors around axes of their own in 16 dimensions, and their categories."""
    rows = torch.tensor(categories).repeat_interleave(n_each)
    noise = 0.1 * torch.randn(len(rows), 16, generator=torch.Generator().manual_seed(seed))
    return normalize(torch.eye(16)[rows] + noise, dim=1), rows


@pytest.fixture
def six_known(make_method, monkeypatch):
    """A method that knows categories 0 to 5 of `blobs` as clusters 10 to 15, by statistics alone."""
    monkeypatch.setattr(hidden_categories, "N_TIMES", 5)  # as they are: these tests are about heights
    method = make_method(OnPoints)
    x, rows = blobs(range(6), 20, seed=0)
    method._statistics = scatter_statistics(x, rows, n_categories=6)
    method._clusters = torch.arange(10, 16)
    method._calibrate(x, rows)
    return method


def test_novel_means_are_those_of_the_images_that_no_known_category_owns(six_known):
    x, rows = blobs([*range(6), 8, 9], 20, seed=1)
    means, sizes, nearest_known = six_known._find_novel(x)
    expected = torch.stack([x[rows == category].mean(dim=0) for category in (8, 9)])
    distances = torch.cdist(expected, means)
    assert means.shape == (2, 16) and (distances.min(dim=1).values < 1e-5).all()
    assert sizes.tolist() == [20, 20]
    assert set(nearest_known.tolist()) <= set(range(10, 16))


def test_images_of_known_categories_open_nothing(six_known):
    means, sizes, nearest_known = six_known._find_novel(blobs(range(6), 20, seed=1)[0])
    assert len(means) == len(sizes) == len(nearest_known) == 0


def test_a_finer_granularity_finds_no_fewer(six_known):
    x, _ = blobs([*range(6), 8, 9], 20, seed=1)
    found = []
    for six_known._granularity in (-3.0, 0.0, 1.0, 2.0, 3.0):
        found.append(len(six_known._find_novel(x)[0]))
    assert found == sorted(found) and found[0] < found[-1]


def test_few_labeled_categories_leave_what_was_estimated_from_many(six_known):
    heights, shrinkage = six_known._heights, six_known._shrinkage
    assert heights is not None
    six_known._calibrate(*blobs(range(3), 2, seed=2))
    assert (six_known._heights, six_known._shrinkage) == (heights, shrinkage)


def test_the_shrinkage_is_found_by_leaving_images_out(make_method):
    generator = torch.Generator().manual_seed(0)
    clusters = torch.arange(8).repeat(6)
    x = 0.6 * torch.randn(8, 30, generator=generator)[clusters] + torch.randn(48, 30, generator=generator)
    method = make_method(DensityGaussian)
    method._calibrate(x, clusters)
    assert method._shrinkage == left_out_shrinkage(x, clusters)


def test_a_shrinkage_that_is_given_stays(make_method, stages):
    method = make_method(DensityGaussian, shrinkage=0.35)
    method.learn(next(iter(stages("mi")))[0])
    assert method._shrinkage == 0.35


@pytest.mark.parametrize("n_unlabeled", [0, 1, 2, 3])
def test_few_unlabeled_images_are_no_trouble(make_method, stages, n_unlabeled):
    method = make_method(DensityGaussian)
    (first, _), (second, truth), *_ = stages("igcd-u")
    method.learn(first)
    few = second.unlabeled.take(range(n_unlabeled))
    method.learn(Stage(1, second.labeled, second.labels, few, second.category_names))
    assert (method.predict(truth.test_images).cluster != UNLABELED).all()


def test_a_first_stage_without_labels_is_a_sentence(make_method, stages):
    _, (second, truth), *_ = stages("igcd-u")
    with pytest.raises(IgcdError, match="first stage"):
        make_method(DensityGaussian).learn(second)
    with pytest.raises(IgcdError, match="learn"):
        make_method(DensityGaussian).predict(truth.test_images)
