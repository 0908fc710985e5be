"""Gaussians from statistics: what must hold on a few digits, and what is particular to it on points one could draw."""

import numpy as np
import pytest
import torch

from igcd.errors import IgcdError
from igcd.functional.gaussian import scatter_statistics, shared_gaussians
from igcd.functional.granularity import Granularity
from igcd.methods.density_gaussian import DensityGaussian
from igcd.types import UNLABELED, Stage


def clusters_of(method):
    return set(method.clusters_of_categories().values()) | {found.cluster for found in method.discoveries()}


def nothing_of(images):
    return images.take([])


@pytest.mark.parametrize("features", ["frozen", "tuned", "dual"])
@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
def test_every_protocol(make_method, stages, protocol, features):
    method = make_method(DensityGaussian, features=features, K=4, margin=-0.2)
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
    method = make_method(DensityGaussian, K=4, margin=-0.2)
    before: dict[int, int] = {}
    for stage, _ in stages("igcd-l"):
        method.learn(stage)
        now = method.clusters_of_categories()
        assert before.items() <= now.items() and len(set(now.values())) == len(now)
        before = now


@pytest.mark.parametrize("features", ["frozen", "tuned", "dual"])
def test_the_state_can_be_taken_up_again(make_method, stages, features):
    options = {"features": features, "K": "auto", "margin": -0.2}
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


def test_only_the_first_stage_trains(make_method, stages):
    method = make_method(DensityGaussian, features="dual", K=4)
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
    method = make_method(DensityGaussian, K=4, margin=-0.2)
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


class OnALine(DensityGaussian):
    """The method on a plane: features are points of the unit circle, given by their angle in degrees."""

    def _compared(self, views):
        return views

    def give(self, means, k):
        """Known categories at these angles, with a small round covariance."""
        x = circle(means).repeat_interleave(2, dim=0)
        x = x + 0.02 * torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).repeat(len(means), 1)
        self._statistics = scatter_statistics(x, torch.arange(len(means)).repeat_interleave(2), n_categories=len(means))
        self._clusters = torch.tensor(self._book.open(len(means)))
        self._granularity = Granularity(K=k, margin=self._margin)


def circle(degrees):
    angle = torch.deg2rad(torch.as_tensor(degrees, dtype=torch.float32))
    return torch.stack([angle.cos(), angle.sin()], dim=1)


UNLABELED_ANGLES = [-1.0, 0.0, 1.0, 89.0, 90.0, 91.5]


def test_a_peak_a_known_mean_owns_opens_nothing(make_method):
    method = make_method(OnALine)
    method.give([0.2, 180.0], k=2)
    seeds = method._find_novel(circle(UNLABELED_ANGLES))
    assert torch.allclose(seeds.means, circle([89.0, 90.0, 91.5]).mean(dim=0)[None])
    assert seeds.nearest_known.tolist() == [0]


def test_without_the_rule_every_peak_opens(make_method):
    """What the rule is there for: a margin below any similarity lets the known category at 0 degrees be found again."""
    method = make_method(OnALine, margin=-3.0)
    method.give([0.2, 180.0], k=2)
    assert len(method._find_novel(circle(UNLABELED_ANGLES)).means) == 2


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
