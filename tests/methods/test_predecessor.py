"""What Happy, FRoST and Grow and Merge have in common: a network as it was, and what must hold for all three."""

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from igcd.functional.losses import self_supervised_contrastive
from igcd.methods.frost import Frost
from igcd.methods.gm import GrowAndMerge
from igcd.methods.happy import Happy
from igcd.methods.predecessor import Predecessor
from igcd.methods.two_views import TwoViews, supervised_loss
from igcd.types import Stage

METHODS = [Happy, Frost, GrowAndMerge]


def linear(value):
    tail = nn.Linear(2, 2, bias=False)
    tail.weight.data = torch.tensor(value)
    return tail


def test_the_predecessor_sees_what_the_tail_sees_with_the_weights_of_before():
    tail = linear([[1.0, 0.0], [0.0, 1.0]])
    with Predecessor(tail) as before:
        tail.weight.data = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        assert tail(torch.tensor([[3.0, 4.0], [0.0, 2.0]])).tolist() == [[4.0, 3.0], [2.0, 0.0]]
        torch.testing.assert_close(before.h, torch.tensor([[0.6, 0.8], [0.0, 1.0]]))
        assert not before.h.requires_grad
    tail(torch.tensor([[1.0, 0.0]]))  # out of the `with` it sees nothing any more
    assert len(before.h) == 2


@pytest.mark.parametrize(("momentum", "weight"), [(0.0, 5.0), (0.75, 2.0), (1.0, 1.0)])
def test_merging_is_the_weighted_mean_of_before_and_now(momentum, weight):
    tail = linear([[1.0, 1.0], [1.0, 1.0]])
    before = Predecessor(tail)
    parameter = tail.weight
    tail.weight.data.fill_(5.0)
    before.merge_into_trained(momentum=momentum)
    assert tail.weight is parameter  # an optimizer holds it
    assert torch.equal(tail.weight, torch.full((2, 2), weight))


