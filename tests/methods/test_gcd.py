"""GCD on a few digits: contrastive fine-tuning, then semi-supervised k-means around clamped images."""

import numpy as np
import pytest
import torch

from igcd.errors import IgcdError
from igcd.functional.kmeans import nearest_centers, semi_supervised_kmeans
from igcd.functional.losses import self_supervised_contrastive, supervised_contrastive
from igcd.functional.novel_start import novel_centers
from igcd.methods.centers import Known
from igcd.methods.gcd import Gcd
from igcd.methods.stage_views import labeled_and_replayed
from igcd.training import Batch
from igcd.types import UNLABELED, Stage


def clusters_of(method):
    return set(method.clusters_of_categories().values()) | {found.cluster for found in method.discoveries()}


@pytest.mark.parametrize("features", ["tuned", "frozen", "dual"])
@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
def test_every_protocol(make_method, stages, protocol, features):
    counts = (5,) if protocol == "static" else (0, 2, 2)
    method = make_method(Gcd, counts=counts, features=features, n_starts=2, n_replay=3)
    for stage, truth in stages(protocol):
        method.learn(stage)
        assignment = method.predict(truth.test_images)
        assert set(assignment.cluster.tolist()) <= clusters_of(method)
        assert ((assignment.probability > 0) & (assignment.probability <= 1 + 1e-6)).all()
        assert set(method.clusters_of_categories()) == set(range(len(stage.category_names)))
        predicted = dict(zip(stage.unlabeled.ids, method.predict(stage.unlabeled).cluster.tolist(), strict=True))
        found = [discovery for discovery in method.discoveries() if discovery.stage == stage.index]
        assert len(found) == counts[stage.index]
        for discovery in found:
            assert 1 <= len(discovery.members) <= 12
            assert all(predicted[image_id] == discovery.cluster for image_id in discovery.members)
            assert discovery.nearest_known in clusters_of(method) - {other.cluster for other in found}
        kept = method.kept()
        assert 0 < kept.images <= 3 * len(clusters_of(method))
        assert torch.bincount(method._replay.clusters).max() <= 3


def test_ids_are_stable(make_method, stages):
    method = make_method(Gcd, n_starts=1)
    before: dict[int, int] = {}
    for stage, _ in stages("igcd-l"):
        method.learn(stage)
        now = method.clusters_of_categories()
        assert before.items() <= now.items() and len(set(now.values())) == len(now)
        before = now


@pytest.mark.parametrize("features", ["tuned", "dual"])
def test_the_state_can_be_taken_up_again(make_method, stages, features):
    method, again = (make_method(Gcd, features=features, n_starts=2) for _ in range(2))
    *earlier, (last, truth) = stages("igcd-u")
    for stage, _ in earlier:
        method.learn(stage)
    again.load_state_dict(*method.state_dict())
    for each in (method, again):
        each.learn(last)
    first, second = method.predict(truth.test_images), again.predict(truth.test_images)
    assert torch.equal(first.cluster, second.cluster) and torch.equal(first.probability, second.probability)
    assert again.discoveries() == method.discoveries() and again.kept() == method.kept()


def test_the_seed_decides(make_method, stages):
    def answers(seed):
        method = make_method(Gcd, seed=seed)
        (stage, truth), *_ = stages("mi")
        method.learn(stage)
        return method.predict(truth.test_images).probability

    assert torch.equal(answers(0), answers(0))
    assert not torch.equal(answers(0), answers(1))


def test_a_static_stage_is_k_means_with_the_labeled_images_clamped(make_method, stages):
    method = make_method(Gcd, counts=(5,), n_starts=3)
    [(stage, truth)] = stages("static")
    method.learn(stage)
    views = [method._encoder.plain_views(images) for images in (stage.labeled, stage.unlabeled, truth.test_images)]
    labeled, unlabeled, test = (method._compared(each) for each in views)
    labels, draws = torch.from_numpy(stage.labels), torch.Generator().manual_seed(0)
    means = torch.stack([labeled[labels == category].mean(dim=0) for category in range(5)])
    expected = semi_supervised_kmeans(
        labeled,
        labels,
        unlabeled,
        n_clusters=10,
        generator=draws,
        initial_centers=torch.cat([means, novel_centers(unlabeled, means, 5, generator=draws, n_starts=3)]),
    )
    assert torch.equal(method.predict(truth.test_images).cluster, nearest_centers(test, expected.centers))


