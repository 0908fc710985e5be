"""What must hold for each of the methods of later work, on a few digits: protocols, ids, state, seed, few images."""

import numpy as np
import pytest
import torch

from igcd.methods.mib import Mib
from igcd.methods.msc_incd import MscIncd
from igcd.methods.rls import RecursiveLeastSquares
from igcd.methods.uno import Uno
from igcd.methods.vb_cgcd import VbCgcd
from igcd.types import UNLABELED, Stage

KINDS = {
    "rls": (RecursiveLeastSquares, {"n_expanded": 32, "granularity": 1.5}),
    "vb_cgcd": (VbCgcd, {"n_components": 16}),
    "vb_cgcd, frozen": (VbCgcd, {"n_components": 16, "features": "frozen"}),
    "uno": (Uno, {}),
    "mib": (Mib, {"n_steps": 5, "n_starts": 2}),
    "msc_incd": (MscIncd, {}),
}


@pytest.fixture(params=KINDS)
def make(request, make_method):
    """A function from options to one of the methods."""
    kind, options = KINDS[request.param]
    return lambda **more: make_method(kind, **options | more)


def clusters_of(method):
    return set(method.clusters_of_categories().values()) | {found.cluster for found in method.discoveries()}


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
def test_every_protocol(make, stages, protocol):
    method = make(counts=(5,) if protocol == "static" else (0, 2, 2))
    before: dict[int, int] = {}
    for stage, truth in stages(protocol):
        known_before = clusters_of(method)
        method.learn(stage)
        assignment = method.predict(truth.test_images)
        assert set(assignment.cluster.tolist()) <= clusters_of(method)
        assert ((assignment.probability > 0) & (assignment.probability <= 1 + 1e-6)).all()
        now = method.clusters_of_categories()
        assert set(now) == set(range(len(stage.category_names)))
        assert before.items() <= now.items() and len(set(now.values())) == len(now)
        before = now
        found = [discovery for discovery in method.discoveries() if discovery.stage == stage.index]
        assert not {discovery.cluster for discovery in found} & known_before
        for discovery in found:
            assert discovery.nearest_known in clusters_of(method) - {other.cluster for other in found}


def test_the_state_can_be_taken_up_again(make, stages):
    method, again = make(counts=(0, 2, 2)), make(counts=(0, 2, 2))
    *earlier, (last, truth) = stages("igcd-l")
    for stage, _ in earlier:
        method.learn(stage)
    again.load_state_dict(*method.state_dict())
    for each in (method, again):
        each.learn(last)
    first, second = method.predict(truth.test_images), again.predict(truth.test_images)
    assert torch.equal(first.cluster, second.cluster) and torch.equal(first.probability, second.probability)
    assert again.discoveries() == method.discoveries() and again.kept() == method.kept()


def test_the_seed_decides(make, stages):
    def answers(seed):
        method = make(seed=seed, counts=(0, 2, 2))
        (first, _), (second, truth), *_ = stages("mi")
        method.learn(first)
        method.learn(second)
        return method.predict(truth.test_images).probability

    assert torch.equal(answers(0), answers(0))


@pytest.mark.parametrize("n_unlabeled", [0, 1, 2, 3])
def test_few_unlabeled_images_are_no_trouble(make, stages, n_unlabeled):
    method = make(counts=(0, 2))
    (first, _), (second, truth), *_ = stages("igcd-u")
    method.learn(first)
    few = second.unlabeled.take(range(n_unlabeled))
    method.learn(Stage(1, second.labeled, second.labels, few, second.category_names))
    assert (method.predict(truth.test_images).cluster != UNLABELED).all()
    assert len(method.discoveries()) <= n_unlabeled


def test_no_more_images_are_kept_than_the_budget(make, stages):
    method = make(counts=(0, 2, 2))
    for stage, _ in stages("mi"):
        method.learn(stage)
    assert method.kept().images <= 8 * len(clusters_of(method))
    assert isinstance(method, Mib) or method.kept().images == 0


def test_labels_that_arrive_name_a_discovery_or_discard_it(make, stages):
    (first, _), (second, truth), *_ = stages("igcd-l")
    method = make(counts=(0, 2, 0))
    method.learn(first)
    method.learn(second)
    hidden = np.asarray(truth.unlabeled.categories)
    names = (*second.category_names, *sorted(set(hidden.tolist()) - set(second.category_names)))
    labels = np.asarray([names.index(category) for category in hidden], dtype=np.int64)
    method.learn(Stage(2, second.unlabeled, labels, second.unlabeled.take([]), names))
    named = method.clusters_of_categories()
    assert set(named) == set(range(len(names)))
    assert clusters_of(method) == set(named.values())  # discoveries that were nothing are gone
    assert set(method.predict(truth.test_images).cluster.tolist()) <= set(named.values())
