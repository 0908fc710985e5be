"""What all methods share, on a method that reads the cluster of an image from a table."""

import numpy as np
import pytest
import torch

from igcd.errors import IgcdError
from igcd.methods.base import N_MEMBERS, BaseMethod
from igcd.methods.method import Context
from igcd.methods.novel_count import GivenCounts
from igcd.training import Optimization
from igcd.types import UNLABELED, Stage


class Table:
    """Images by id, a few of which cannot be read."""

    def __init__(self, ids, broken=()):
        self.ids = tuple(ids)
        self.usable_idx = np.array([i for i, name in enumerate(self.ids) if name not in broken], dtype=np.int64)

    def __len__(self):
        return len(self.ids)


class PlainEncoder:
    def plain_views(self, images):
        return images


class Lookup(BaseMethod):
    """Images named like "7b" are of cluster 7."""

    def __init__(self):
        brief = Optimization(1)
        context = Context(PlainEncoder(), None, 0)
        super().__init__(context, first_stage=brief, later_stages=brief, count_novel=GivenCounts(()))
        self.forgotten = []

    def learn(self, stage):
        return self._take_in_labels(stage)

    def _assign(self, views):
        clusters = torch.tensor([int(views.ids[i][0]) for i in views.usable_idx])
        return clusters, 1 / (2.0 + torch.arange(len(clusters)))

    def _forget(self, clusters):
        self.forgotten += sorted(clusters)


def stage(index, labeled=(), labels=(), unlabeled=()):
    return Stage(index, Table(labeled), np.array(labels, dtype=np.int64), Table(unlabeled), ())


@pytest.fixture
def method():
    """Two labeled categories, clusters 0 and 1, and discoveries 2, 3, 4."""
    method = Lookup()
    method.learn(stage(0, ["0a", "1a"], [0, 1]))
    unlabeled = Table(["2a", "3a", "4a", "2b"])
    method._book.open(3)
    method._record(stage(1, unlabeled=unlabeled.ids), unlabeled, method._assign(unlabeled), {2: 0, 3: 1, 4: None})
    return method


def test_an_image_that_cannot_be_read_is_unlabeled(method):
    assignment = method.predict(Table(["1a", "0b", "1c"], broken=["0b"]))
    assert assignment.cluster.tolist() == [1, UNLABELED, 1]
    assert assignment.probability.tolist() == pytest.approx([1 / 2, 0, 1 / 3])


def test_a_discovery_names_its_most_probable_images_first(method):
    first, second, third = method.discoveries()
    assert (first.cluster, first.stage, first.members, first.nearest_known) == (2, 1, ("2a", "2b"), 0)
    assert (second.members, third.nearest_known) == (("3a",), None)
    many = Table([f"5{i}" for i in range(20)])
    cluster, probability = method._assign(many)
    method._record(stage(2, unlabeled=many.ids), many, (cluster, probability.flip(0)), {5: None})
    assert method.discoveries()[-1].members == many.ids[: -N_MEMBERS - 1 : -1]


def test_a_label_names_a_discovery_and_discards_the_others(method):
    """Category 7 arrives with images of discovery 3, category 8 with images of known cluster 0."""
    named = method.learn(stage(2, ["3a", "3b", "0c"], [7, 7, 8]))
    assert named == {3}
    assert method.clusters_of_categories() == {0: 0, 1: 1, 7: 3, 8: 5}
    assert method.forgotten == [2, 4] and [found.cluster for found in method.discoveries()] == [3]


def test_the_book_is_part_of_the_state(method):
    again = Lookup()
    again.load_state_dict(*method.state_dict())
    assert again.discoveries() == method.discoveries()
    assert again.clusters_of_categories() == method.clusters_of_categories()


def test_predicting_before_learning_is_a_sentence():
    with pytest.raises(IgcdError, match="learned nothing yet"):
        Lookup().predict(Table(["0a"]))
