import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from igcd.errors import IgcdError
from igcd.functional.density import (
    choose_n_neighbors,
    density,
    density_peaks,
    find_density_peaks,
    neighbor_overlap,
    peak_count_error,
    peak_members,
    remove_redundant_peaks,
)
from igcd.functional.neighbors import Neighbors, neighbor_graph


def on_circle(degrees):
    angles = torch.deg2rad(torch.tensor(degrees, dtype=torch.float64))
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def clusters(n_clusters, n_each, *, spread, seed, width=16):
    """Gaussian clusters around the axes: (images of cluster 0, of cluster 1, …), and the cluster of each."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.arange(n_clusters).repeat_interleave(n_each)
    centers = torch.eye(width, dtype=torch.float64)[:n_clusters]
    noise = torch.randn(len(rows), width, generator=generator, dtype=torch.float64)
    return centers[rows] + spread * noise, rows


def slow_density(features, k):
    n = len(features)
    densities = []
    for i in range(n):
        cosines = [
            float(features[i] @ features[j] / (features[i].norm() * features[j].norm())) for j in range(n) if j != i
        ]
        densities.append(sum(sorted(cosines, reverse=True)[:k]) / k)
    return densities


def slow_peaks(densities, neighbor_lists):
    """Eq. 9 by its words, equals decided by index; densest first."""
    peaks = []
    for i, neighbor_list in enumerate(neighbor_lists):
        if all((densities[i], -i) > (densities[j], -j) for j in neighbor_list):
            peaks.append(i)
    return sorted(peaks, key=lambda i: (-densities[i], i))


def slow_removal(peaks, neighbor_lists, max_iou):
    kept = []
    for i in peaks:
        sets = [(set(neighbor_lists[i]), set(neighbor_lists[j])) for j in kept]
        if all(len(a & b) / len(a | b) <= max_iou for a, b in sets):
            kept.append(i)
    return kept


def slow_members(peaks, graph, n_members):
    owner = {peak: (math.inf, row) for row, peak in enumerate(peaks)}
    for row, peak in enumerate(peaks):
        for image, similarity in zip(graph.idx[peak].tolist(), graph.similarity[peak].tolist(), strict=True):
            if image not in owner or similarity > owner[image][0]:
                owner[image] = (similarity, row)
    members = []
    for row, peak in enumerate(peaks):
        own = [peak] + [image for image in graph.idx[peak].tolist() if owner[image][1] == row]
        members += [(image, row) for image in own[:n_members]]
    return members


def test_density_on_a_circle():
    features = on_circle([0, 10, 25, 90])
    expected = (math.cos(math.radians(10)) + math.cos(math.radians(25))) / 2
    assert float(density(neighbor_graph(features, 2))[0]) == pytest.approx(expected, abs=1e-6)


def test_density_equals_slow_twin():
    features, _ = clusters(3, 12, spread=0.3, seed=0)
    expected = torch.tensor(slow_density(features, 5), dtype=torch.float64)
    torch.testing.assert_close(density(neighbor_graph(features, 5)), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(density(neighbor_graph(features.float(), 5)).double(), expected, rtol=0, atol=2e-6)


def test_two_groups_on_a_circle_have_their_middle_as_peak():
    features = on_circle([0, 8, 10, 13, 90, 100, 103, 105, 115])
    graph = neighbor_graph(features, 2)
    assert density_peaks(density(graph), graph).tolist() == [2, 6]  # equally dense, so by index


@pytest.mark.parametrize("seed", range(4))
def test_peaks_removal_and_members_equal_slow_twins(seed):
    features, _ = clusters(4, 25, spread=0.35, seed=seed)
    features[50:53] = features[7]
    graph = neighbor_graph(features, 15)
    nearest = graph.first(4)
    densities = density(nearest)
    peaks = density_peaks(densities, nearest)
    assert peaks.tolist() == slow_peaks(densities.tolist(), nearest.idx.tolist())
    for max_iou in (0.0, 0.2, 0.6):
        kept = remove_redundant_peaks(peaks, graph, max_iou=max_iou)
        assert kept.tolist() == slow_removal(peaks.tolist(), graph.idx.tolist(), max_iou)
    assert len(remove_redundant_peaks(peaks, graph, max_iou=0.0)) < len(peaks)
    for n_members in (1, 3, 20):
        members = peak_members(peaks, graph, n_members=n_members)
        pairs = list(zip(members.idx.tolist(), members.peak.tolist(), strict=True))
        assert pairs == slow_members(peaks.tolist(), graph, n_members)


def test_iou_counts_shared_neighbors():
    graph = Neighbors(
        torch.tensor([[2, 3, 4], [3, 4, 5], [0, 1, 5], [0, 1, 2], [0, 1, 2], [0, 1, 2]]), torch.zeros(6, 3)
    )
    iou = neighbor_overlap(torch.tensor([0, 1, 2]), graph).toarray()
    assert iou.tolist() == [[1, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 1]]


def test_a_removed_peak_removes_no_other():
    # A chain: 0 overlaps 1, 1 overlaps 2, 0 and 2 share nothing. 0 removes 1, so 2 stays.
    graph = Neighbors(torch.tensor([[3, 4], [4, 5], [5, 6]] + [[0, 1]] * 4), torch.zeros(7, 2))
    assert remove_redundant_peaks(torch.tensor([0, 1, 2]), graph, max_iou=0.3).tolist() == [0, 2]
    assert remove_redundant_peaks(torch.tensor([1, 0, 2]), graph, max_iou=0.3).tolist() == [1]


def test_threshold_itself_is_not_above_it():
    graph = Neighbors(torch.tensor([[2, 3, 4], [3, 4, 5]] + [[0, 1, 2]] * 4), torch.zeros(6, 3))
    assert len(remove_redundant_peaks(torch.tensor([0, 1]), graph, max_iou=0.5)) == 2
    assert len(remove_redundant_peaks(torch.tensor([0, 1]), graph, max_iou=0.49)) == 1


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_shuffling_images_shuffles_peaks(seed):
    features, _ = clusters(3, 20, spread=0.3, seed=seed)
    order = torch.randperm(len(features), generator=torch.Generator().manual_seed(seed))
    options = {"n_neighbors": 4, "n_overlap_neighbors": 8}
    peaks = find_density_peaks(neighbor_graph(features, 8), **options).idx
    shuffled = find_density_peaks(neighbor_graph(features[order], 8), **options).idx
    assert sorted(order[shuffled].tolist()) == sorted(peaks.tolist())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_copies", [1, 3, 60])
def test_copies_of_a_peak_leave_one_peak(n_copies, dtype):
    features, rows = clusters(3, 30, spread=0.1, seed=3)
    peaks = find_density_peaks(neighbor_graph(features, 20)).idx
    assert sorted(rows[peaks].tolist()) == [0, 1, 2]
    copied = torch.cat([features, features[peaks[:1]].expand(n_copies, -1)]).to(dtype)
    rows = torch.cat([rows, rows[peaks[:1]].expand(n_copies)])
    after = find_density_peaks(neighbor_graph(copied, 20)).idx
    assert sorted(rows[after].tolist()) == [0, 1, 2]
    assert int(peaks[0]) in after.tolist()


def test_all_images_equal_is_one_peak():
    assert find_density_peaks(neighbor_graph(torch.ones(100, 4), 20)).idx.tolist() == [0]


def test_the_densest_image_is_always_the_first_peak():
    features, _ = clusters(5, 20, spread=0.4, seed=5)
    found = find_density_peaks(neighbor_graph(features, 20))
    assert int(found.idx[0]) == int(found.density.argmax())
    assert (found.density[found.idx].diff() <= 0).all()


def test_members_belong_to_one_peak_and_start_with_it():
    features, rows = clusters(3, 30, spread=0.1, seed=6)
    graph = neighbor_graph(features, 20)
    peaks = find_density_peaks(graph).idx
    members = peak_members(peaks, graph, n_members=5)
    assert members.peak.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert members.idx[::5].tolist() == peaks.tolist()
    assert len(set(members.idx.tolist())) == 15
    assert (rows[members.idx] == rows[peaks][members.peak]).all()


def test_count_error_is_per_category():
    categories = torch.tensor([4, 4, 4, 9, 9])
    assert peak_count_error(torch.tensor([0, 3]), categories) == 0
    assert (
        peak_count_error(torch.tensor([0, 1]), categories) == 1
    )  # one split, one lost: the total alone would be right
    assert peak_count_error(torch.tensor([0, 1]), categories, count="total") == 0
    assert peak_count_error(torch.tensor([0, 1, 2, 4]), categories) == 1
    assert peak_count_error(torch.tensor([0, 1, 2, 4]), categories, count="total") == 1


@pytest.mark.parametrize(("n_each", "smallest", "largest"), [(8, 3, 6), (60, 8, 40)])
def test_chosen_k_follows_the_images_per_category(n_each, smallest, largest):
    features, rows = clusters(12, n_each, spread=0.16, seed=7)
    graph = neighbor_graph(features, 80)
    k = choose_n_neighbors(graph, rows)
    assert smallest <= k <= largest
    assert smallest <= choose_n_neighbors(graph, rows, count="total") <= largest
    peaks = find_density_peaks(graph, n_neighbors=k, n_overlap_neighbors=2 * k).idx
    paper = find_density_peaks(graph).idx
    assert peak_count_error(peaks, rows) <= peak_count_error(paper, rows)
    assert abs(len(peaks) - 12) <= 1


def test_chosen_k_is_the_middle_of_those_equally_good():
    features, rows = clusters(3, 40, spread=0.01, seed=8)
    graph = neighbor_graph(features, 78)
    counts = {k: len(find_density_peaks(graph, n_neighbors=k, n_overlap_neighbors=2 * k).idx) for k in (20, 25, 30, 35)}
    assert set(counts.values()) == {3}
    assert choose_n_neighbors(graph, rows, candidates=(20, 25, 30, 35)) == 25


def test_choosing_k_needs_a_graph_that_is_large_enough():
    graph = neighbor_graph(torch.randn(20, 3), 5)
    with pytest.raises(IgcdError, match="5 neighbors and candidates"):
        choose_n_neighbors(graph, torch.zeros(20, dtype=torch.int64))
