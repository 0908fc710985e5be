"""Gaussians with covariances of their own over a stream; what holds for every newer method is in test_newer_methods."""

import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional.own_gaussians import OwnGaussians, learned_covariances, log_determinants, sample_covariances
from igcd.methods.vb_cgcd import VbCgcd
from igcd.types import Stage


def make(make_method, **more):
    return make_method(VbCgcd, **{"n_components": 16, "features": "frozen"} | more)


def test_labeled_images_alone_give_their_gaussians(make_method, stages):
    method = make(make_method, step=0.01, n_steps=30)
    (stage, truth), *_ = stages("mi")
    method.learn(stage)
    x = method._compared(method._encoder.plain_views(stage.labeled)) * method._scale
    means, samples = sample_covariances(x, method._book.of(stage.labels), n_categories=4)
    assert float(samples.diagonal(dim1=1, dim2=2).mean()) == pytest.approx(1, rel=0.01)  # the unit of the space
    gaussians = OwnGaussians(means, learned_covariances(samples, step=0.01, n_steps=30))
    queries = method._compared(method._encoder.plain_views(truth.test_images)) * method._scale
    assert torch.equal(method.predict(truth.test_images).cluster, gaussians.predict(queries)[0])


class OnPoints(VbCgcd):
    """The method on points that are given as they are compared."""

    def _compared(self, views):
        return views


def blobs(categories, n_each, seed):
    rows = torch.tensor(categories).repeat_interleave(n_each)
    noise = 0.1 * torch.randn(len(rows), 16, generator=torch.Generator().manual_seed(seed))
    return normalize(torch.eye(16)[rows] + noise, dim=1), rows


@pytest.fixture
def six_known(make_method):
    method = make_method(OnPoints, features="frozen")
    x, rows = blobs(range(6), 20, seed=0)
    method._begin(x, rows)
    method._add_labeled(x * method._scale, rows)
    return method


def test_the_mixture_finds_the_novel_blobs_among_known_ones(six_known, stages):
    (stage, _), *_ = stages("mi")
    x, truth = blobs([*range(6), 8, 9], 20, seed=1)
    novel = six_known._find_novel(stage, x * six_known._scale, 2)
    means = torch.stack([x[truth == category].mean(dim=0) for category in (8, 9)]) * six_known._scale
    distances = torch.cdist(novel.means, means)  # the blobs are 14 apart
    assert sorted(distances.argmin(dim=1).tolist()) == [0, 1] and float(distances.min(dim=1).values.max()) < 3


def test_novel_covariances_stop_at_the_determinants_of_the_known(six_known):
    x, rows = blobs([8, 9], 20, seed=1)
    tight = 0.3 * x * six_known._scale
    known = log_determinants(six_known._gaussians.covariances).mean()
    stopped = log_determinants(six_known._novel_gaussians(tight, rows - 8).covariances).mean()
    six_known._early_stop = False
    all_steps = log_determinants(six_known._novel_gaussians(tight, rows - 8).covariances).mean()
    assert all_steps < known and stopped > all_steps


def test_a_gaussian_of_more_images_is_kept(six_known):
    before = six_known._gaussians
    x, rows = blobs([0, 7], 5, seed=3)
    six_known._add_labeled(x, rows)
    assert six_known._clusters.tolist() == [0, 1, 2, 3, 4, 5, 7] and torch.equal(
        six_known._gaussians.means[:6], before.means
    )
    x, rows = blobs([1], 30, seed=3)
    six_known._add_labeled(x, rows)
    assert six_known._clusters.tolist() == [0, 2, 3, 4, 5, 7, 1]
    assert torch.allclose(six_known._gaussians.means[-1], x.mean(dim=0), atol=1e-5)


def test_the_number_is_asked_of_the_counter(make_method, stages):
    method = make(make_method)
    asked = []
    method._count_novel = lambda *args: asked.append([len(part) for part in args[1:]]) or 2
    (first, _), (second, _), *_ = stages("igcd-u")
    method.learn(first)
    method.learn(second)
    assert asked == [[4, 4, len(second.unlabeled)]]  # a mean for each of the categories without images now
    assert len(method.discoveries()) <= 2
    method.learn(Stage(2, second.labeled, second.labels, second.unlabeled.take([]), second.category_names))
    assert len(asked) == 1