def some_views(targets, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = [normalize(torch.randn(2, 4, width, generator=generator), dim=2).unbind() for width in (5, 6, 3)]
    return TwoViews(*rows, targets=torch.tensor(targets, dtype=torch.int64))


def test_the_supervised_loss_by_hand():
    """Two labeled images, both of column 1 whose cosine is 0.1 above each of the two others at τ = 0.1."""
    views = some_views([1, 1])
    cosines = torch.tensor([[0.2, 0.3, 0.2]]).expand(4, 3)
    views = TwoViews(views.h, (views.z[0],) * 2, (cosines, cosines), views.targets)
    value = supervised_loss(views, labeled_weight=1.0, tau=0.1, tau_u=1.0, tau_c=1e6)
    cross_entropy = -torch.log(torch.e / (torch.e + torch.tensor(2.0)))
    even = torch.log(torch.tensor(3.0))  # at a huge temperature each of the three other views is as likely
    assert value == pytest.approx((cross_entropy + even).item(), abs=1e-4)


def test_without_labels_only_the_self_supervised_part_is_left():
    views = some_views([])
    value = supervised_loss(views, labeled_weight=0.0, tau=0.1, tau_u=1.0, tau_c=0.07)
    assert value == pytest.approx(self_supervised_contrastive(*views.z, tau=1.0).item())


# What must hold for all three ------------------------------------------------------------------------------------


def clusters_of(method):
    return set(method.clusters_of_categories().values()) | {found.cluster for found in method.discoveries()}


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u", "mi", "static"])
@pytest.mark.parametrize("kind", METHODS)
def test_every_protocol(make_method, stages, kind, protocol):
    counts = (5,) if protocol == "static" else (0, 2, 2)
    method = make_method(kind, counts=counts)
    before: dict[int, int] = {}
    for stage, truth in stages(protocol):
        method.learn(stage)
        assignment = method.predict(truth.test_images)
        assert set(assignment.cluster.tolist()) <= clusters_of(method)
        assert ((assignment.probability > 0) & (assignment.probability <= 1 + 1e-6)).all()
        now = method.clusters_of_categories()
        assert set(now) == set(range(len(stage.category_names)))
        assert before.items() <= now.items() and len(set(now.values())) == len(now)  # ids are permanent
        before = now
        found = [discovery for discovery in method.discoveries() if discovery.stage == stage.index]
        assert len(found) == counts[stage.index]
        ids = set(stage.unlabeled.ids)
        assert all(len(discovery.members) <= 12 and ids >= set(discovery.members) for discovery in found)
        kept = method.kept()
        assert kept.images <= (8 if kind is GrowAndMerge else 0) * len(clusters_of(method))
        assert kept.bytes > 0


@pytest.mark.parametrize("kind", METHODS)
def test_the_state_can_be_taken_up_again(make_method, stages, kind):
    method, again = make_method(kind), make_method(kind)
    *earlier, (last, truth) = stages("igcd-l")
    for stage, _ in earlier:
        method.learn(stage)
    again.load_state_dict(*method.state_dict())
    for _ in range(2):  # as they are, and after another stage: nothing that learning needs is missing from the state
        first, second = method.predict(truth.test_images), again.predict(truth.test_images)
        assert torch.equal(first.cluster, second.cluster) and torch.equal(first.probability, second.probability)
        assert again.discoveries() == method.discoveries() and again.kept() == method.kept()
        method.learn(last)
        again.load_state_dict(*again.state_dict())
        again.learn(last)


@pytest.mark.parametrize("n_done", [1, 2])
@pytest.mark.parametrize("kind", METHODS)
def test_a_stage_that_was_stopped_ends_as_if_it_had_not_been(make_method, in_memory, stages, kind, n_done):
    (first, _), (second, truth), *_ = stages("mi")
    begun = make_method(kind)
    begun.learn(first)
    state = begun.state_dict()

    def learn(checkpoint):
        method = make_method(kind, n_epochs=3, checkpoint=checkpoint)
        method.load_state_dict(*state)
        method.learn(second)
        return method

    checkpoint = in_memory()
    whole = learn(checkpoint)
    resumed = learn(in_memory(n_done, checkpoint.saved[n_done]))
    assert torch.equal(whole.predict(truth.test_images).probability, resumed.predict(truth.test_images).probability)
    assert whole.discoveries() == resumed.discoveries()


@pytest.mark.parametrize("kind", METHODS)
def test_the_seed_decides(make_method, stages, kind):
    def answers(seed):
        method = make_method(kind, seed=seed)
        (first, _), (second, truth), *_ = stages("mi")
        method.learn(first)
        method.learn(second)
        return method.predict(truth.test_images).probability

    assert torch.equal(answers(0), answers(0))
    assert not torch.equal(answers(0), answers(1))


@pytest.mark.parametrize("n_unlabeled", [0, 1])
@pytest.mark.parametrize("kind", METHODS)
def test_a_stage_with_hardly_an_image(make_method, stages, kind, n_unlabeled):
    (first, _), (second, truth), *_ = stages("mi")
    method = make_method(kind, n_epochs=3)
    method.learn(first)
    few = Stage(1, second.labeled, second.labels, second.unlabeled.take(range(n_unlabeled)), second.category_names)
    method.learn(few)
    assert len(method.discoveries()) == n_unlabeled  # no more novel categories than images
    assert torch.isfinite(method.predict(truth.test_images).probability).all()


@pytest.mark.parametrize("kind", [Happy, GrowAndMerge])
def test_distillation_holds_the_feature_where_it_was(make_method, encoder, stages, kind):
    """With it the images of stage 0 look more like they did before stage 1 than without."""
    (first, _), (second, _), *_ = stages("mi")

    def moved(weight):
        method = make_method(kind, n_epochs=3, distillation_weight=weight)
        method.learn(first)
        views = encoder.plain_views(first.labeled)
        before = method._h(views)
        method.learn(second)
        return (method._h(views) - before).norm(dim=1).mean()

    assert moved(30.0) < moved(0.0)