def test_kept_images_are_clamped_later(make_method, stages):
    """At a stage without labels, an image kept of a category is what holds its center: far from all else it stays."""
    method = make_method(Gcd, features="frozen", n_starts=1, n_replay=2)
    (first, _), (second, _), *_ = stages("igcd-u")
    method.learn(first)
    few = Stage(1, second.labeled, second.labels, second.unlabeled.take([]), second.category_names)
    kept = method._replay.clusters
    x = method._compared(method._encoder.plain_views(method._replay.images()))
    method.learn(few)
    for cluster, center in zip(method._clusters.tolist(), method._centers, strict=True):
        assert torch.allclose(center, x[kept == cluster].mean(dim=0), atol=1e-5)


def test_kept_images_count_for_all_they_were_chosen_from(make_method, stages):
    """Two images kept of sixteen hold their center as sixteen at their mean would."""
    method = make_method(Gcd, features="frozen", n_replay=2)
    (first, _), (second, _), *_ = stages("igcd-u")
    method.learn(first)
    kept = method._replay.clusters
    x = method._compared(method._encoder.plain_views(method._replay.images()))
    method._take_in_labels(second)
    clamped = method._clamped(Known(x, kept))
    assert torch.bincount(clamped.clusters).tolist() == np.bincount(first.labels).tolist()
    for cluster in kept.unique():
        own = clamped.x[clamped.clusters == cluster]
        torch.testing.assert_close(own, x[kept == cluster].mean(dim=0).expand_as(own))


def test_the_loss_is_both_contrasts_weighted(make_method, stages):
    method = make_method(Gcd, labeled_weight=0.25)
    [(stage, _)] = stages("static")
    method._take_in_labels(stage)
    labeled = labeled_and_replayed(method._encoder, stage.labeled, method._book.of(stage.labels), None)
    unlabeled = method._encoder.training_views(stage.unlabeled)
    labeled_rows, unlabeled_rows = np.array([0, 9, 17, 30, 2]), np.array([4, 1, 8])
    batch = Batch(labeled_rows, unlabeled_rows, torch.Generator().manual_seed(1))
    with torch.no_grad():
        loss = method._loss(method._model, batch, labeled, unlabeled)
        generator = torch.Generator().manual_seed(1)
        pairs = [
            views.two_views(rows, generator)
            for views, rows in ((labeled.views, labeled_rows), (unlabeled, unlabeled_rows))
        ]
        (z_1, z_2), (u_1, u_2) = [[method._model(view)[1] for view in pair] for pair in pairs]
        supervised = supervised_contrastive(z_1, z_2, labeled.clusters[labeled_rows], tau=0.07)
        both = self_supervised_contrastive(torch.cat([z_1, u_1]), torch.cat([z_2, u_2]), tau=1.0)
    assert float(loss) == pytest.approx(float(0.25 * supervised + 0.75 * both), rel=1e-4)


def test_a_revealed_label_throws_out_the_guessed_images(make_method, stages):
    """When a discovery gets its label, none of the images that were guessed to be of it stays, unless it is of it."""
    (first, _), (second, truth), *_ = stages("igcd-l")
    method = make_method(Gcd, features="frozen")
    method.learn(first)
    method.learn(second)
    found = {discovery.cluster for discovery in method.discoveries()}
    hidden = np.asarray(truth.unlabeled.categories)
    names = (*second.category_names, *sorted(set(hidden.tolist()) - set(second.category_names)))
    labels = np.asarray([names.index(category) for category in hidden], dtype=np.int64)
    method.learn(Stage(2, second.unlabeled, labels, second.unlabeled.take([]), names))
    named = method.clusters_of_categories()
    assert found & set(named.values())  # one was recognised
    category_of = dict(zip(second.unlabeled.ids, labels.tolist(), strict=True))
    entries = method._replay.entries
    for image_id, cluster in zip(entries.image_ids, entries.categories.tolist(), strict=True):
        if cluster in found:
            assert named[category_of[image_id]] == cluster
    assert not entries.is_pseudo.any()


@pytest.mark.parametrize("n_unlabeled", [0, 1, 2])
def test_few_unlabeled_images_are_no_trouble(make_method, stages, n_unlabeled):
    method = make_method(Gcd, n_starts=1)
    (first, _), (second, truth), *_ = stages("igcd-u")
    method.learn(first)
    few = second.unlabeled.take(range(n_unlabeled))
    method.learn(Stage(1, second.labeled, second.labels, few, second.category_names))
    assert len(method.discoveries()) == n_unlabeled
    assert (method.predict(truth.test_images).cluster != UNLABELED).all()


@pytest.mark.parametrize("features", ["tuned", "dual"])
def test_predicting_before_learning_is_a_sentence(make_method, stages, features):
    (_, truth), *_ = stages("mi")
    with pytest.raises(IgcdError, match="learn"):
        make_method(Gcd, features=features).predict(truth.test_images)
