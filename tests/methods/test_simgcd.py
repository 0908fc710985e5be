"""SimGCD on a few digits, and the parts that all parametric methods share."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.errors import IgcdError
from igcd.functional.losses import self_supervised_contrastive, supervised_contrastive
from igcd.functional.novel_start import novel_centers
from igcd.methods.simgcd import SimGcd
from igcd.methods.two_views import TwoViews
from igcd.training import Batch
from igcd.types import UNLABELED, Stage


@pytest.fixture
def lenient(encoder):
    """An encoder that goes on whatever is broken."""
    return replace(encoder, quarantine=Quarantine(limit=1.0))


def clusters_of(method):
    return set(method.clusters_of_categories().values()) | {found.cluster for found in method.discoveries()}


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
def test_every_protocol(make_method, stages, protocol):
    counts = (5,) if protocol == "static" else (0, 2, 2)
    method = make_method(SimGcd, counts=counts)
    for stage, truth in stages(protocol):
        method.learn(stage)
        assignment = method.predict(truth.test_images)
        assert set(assignment.cluster.tolist()) <= clusters_of(method)
        assert ((assignment.probability > 0) & (assignment.probability <= 1 + 1e-6)).all()
        assert set(method.clusters_of_categories()) == set(range(len(stage.category_names)))
        found = [discovery for discovery in method.discoveries() if discovery.stage == stage.index]
        assert len(found) == counts[stage.index]
        predicted = method.predict(stage.unlabeled)
        cluster_of = dict(zip(stage.unlabeled.ids, predicted.cluster.tolist(), strict=True))
        probability_of = dict(zip(stage.unlabeled.ids, predicted.probability.tolist(), strict=True))
        for discovery in found:
            assert all(cluster_of[image_id] == discovery.cluster for image_id in discovery.members)
            confidence = [probability_of[image_id] for image_id in discovery.members]
            assert confidence == sorted(confidence, reverse=True) and len(confidence) <= 12
            assert discovery.nearest_known in clusters_of(method) - {other.cluster for other in found}
        assert method.kept().images == 0


def test_ids_are_stable(make_method, stages):
    method = make_method(SimGcd)
    before: dict[int, int] = {}
    for stage, _ in stages("igcd-l"):
        method.learn(stage)
        now = method.clusters_of_categories()
        assert before.items() <= now.items()
        assert len(set(now.values())) == len(now)
        before = now


def test_a_dropped_discovery_is_never_predicted_again(make_method, stages):
    """Labels of one category alone arrive: at most one of the two discoveries can be it."""
    (first, _), (second, truth), (third, _) = stages("igcd-u")
    method = make_method(SimGcd)
    method.learn(first)
    method.learn(second)
    found = {discovery.cluster for discovery in method.discoveries()}
    novel = next(name for name in truth.unlabeled.categories if name not in first.category_names)
    idx = [i for i, name in enumerate(truth.unlabeled.categories) if name == novel]
    labels = np.full(len(idx), len(first.category_names), dtype=np.int64)
    names = (*first.category_names, novel)
    method.learn(Stage(2, second.unlabeled.take(idx), labels, third.unlabeled, names))
    dropped = found - clusters_of(method)
    assert dropped
    assert not dropped & set(method.predict(third.unlabeled).cluster.tolist())
    assert not dropped & {discovery.nearest_known for discovery in method.discoveries()}


def test_the_state_can_be_taken_up_again(make_method, stages):
    method, again = make_method(SimGcd), make_method(SimGcd, seed=5)
    *earlier, (last, truth) = stages("igcd-l")
    for stage, _ in earlier:
        method.learn(stage)
    again.load_state_dict(*method.state_dict())
    first, second = method.predict(truth.test_images), again.predict(truth.test_images)
    assert torch.equal(first.cluster, second.cluster) and torch.equal(first.probability, second.probability)
    assert again.discoveries() == method.discoveries()
    again.learn(last)  # a head that was loaded grows on


def test_a_stage_that_was_stopped_ends_as_if_it_had_not_been(make_method, in_memory, stages):
    [(stage, truth)] = stages("static")
    options = {"counts": (5,), "n_epochs": 2}
    checkpoint = in_memory()
    whole = make_method(SimGcd, checkpoint=checkpoint, **options)
    whole.learn(stage)
    resumed = make_method(SimGcd, checkpoint=in_memory(1, checkpoint.saved[1]), **options)
    resumed.learn(stage)
    assert torch.equal(whole.predict(truth.test_images).probability, resumed.predict(truth.test_images).probability)
    assert whole.discoveries() == resumed.discoveries()


def test_the_seed_decides(make_method, stages):
    def answers(seed):
        method = make_method(SimGcd, seed=seed)
        (stage, truth), *_ = stages("mi")
        method.learn(stage)
        return method.predict(truth.test_images).probability

    assert torch.equal(answers(0), answers(0))
    assert not torch.equal(answers(0), answers(1))


@pytest.mark.parametrize("n_unlabeled", [0, 1])
def test_a_stage_with_hardly_an_image(make_method, stages, n_unlabeled):
    (first, _), (second, truth), *_ = stages("mi")
    method = make_method(SimGcd)
    method.learn(first)
    few = Stage(1, second.labeled, second.labels, second.unlabeled.take(range(n_unlabeled)), second.category_names)
    method.learn(few)
    assert len(method.discoveries()) == n_unlabeled  # no more novel categories than images
    assert torch.isfinite(method.predict(truth.test_images).probability).all()


def test_predicting_before_learning_and_learning_nothing_are_sentences(make_method, stages):
    (_, _), (second, truth), *_ = stages("mi")
    with pytest.raises(IgcdError, match="learned nothing yet"):
        make_method(SimGcd).predict(truth.test_images)
    with pytest.raises(IgcdError, match="no category to learn"):
        make_method(SimGcd, counts=(0, 0)).learn(second)


# The loss, by hand -----------------------------------------------------------------------------------------------

NO_BATCH = Batch(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), torch.Generator())


def some_views(targets, n=4, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def rows(width):
        drawn = torch.randn(2, n, width, generator=generator, dtype=torch.float64)
        return torch.nn.functional.normalize(drawn, dim=2).unbind()

    return TwoViews(h=rows(5), z=rows(6), cosines=rows(3), targets=torch.tensor(targets, dtype=torch.int64))


def softmax(row, tau):
    exps = [math.exp(value / tau) for value in row]
    return [value / sum(exps) for value in exps]


def slow_classifier_loss(views, *, weight, epsilon, tau, target_tau):
    """SimGCD's L_cls in plain loops."""
    first, second = (view.tolist() for view in views.cosines)
    n, n_clusters = len(first), len(first[0])
    both = [softmax(row, tau) for row in first + second]
    labeled = 0.0
    for view in (first, second):
        for row, target in zip(view, views.targets.tolist(), strict=False):
            labeled -= math.log(softmax(row, tau)[target]) / (2 * max(len(views.targets), 1))
    distill = 0.0
    for row_1, row_2 in zip(first, second, strict=True):
        for anchor, target in ((row_1, row_2), (row_2, row_1)):
            pairs = zip(softmax(target, target_tau), softmax(anchor, tau), strict=True)
            distill -= sum(q * math.log(p) for q, p in pairs) / (2 * n)
    mean = [sum(row[cluster] for row in both) / (2 * n) for cluster in range(n_clusters)]
    gap = math.log(n_clusters) + sum(p * math.log(p) for p in mean)
    return weight * labeled + (1 - weight) * (distill + epsilon * gap)


