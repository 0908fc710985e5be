"""The paper's method on a few digits, with a small random network: what must hold whatever it learns."""

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.methods.method import Context
from igcd.methods.novel_count import EstimatedCount
from igcd.methods.snn_density import SnnDensity
from igcd.training import Optimization
from igcd.types import UNLABELED, Stage


def make_method(encoder, seed=0, **options):
    brief = Optimization(1, learning_rate=0.05, batch_size=64)
    context = Context(encoder, Fabric(accelerator="cpu", devices=1), seed)
    training = {"first_stage": brief, "later_stages": brief, "count_novel": EstimatedCount("density")}
    return SnnDensity(context, **training, **{"K": 4, "K_d": 8, "discovery": "peaks"} | options)


VARIANTS = {
    "tuned": {"features": "tuned"},
    "frozen": {"features": "frozen"},
    "dual": {"features": "dual"},
    "means": {"features": "dual", "frozen_support": "means"},
    "auto": {"features": "dual", "K": "auto", "margin": "auto"},
    "core": {"features": "dual", "discovery": "core"},
    "core, tuned": {"features": "tuned", "discovery": "core"},
    "core, frozen": {"features": "frozen", "discovery": "core", "frozen_support": "means"},
    "random support": {"support_selection": "random"},
    "herded support": {"support_selection": "herding", "features": "dual"},
    "herding": {"replay_selection": "herding"},
    "no replay": {"replay_selection": "none"},
    "as released": {"T": 1.0, "discovery": "all_peaks", "n_support": 1},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_learns_and_keeps_its_budget(encoder, stages, variant):
    method = make_method(encoder, **VARIANTS[variant])
    n_support = VARIANTS[variant].get("n_support", 5)
    for stage, truth in stages("igcd-u"):
        method.learn(stage)
        assignment = method.predict(truth.test_images)
        assert len(assignment.cluster) == len(truth.test.image_ids)
        assert ((assignment.probability > 0) & (assignment.probability <= 1 + 1e-6)).all()
        clusters = set(method.clusters_of_categories().values()) | {d.cluster for d in method.discoveries()}
        assert set(assignment.cluster.tolist()) <= clusters
        kept = method.kept()
        assert kept.support_images <= n_support * len(clusters)
        assert kept.replay_images <= 3 * len(clusters)
        assert kept.replay_images == 0 or variant != "no replay"


def test_kept_means_are_of_all_labeled_images_and_of_those_a_novel_category_claimed(encoder, stages):
    """Nothing trained: the classifier is then the nearest mean of all labeled images, whatever S holds."""
    method = make_method(encoder, features="frozen", frozen_support="means", n_support=1)
    (first, first_truth), (second, _), *_ = stages("mi")
    method.learn(first)
    h, test = (
        method._space.compared(encoder.plain_views(images)) for images in (first.labeled, first_truth.test_images)
    )
    means = torch.stack([h[first.labels == category].mean(dim=0) for category in range(4)])
    cosines = torch.nn.functional.cosine_similarity(test[:, None], means[None], dim=2)
    clusters = method.clusters_of_categories()
    expected = [clusters[category] for category in cosines.argmax(dim=1).tolist()]
    assert method.predict(first_truth.test_images).cluster.tolist() == expected
    labeled_means = method._support.means.of.means
    method.learn(second)
    assert torch.equal(method._support.means.of.means[:4], labeled_means)  # no label came, so none of them moved
    assert set(method._support.means.clusters.tolist()) == set(clusters.values()) | {
        d.cluster for d in method.discoveries()
    }
    again = make_method(encoder, features="frozen", frozen_support="means", n_support=1)
    again.load_state_dict(*method.state_dict())
    assert torch.equal(again._support.means.of.means, method._support.means.of.means)


def test_a_mean_of_many_images_outlives_one_of_few(encoder, stages):
    method = make_method(encoder, features="frozen", frozen_support="means")
    (first, _), *_ = stages("mi")
    method.learn(first)
    before = method._support.means.of.means
    few = Stage(1, first.labeled.take(np.arange(4)), first.labels[:4], first.unlabeled, first.category_names)
    method.learn(few)
    assert torch.equal(method._support.means.of.means[: len(before)], before)


@pytest.mark.parametrize("discovery", ["core", "peaks"])
@pytest.mark.parametrize("protocol", ["igcd-l", "mi", "static"])
def test_every_protocol(encoder, stages, protocol, discovery):
    method = make_method(encoder, features="dual", discovery=discovery)
    for stage, truth in stages(protocol):
        method.learn(stage)
        assert (method.predict(truth.test_images).cluster != UNLABELED).all()
        assert set(method.clusters_of_categories()) == set(range(len(stage.category_names)))


@pytest.mark.parametrize("options", [{"features": "frozen"}, {"features": "dual", "replay_selection": "herding"}])
def test_replay_holds_other_images_than_support(encoder, stages, options):
    """Five images in S and three others in R, of labeled categories and of discoveries that have as many."""
    method = make_method(encoder, **options)
    (first, _), (second, _), *_ = stages("mi")
    method.learn(first)
    assert method.kept().images == 4 * (5 + 3)
    method.learn(second)
    support, replay = method._support.entries, method._replay.entries
    assert method.discoveries()
    for found in method.discoveries():
        claimed = (method.predict(second.unlabeled).cluster == found.cluster).sum()
        shared = set(support.image_ids) & {
            i for i, c in zip(replay.image_ids, replay.categories.tolist(), strict=True) if c == found.cluster
        }
        assert not shared or claimed < 8


def test_a_category_of_few_images_is_replayed_all_the_same(encoder, stages):
    (first, _), *_ = stages("mi")
    few = np.concatenate([np.flatnonzero(first.labels == category)[:4] for category in range(4)])
    method = make_method(encoder, features="frozen")
    method.learn(Stage(0, first.labeled.take(few), first.labels[few], first.unlabeled, first.category_names))
    assert method.kept().replay_images == 4 * 3 and method.kept().images == 4 * 4


def test_a_category_keeps_its_cluster(encoder, stages):
    method = make_method(encoder, features="dual")
    before: dict[int, int] = {}
    for stage, _ in stages("igcd-l"):
        method.learn(stage)
        now = method.clusters_of_categories()
        assert before.items() <= now.items()
        assert len(set(now.values())) == len(now)
        before = now


def test_a_revealed_label_names_the_discovery_that_holds_its_images(encoder, stages):
    """The discovery is made of one digit; when that digit's label arrives, it has the id of the discovery."""
    (first, _), (second, truth), *_ = stages("igcd-l")
    method = make_method(encoder, features="frozen", discovery="all_peaks")
    method.learn(first)
    method.learn(second)
    predicted = method.predict(second.unlabeled).cluster.numpy()
    found = {discovery.cluster for discovery in method.discoveries()}
    hidden = np.asarray(truth.unlabeled.categories)
    names = (*second.category_names, *sorted(set(hidden.tolist()) - set(second.category_names)))
    labels = np.asarray([names.index(category) for category in hidden], dtype=np.int64)
    method.learn(Stage(2, second.unlabeled, labels, second.unlabeled.take([]), names))
    named = method.clusters_of_categories()
    for category in range(len(second.category_names), len(names)):
        mostly = [
            cluster
            for cluster in found
            if 2 * (labels[predicted == cluster] == category).sum() > (predicted == cluster).sum()
        ]
        if mostly:
            assert named[category] in mostly
        else:
            assert named[category] not in found
    assert not {discovery.cluster for discovery in method.discoveries()} - set(named.values())


@pytest.mark.parametrize("discovery", ["core", "peaks"])
def test_the_state_can_be_taken_up_again(encoder, stages, discovery):
    options = {"features": "dual", "discovery": discovery}
    method, again = make_method(encoder, **options), make_method(encoder, seed=5, **options)
    *earlier, (_, truth) = stages("igcd-l")
    for stage, _ in earlier:
        method.learn(stage)
    again.load_state_dict(*method.state_dict())
    assert again._granularity == method._granularity
    assert torch.equal(method.predict(truth.test_images).cluster, again.predict(truth.test_images).cluster)
    assert again.discoveries() == method.discoveries() and again.kept() == method.kept()


def test_a_herded_support_has_the_mean_of_its_category(encoder, stages):
    """Nothing trained: the mean of three herded images lies closer to that of all than the peak and its nearest do."""
    (stage, _), *_ = stages("mi")
    distances = {}
    for way in ("herding", "density"):
        method = make_method(encoder, features="frozen", n_support=3, support_selection=way)
        method.learn(stage)
        cluster_of, support = method.clusters_of_categories(), method._classifier
        h = method._space.compared(encoder.plain_views(stage.labeled))
        means = {c: normalize(h[stage.labels == c].mean(0), dim=0) for c in cluster_of}
        distances[way] = sum(
            float((normalize(support.features[support.categories == cluster].mean(0), dim=0) - means[c]).norm())
            for c, cluster in cluster_of.items()
        )
    assert distances["herding"] < distances["density"]


def test_the_seed_decides(encoder, stages):
    def answers(seed):
        method = make_method(encoder, seed=seed, support_selection="random")
        (stage, truth), *_ = stages("mi")
        method.learn(stage)
        return method.predict(truth.test_images).probability

    assert torch.equal(answers(0), answers(0))
    assert not torch.equal(answers(0), answers(1))


def test_shuffling_a_stage_changes_no_prediction(encoder, stages):
    (stage, truth), *_ = stages("mi")
    order = np.random.default_rng(0).permutation(len(stage.labeled))
    shuffled = Stage(0, stage.labeled.take(order), stage.labels[order], stage.unlabeled, stage.category_names)
    methods = make_method(encoder, features="frozen"), make_method(encoder, features="frozen")
    methods[0].learn(stage)
    methods[1].learn(shuffled)
    first, second = (method.predict(truth.test_images).cluster for method in methods)
    assert (first == second).float().mean() > 0.95  # equal densities are told apart by their order


def test_a_first_stage_without_labels_is_a_sentence(encoder, stages):
    _, (second, _), *_ = stages("igcd-u")
    with pytest.raises(IgcdError, match="first stage must have labeled images"):
        make_method(encoder).learn(second)


def test_predicting_before_learning_is_a_sentence(encoder, stages):
    (_, truth), *_ = stages("mi")
    with pytest.raises(IgcdError, match="learn"):
        make_method(encoder, features="dual").predict(truth.test_images)
