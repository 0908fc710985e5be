"""Which peaks open a category, on points of a circle one could draw, and which groups of the core do, on blobs."""

import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional.density import find_density_peaks, peak_members
from igcd.functional.discovery import discover
from igcd.functional.granularity import Granularity
from igcd.functional.heights import Heights
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novel_peaks import find_novel_categories, find_novel_peaks
from igcd.functional.projection import project_together


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
    found = find(by="all_peaks", n_members=6)
    firsts = [int(found.members.idx[found.members.peak == row][0]) for row in range(len(found.nearest))]
    assert peaks and firsts == peaks
    assert set(found.members.idx.tolist()) <= set(range(len(UNLABELED)))


def test_a_known_image_that_is_a_peak_of_the_joint_graph_opens_nothing():
    """The first known image, which comes right after the unlabeled ones, is the densest of its category."""
    known = circle(180.0, 179.0, 181.0)
    found = find_novel_peaks(UNLABELED, known, torch.zeros(3).long(), FINE, n_support=2, n_members=3, by="all_peaks")
    graph = neighbor_graph(torch.cat([UNLABELED, known]), 2)
    assert len(UNLABELED) in find_density_peaks(graph, n_neighbors=2, n_overlap_neighbors=2).idx.tolist()
    assert len(found.nearest) == 2 and int(found.members.idx.max()) < len(UNLABELED)


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


def slow_novel_peaks(unlabeled, known, categories, granularity, *, n_support, n_members, by, n_novel):
    """Peak by peak, with the paper's numbers: 5 closest images, peaks that share 60% of their neighbors are one."""
    rows = torch.cat([unlabeled, known]) if by == "all_peaks" else unlabeled
    width = min(max(granularity.K, granularity.K_d, n_support), len(rows) - 1)
    graph = neighbor_graph(rows, width)
    found = find_density_peaks(
        graph, n_neighbors=min(granularity.K, width), n_overlap_neighbors=min(granularity.K_d, width), max_iou=0.6
    )
    opened = []
    for peak in (peak for peak in found.idx.tolist() if peak < len(unlabeled)):
        closest = {}
        for category in categories.unique().tolist():
            cosines = (
                (normalize(known[categories == category], dim=1) @ normalize(unlabeled[peak], dim=0)).sort().values
            )
            closest[category] = float(cosines[-5:].mean())
        nearest = max(closest, key=closest.get)
        excess = float(found.density[peak]) - (closest[nearest] if by == "peaks" else 0)
        if n_novel is not None or by == "all_peaks" or excess > granularity.margin:
            opened.append((peak, nearest, excess))
    if n_novel is not None:
        kept = sorted(opened, key=lambda one: -one[2])[:n_novel]
        opened = [one for one in opened if one in kept]
    around = peak_members(torch.tensor([peak for peak, _, _ in opened]), graph, n_members=n_members)
    pairs = list(zip(around.idx.tolist(), around.peak.tolist(), strict=True))
    members = [[image for image, of in pairs if of == row and image < len(unlabeled)] for row in range(len(opened))]
    return members, [nearest for _, nearest, _ in opened]


@pytest.mark.parametrize("n_novel", [None, 2])
@pytest.mark.parametrize("by", ["peaks", "all_peaks"])
@pytest.mark.parametrize("seed", range(6))
def test_peaks_equal_their_slow_twin(seed, by, n_novel):
    generator = torch.Generator().manual_seed(seed)
    categories = torch.arange(5).repeat_interleave(8)
    centers = torch.randn(9, 6, generator=generator)
    known = centers[categories] + 0.6 * torch.randn(40, 6, generator=generator)
    unlabeled = centers.repeat_interleave(9, dim=0) + 0.6 * torch.randn(81, 6, generator=generator)
    granularity = Granularity(K=(3, 5)[seed % 2], K_d=(7, 4)[seed % 2], margin=0.02)
    options = {"n_support": (2, 9)[seed % 2], "n_members": 10, "by": by, "n_novel": n_novel}
    found = find_novel_peaks(unlabeled, known, categories, granularity, **options)
    members, nearest = slow_novel_peaks(unlabeled, known, categories, granularity, **options)
    assert found.nearest.tolist() == nearest and len(nearest) >= 1
    assert [found.members.idx[found.members.peak == row].tolist() for row in range(len(nearest))] == members


def blobs(categories, n_each, seed):
    rows = torch.tensor(categories).repeat_interleave(n_each)
    noise = 0.1 * torch.randn(len(rows), 16, generator=torch.Generator().manual_seed(seed))
    return normalize(torch.eye(16)[rows] + noise, dim=1), rows


@pytest.mark.parametrize("n_members", [1, 4, 100])
def test_members_of_a_category_are_its_own_images_most_like_the_typical_one(n_members):
    """Against a loop: of all images that the core gives to a category, those with the largest cosine to the typical."""
    (known, categories), (unlabeled, truth) = blobs([1, 2, 3, 4, 5], 12, 0), blobs([1, 2, 3, 4, 5, 9, 10], 15, 1)
    granularity = Granularity(heights=None, smallest=5)
    found = find_novel_peaks(unlabeled, known, categories, granularity, n_support=1, n_members=n_members, by="core")
    assert found.members.peak.max() == 1 and set(found.nearest.tolist()) <= {1, 2, 3, 4, 5}
    rows, unknown = project_together(known, unlabeled)
    core = discover(unknown, rows, categories, smallest=5)
    white = core.whitening(unknown)
    for row in range(2):
        idx = found.members.idx[found.members.peak == row].tolist()
        assert idx[0] == core.typical[row] and len(set(truth[idx].tolist())) == 1 and truth[idx[0]] in (9, 10)
        own = [i for i in range(len(unlabeled)) if core.category[i] == 5 + row and i != idx[0]]
        own.sort(key=lambda i: -float(white[i] @ white[idx[0]]))
        assert idx[1:] == own[: n_members - 1]


def test_the_core_cuts_where_the_granularity_says():
    (known, categories), (unlabeled, _) = blobs([1, 2, 3, 4, 5], 12, 0), blobs([1, 2, 3, 4, 5, 9, 10], 15, 1)
    found = [
        len(find_novel_categories(unlabeled, known, categories, granularity, n_members=3).nearest)
        for granularity in (
            Granularity(heights=Heights((0.1,), (1e9,), 12.0)),
            Granularity(heights=Heights((0.1,), (1e-9,), 12.0)),
            Granularity(heights=Heights((0.1,), (1e-9,), 12.0), smallest=16),
        )
    ]
    assert found[0] == 0 and found[1] > 2 and found[2] < found[1]


@pytest.mark.parametrize("by", ["peaks", "all_peaks"])
def test_a_given_number_opens_as_many_peaks_as_there_are(by):
    several = find(by=by, n_novel=5)
    for n_novel in range(len(several.nearest) + 1):
        found = find(by=by, n_novel=n_novel)
        assert len(found.nearest) == n_novel == len(set(found.members.peak.tolist()))


def test_of_a_given_number_the_peaks_least_like_the_known_open():
    assert find(n_novel=1).members.idx.tolist() == [4, 5]  # the peak at 0 degrees is as dense, and known
    assert len(find(n_novel=2).nearest) == 2


def test_the_core_opens_the_given_number():
    known, categories = blobs(range(6), 20, seed=0)
    unlabeled, _ = blobs([0, 1, 8, 9], 20, seed=1)
    for n_novel in (1, 2, 3):
        found = find_novel_categories(unlabeled, known, categories, FINE, n_members=3, n_novel=n_novel)
        assert len(found.nearest) == n_novel