@pytest.mark.parametrize("targets", [[0, 2], []])
def test_the_loss_is_the_sum_of_its_parts(make_method, targets):
    """Against plain loops; what is left when the classifier's part is taken away is the contrastive part."""
    views = some_views(targets)
    method = make_method(SimGcd, epsilon=4.0, warmup_share=0.15)
    value = method._loss(views, NO_BATCH, epoch=15, n_epochs=200)
    contrastive = 0.35 * supervised_contrastive(*views.z_labeled, views.targets, tau=0.07)
    contrastive += 0.65 * self_supervised_contrastive(*views.z, tau=1.0)
    expected = slow_classifier_loss(views, weight=0.35, epsilon=4.0, tau=0.1, target_tau=0.055)
    assert value.item() == pytest.approx(expected + contrastive.item())


def test_the_entropy_term_keeps_a_new_prototype_alive(make_method):
    """Nobody predicts the third cluster: with ε the loss pulls images to it, without it pushes them off."""
    cosines = torch.tensor([[0.5, 0.4, 0.2], [0.4, 0.5, 0.2]], dtype=torch.float64)
    z = torch.nn.functional.normalize(torch.ones(2, 4, dtype=torch.float64), dim=1)

    def pull(epsilon):
        leaf = cosines.clone().requires_grad_()
        views = TwoViews((z, z), (z, z), (leaf, cosines), torch.empty(0, dtype=torch.int64))
        make_method(SimGcd, epsilon=epsilon)._loss(views, NO_BATCH, epoch=0, n_epochs=1).backward()
        return -leaf.grad[:, 2].sum().item()

    assert pull(0.0) < 0 < pull(4.0)


