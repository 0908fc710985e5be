"""What is particular to Happy; what it shares with others is in test_predecessor.py and test_simgcd.py."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional.distillation import feature_distillation
from igcd.functional.prototypes import grouped_entropy
from igcd.functional.self_distillation import mutual_distillation
from igcd.methods.happy import Happy
from igcd.methods.simgcd import SimGcd
from igcd.methods.two_views import TwoViews, supervised_loss
from igcd.training import Batch


def batch(seed=0):
    nothing = np.empty(0, dtype=np.int64)
    return Batch(nothing, nothing, torch.Generator().manual_seed(seed))


class Before:
    """Stands in for the network of before."""

    def __init__(self, h):
        self.h = h


@pytest.fixture
def learned(make_method, stages):
    def learn(**options):
        method = make_method(Happy, **options)
        (first, _), *_ = stages("mi")
        method.learn(first)
        return method

    return learn


def some_views(method, targets, n_columns, seed=0):
    generator = torch.Generator().manual_seed(seed)
    widths = (method._n_features, 6, n_columns)
    rows = [normalize(torch.randn(2, 5, width, generator=generator), dim=2).unbind() for width in widths]
    return TwoViews(*rows, targets=torch.tensor(targets, dtype=torch.int64))


def test_of_the_past_there_are_means_and_variances(learned, encoder, stages):
    method = learned()
    (first, _), *_ = stages("mi")
    h = method._h(encoder.plain_views(first.labeled))
    kept = method._statistics
    assert kept.clusters.tolist() == [0, 1, 2, 3]
    for category, cluster in method.clusters_of_categories().items():
        own = h[torch.from_numpy(first.labels == category)]
        torch.testing.assert_close(kept.of.means[cluster], own.mean(dim=0))
        torch.testing.assert_close(kept.of.variances[cluster], own.var(dim=0, unbiased=False))


def test_statistics_of_old_categories_stay_and_novel_ones_join(learned, stages):
    method = learned()
    before = method._statistics.of.means.clone()
    _, (second, _), *_ = stages("mi")
    method.learn(second)
    assert torch.equal(method._statistics.of.means[:4], before)
    predicted = set(method.predict(second.unlabeled).cluster.tolist())
    assert set(method._statistics.clusters.tolist()) == {0, 1, 2, 3} | (predicted & {4, 5})


@pytest.mark.parametrize("targets", [[], [0, 3]])
def test_the_objective_is_the_sum_of_its_parts(learned, targets):
    """Without labels λ is 0 and every term has weight 1; with them λ of the whole is theirs."""
    method = learned(replay_weight=0.5, distillation_weight=2.0, entropy_weight=3.0)
    views = some_views(method, targets, n_columns=4)
    before = Before(normalize(torch.cat(views.h) + 0.1, dim=1))
    weight = 0.35 if targets else 0.0
    first, second = (cosines[len(targets) :] for cosines in views.cosines)
    expected = supervised_loss(views, labeled_weight=weight, tau=0.1, tau_u=1.0, tau_c=0.07)
    expected += (1 - weight) * mutual_distillation(first, second, tau=0.1, target_tau=0.05)
    entropy = grouped_entropy((torch.cat([first, second]) / 0.1).log_softmax(dim=1), n_old=3)
    expected -= (1 - weight) * 3.0 * entropy
    expected += 0.5 * method._replay(5, torch.Generator().manual_seed(7))
    expected += 2.0 * feature_distillation(torch.cat(views.h), before.h, distance="squared")
    assert method._loss(before, 3, views, batch(seed=7), 0).item() == pytest.approx(expected.item(), rel=1e-5)


def test_stage_0_is_all_of_simgcd_on_labeled_images(learned, make_method):
    """The same loss as SimGCD's once its target has warmed up to Happy's temperature."""
    method = learned(entropy_weight=2.0)
    views = some_views(method, [0, 1, 2, 3, 0], n_columns=4)
    simgcd = make_method(SimGcd, epsilon=2.0, target_tau_end=0.05)
    expected = simgcd._loss(views, batch(), 1, n_epochs=1)
    assert method._first_loss(views, batch(), 0).item() == pytest.approx(expected.item(), rel=1e-6)


def test_labels_replace_what_was_guessed_however_much_that_was(make_method, stages):
    """IGCD-l: a discovery of many images becomes a category of few labeled ones, and is known by these."""
    (first, _), (second, _), (third, _) = stages("igcd-l")
    method = make_method(Happy)
    method.learn(first)
    method.learn(second)
    method._statistics.of.counts.fill_(1000)
    guessed = {discovery.cluster for discovery in method.discoveries()}
    method.learn(third)
    confirmed = guessed & set(method.clusters_of_categories().values())
    counts = dict(zip(method._statistics.clusters.tolist(), method._statistics.of.counts.tolist(), strict=True))
    assert confirmed and all(counts[cluster] < 1000 for cluster in confirmed)
    assert all(counts[cluster] == 1000 for cluster in range(4))  # few images of them came back


def test_replay_without_spread_is_the_cross_entropy_of_the_means(learned):
    """Variance 0: whatever is drawn is a mean. With one category far harder than the rest, it is that one's."""
    method = learned(hardness_tau=1e-3)
    kept = method._statistics
    kept.of.variances.zero_()
    kept.of.means.copy_(torch.eye(len(kept), method._n_features))
    kept.of.means[1] = torch.tensor([0.9, 1.0] + [0.0] * (method._n_features - 2))  # 0 and 1 are alike, 1 is harder
    kept.of.means[2, 1] = 0.5  # 2 is a little like 1
    value = method._replay(6, torch.Generator().manual_seed(0))
    logits = method._prototypes @ normalize(kept.of.means[1], dim=0) / 0.1
    assert value.item() == pytest.approx((logits.logsumexp(dim=0) - logits[1]).item(), rel=1e-4)


def test_grouped_entropy_opens_the_door_to_new_categories(make_method, stages):
    """The bias Happy is against: without the entropy over (old, new) fewer images are taken for new ones."""
    (first, _), (second, _), *_ = stages("mi")

    def share_of_new(entropy_weight):
        method = make_method(Happy, n_epochs=5, entropy_weight=entropy_weight)
        method.learn(first)
        method.learn(second)
        return (method.predict(second.unlabeled).cluster >= 4).double().mean()

    assert share_of_new(3.0) > share_of_new(0.0)
