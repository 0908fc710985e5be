"""Which peaks open a category, on points of a circle one could draw."""

import pytest
import torch

from igcd.functional.density import find_density_peaks
from igcd.functional.granularity import Granularity
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novel_peaks import find_novel_peaks


def circle(*degrees):
    angle = torch.deg2rad(torch.tensor(degrees, dtype=torch.float32))
    return torch.stack([angle.cos(), angle.sin()], dim=1)


UNLABELED = circle(-1.0, 0.0, 1.5, 88.5, 90.0, 91.0)
KNOWN = circle(-0.5, 0.5, 180.0, 181.0)
CATEGORIES = torch.tensor([3, 3, 8, 8])
FINE = Granularity(K=2, K_d=2, margin=0.0001)


def find(**options):
    return find_novel_peaks(UNLABELED, KNOWN, CATEGORIES, FINE, n_support=2, **{"n_members": 2} | options)


def test_a_peak_that_a_known_category_explains_opens_nothing():
    found = find()
    assert found.members.idx.tolist() == [4, 5] and found.members.peak.tolist() == [0, 0]
    assert found.nearest.tolist() == [3]


def test_without_the_rule_every_unlabeled_peak_of_the_joint_graph_opens():
    graph = neighbor_graph(torch.cat([UNLABELED, KNOWN]), 2)
    peaks = [p for p in find_density_peaks(graph, n_neighbors=2, n_overlap_neighbors=2).idx.tolist() if p < 6]
    found = find(rule="none", n_members=6)
    firsts = [int(found.members.idx[found.members.peak == row][0]) for row in range(len(found.nearest))]
    assert peaks and firsts == peaks
    assert set(found.members.idx.tolist()) <= set(range(len(UNLABELED)))


@pytest.mark.parametrize("margin", [-3.0, 0.0001, 3.0])
def test_a_larger_margin_opens_no_more(margin):
    opened = [
        len(find_novel_peaks(UNLABELED, KNOWN, CATEGORIES, Granularity(2, 2, m), n_support=2, n_members=2).nearest)
        for m in (margin, margin + 0.5)
    ]
    assert opened[0] >= opened[1]


def test_the_graph_is_no_larger_than_the_set():
    wide = Granularity(K=10, K_d=20, margin=-3.0)
    found = find_novel_peaks(UNLABELED[3:], KNOWN, CATEGORIES, wide, n_support=5, n_members=5)
    assert sorted(found.members.idx.tolist()) == [0, 1, 2] and found.nearest.tolist() == [3]