@pytest.mark.parametrize("start", ["split", "all"])
def test_new_prototypes_start_where_the_known_ones_do_not_reach(make_method, encoder, stages, start):
    (first, _), (second, _), *_ = stages("mi")
    method = make_method(SimGcd, n_epochs=0, novel_start=start)  # nothing moves: what is seen is the start
    method.learn(first)
    known = method._prototypes.clone()
    method.learn(second)
    assert torch.equal(method._prototypes[: len(known)], known)
    h = method._h(encoder.plain_views(second.unlabeled))
    centers = novel_centers(h, known, 2, start=start, generator=method._generator(second, "novel"))
    assert torch.allclose(method._prototypes[len(known) :], torch.nn.functional.normalize(centers, dim=1), atol=1e-6)


def test_labeled_categories_start_at_their_mean(make_method, encoder, stages):
    (first, _), *_ = stages("mi")
    method = make_method(SimGcd, n_epochs=0)
    method.learn(first)
    h = method._h(encoder.plain_views(first.labeled))
    for category, cluster in method.clusters_of_categories().items():
        mean = h[torch.from_numpy(first.labels == category)].mean(dim=0)
        assert torch.allclose(method._prototypes[cluster], mean / mean.norm(), atol=1e-5)


def test_a_category_whose_images_cannot_be_read_still_has_a_prototype(make_method, lenient, tmp_path):
    """Two labeled categories, the images of one are broken: training goes on with finite numbers."""
    rng = np.random.default_rng(0)
    for i in range(4):
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    images = FileImages(tmp_path, [*(f"{i}.png" for i in range(4)), "broken.png"])
    stage = Stage(0, images, np.array([0, 0, 0, 0, 1]), images.take([]), ("seen", "broken"))
    method = make_method(SimGcd, encoder=lenient)
    method.learn(stage)
    assert torch.allclose(method._prototypes.norm(dim=1), torch.ones(2))
    assert method._model.head.prototypes.abs().max() < 10
    assert torch.isfinite(method.predict(images.take([0, 1])).probability).all()


def test_broken_images_have_no_prediction(make_method, lenient, stages, tmp_path):
    (first, _), *_ = stages("mi")
    method = make_method(SimGcd, encoder=lenient)
    method.learn(first)
    (tmp_path / "broken.png").write_bytes(b"no image")
    assignment = method.predict(FileImages(tmp_path, ["broken.png"]))
    assert assignment.cluster.tolist() == [UNLABELED] and assignment.probability.tolist() == [0.0]
