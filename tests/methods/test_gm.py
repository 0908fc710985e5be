"""What is particular to Grow and Merge; what it shares with others is in test_predecessor.py and test_simgcd.py."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity, normalize

from igcd.functional.prototype_novelty import novelty_threshold
from igcd.methods.gm import GrowAndMerge
from igcd.methods.two_views import TwoViews
from igcd.training import Batch
from igcd.types import UNLABELED


@pytest.fixture
def learned(make_method, stages):
    def learn(**options):
        method = make_method(GrowAndMerge, **options)
        (first, _), *_ = stages("mi")
        method.learn(first)
        return method

    return learn


def test_novel_is_what_no_prototype_is_like(learned, encoder, stages):
    """Against a loop over images and categories; the exemplars are the known images at a stage without labels."""
    method = learned(n_epochs=0)
    _, (second, _), *_ = stages("mi")
    labeled, unlabeled = method._open_labeled(second), encoder.training_views(second.unlabeled)
    known, h = method._h(labeled.views), method._h(unlabeled)
    threshold = novelty_threshold(known, labeled.clusters)
    means = [known[labeled.clusters == cluster].mean(dim=0) for cluster in range(4)]
    similarity = torch.stack([torch.stack([cosine_similarity(row, mean, dim=0) for mean in means]).max() for row in h])
    expected = similarity < threshold
    assert 2 <= expected.sum() < len(h)
    is_novel, novel = method._split(second, labeled, unlabeled)
    assert torch.equal(is_novel, expected) and novel == [4, 5]


def test_there_are_never_fewer_novel_images_than_novel_categories(learned, encoder, stages, monkeypatch):
    monkeypatch.setattr("igcd.methods.gm.novelty_threshold", lambda *_: -1.0)  # below which nothing is
    method = learned(n_epochs=0)
    _, (second, _), *_ = stages("mi")
    labeled, unlabeled = method._open_labeled(second), encoder.training_views(second.unlabeled)
    is_novel, novel = method._split(second, labeled, unlabeled)
    assert is_novel.sum() == len(novel) == 2


def test_known_prototypes_are_merged_as_the_branch_is(make_method, stages):
    """Two runs grow alike; with all of the static branch kept the known prototypes are back where they started."""
    (first, _), (second, _), *_ = stages("mi")

    def prototypes(momentum):
        method = make_method(GrowAndMerge, n_epochs=2, momentum=momentum)  # too few epochs for the head to learn after
        method.learn(first)
        before = method._prototypes
        method.learn(second)
        return before, method._prototypes[: len(before)]

    before, dynamic = prototypes(0.0)
    _, static = prototypes(1.0)
    _, half_way = prototypes(0.5)
    assert not torch.allclose(before, dynamic, atol=1e-3)
    torch.testing.assert_close(static, before)
    torch.testing.assert_close(half_way, normalize((before + dynamic) / 2, dim=1))


def test_the_static_branch_moves_by_one_minus_the_momentum(make_method, stages):
    """Two runs grow alike; merged, one is half the way from the static branch to the dynamic one, the other all."""
    (first, _), (second, _), *_ = stages("mi")

    def tails(momentum):
        method = make_method(GrowAndMerge, n_epochs=3, momentum=momentum)
        method.learn(first)
        before = [parameter.detach().clone() for parameter in method._model.tail.parameters()]
        method.learn(second)
        return before, [parameter.detach() for parameter in method._model.tail.parameters()]

    before, dynamic = tails(0.0)
    _, half_way = tails(0.5)
    assert any(not torch.equal(*pair) for pair in zip(before, dynamic, strict=True))
    for static, grown, merged in zip(before, dynamic, half_way, strict=True):
        torch.testing.assert_close(merged, (static + grown) / 2)


def test_merging_trains_the_head_alone(learned):
    method = learned()
    generator = torch.Generator().manual_seed(0)
    h = normalize(torch.randn(2, 4, method._n_features, generator=generator), dim=2).requires_grad_()
    cosines = tuple(method._model.head(part) for part in h)
    views = TwoViews(tuple(h), tuple(h), cosines, torch.tensor([1]))
    method._model.pseudo_clusters = torch.tensor([UNLABELED, 3, 0])
    batch = Batch(np.array([0]), np.array([2, 0, 1]), generator)  # pseudo-labels 0, none, 3
    value = method._merge_loss(views, batch)
    log_probs = [(part @ method._prototypes.T / 0.1).log_softmax(dim=1) for part in h.detach()]
    on_labeled = -sum(part[0, 1] for part in log_probs) / 2
    on_novel = -sum(part[1, 0] + part[3, 3] for part in log_probs) / 4
    assert value.item() == pytest.approx((on_labeled + on_novel).item(), rel=1e-5)
    value.backward()
    assert h.grad is None and method._model.head.prototypes.grad is not None


def test_only_the_novel_part_grows_in_pairs(learned):
    """The loss of a batch is that of the batch without the known part, but for the distillation, which is of all."""
    method = learned(distillation_weight=0.0)
    generator = torch.Generator().manual_seed(0)
    rows = [normalize(torch.randn(2, 5, width, generator=generator), dim=2) for width in (method._n_features, 6, 4)]
    targets = torch.tensor([1])

    class Static:
        h = torch.cat([rows[0][0], rows[0][1]])

    class StaticOfThree:
        h = torch.cat([rows[0][0, [0, 2, 4]], rows[0][1, [0, 2, 4]]])

    whole = TwoViews(*(tuple(part) for part in rows), targets=targets)
    part = TwoViews(*(tuple(view[[0, 2, 4]] for view in part) for part in rows), targets=targets)
    novel = torch.tensor([False, True, False, True])
    value = method._grow_loss(Static(), whole, novel, n_novel=2)
    assert value.item() == pytest.approx(method._grow_loss(StaticOfThree(), part, novel[novel], n_novel=2).item())
    assert value.item() != pytest.approx(method._grow_loss(Static(), whole, ~novel, n_novel=2).item())


def test_exemplars_are_of_every_cluster_and_of_revealed_labels(make_method, stages):
    method = make_method(GrowAndMerge, n_replay=3)
    for stage, _ in stages("igcd-l"):
        method.learn(stage)
        clusters = method._memory.clusters.tolist()
        named = set(method.clusters_of_categories().values())
        assert named <= set(clusters) and max(clusters.count(cluster) for cluster in set(clusters)) <= 3
        labeled_now = set(method._book.of(stage.labels).tolist())
        is_pseudo = method._memory.entries.is_pseudo
        assert not any(is_pseudo[row] for row, cluster in enumerate(clusters) if cluster in labeled_now)
    assert method.kept().images == len(clusters)


@pytest.mark.parametrize("features", ["frozen", "dual"])
def test_known_and_novel_may_be_told_apart_in_the_space_that_was_not_trained(make_method, encoder, stages, features):
    method, again = (make_method(GrowAndMerge, features=features) for _ in range(2))
    (first, _), (second, _), (_, truth) = stages("mi")
    method.learn(first)
    views = encoder.plain_views(second.unlabeled)
    before = method._space.compared(views)
    method.learn(second)
    is_still = torch.allclose(before, method._space.compared(views))
    assert is_still == (features == "frozen")  # training moves the other part
    torch.testing.assert_close(before.norm(dim=1), torch.ones(len(before)))
    again.load_state_dict(*method.state_dict())
    assert torch.equal(again._space.compared(views), method._space.compared(views))
    assert torch.equal(again.predict(truth.test_images).cluster, method.predict(truth.test_images).cluster)
