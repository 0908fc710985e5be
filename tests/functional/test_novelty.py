import itertools

import pytest
import torch

from igcd.errors import IgcdError
from igcd.functional.density import find_density_peaks
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novelty import calibrate_margin, choose_margin, is_novel, match_known
from igcd.functional.projection import fit_projection


def slow_match(peaks, features, categories, n_closest):
    found = []
    for peak in peaks:
        scores = {}
        for category in sorted(set(categories.tolist())):
            cosines = sorted(
                (
                    float(peak @ feature / (peak.norm() * feature.norm()))
                    for feature, c in zip(features, categories.tolist(), strict=True)
                    if c == category
                ),
                reverse=True,
            )[:n_closest]
            scores[category] = sum(cosines) / len(cosines)
        best = max(scores, key=lambda category: (scores[category], -category))
        found.append((best, scores[best]))
    return found


def test_match_equals_slow_twin():
    generator = torch.Generator().manual_seed(0)
    peaks = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    features = torch.randn(40, 4, generator=generator, dtype=torch.float64)
    categories = torch.randint(10, 17, (40,), generator=generator)
    categories[0] = 99  # a category of one image
    match = match_known(peaks, features, categories, n_closest=5)
    expected = slow_match(peaks, features, categories, 5)
    assert match.category.tolist() == [category for category, _ in expected]
    assert match.similarity.tolist() == pytest.approx([similarity for _, similarity in expected])


def test_five_images_of_a_category_count_unless_asked_otherwise():
    features = torch.nn.functional.normalize(torch.randn(12, 3, generator=torch.Generator().manual_seed(3)), dim=1)
    found = match_known(features[:1], features, torch.zeros(12, dtype=torch.int64)).similarity
    assert found.tolist() == pytest.approx([float((features @ features[0]).sort().values[-5:].mean())])


def test_the_margin_decides():
    density, similarity = torch.tensor([0.9, 0.9, 0.5]), torch.tensor([0.8, 0.88, 0.8])
    assert is_novel(density, similarity).tolist() == [True, False, False]
    assert is_novel(density, similarity, margin=0.0).tolist() == [True, True, False]
    assert is_novel(density, density, margin=0.0).tolist() == [False] * 3


def test_novel_clusters_are_told_from_known_ones():
    generator = torch.Generator().manual_seed(5)
    centers = torch.eye(32)[:8]
    rows = torch.arange(8).repeat_interleave(40)
    unlabeled = centers[rows] + 0.12 * torch.randn(320, 32, generator=generator) + 0.5
    labels = torch.arange(5).repeat_interleave(40)  # 0 to 4 are known, 5 to 7 novel
    labeled = centers[labels] + 0.12 * torch.randn(200, 32, generator=generator) + 0.5
    projection = fit_projection(torch.cat([labeled, unlabeled]), n_components=16)
    found = find_density_peaks(neighbor_graph(projection(unlabeled), 40), n_neighbors=20, n_overlap_neighbors=40)
    assert sorted(rows[found.idx].tolist()) == list(range(8))
    match = match_known(projection(unlabeled[found.idx]), projection(labeled), labels)
    novel = is_novel(found.density[found.idx], match.similarity)
    assert (novel == (rows[found.idx] >= 5)).all()
    assert (match.category == rows[found.idx])[~novel].all()


def test_a_hidden_category_is_not_matched():
    generator = torch.Generator().manual_seed(6)
    peaks, features = torch.randn(9, 4, generator=generator), torch.randn(40, 4, generator=generator)
    categories = torch.randint(10, 14, (40,), generator=generator)
    best = match_known(peaks, features, categories).category
    second = match_known(peaks, features, categories, hidden=best)
    for i in range(9):
        others = categories != best[i]
        expected = match_known(peaks[i : i + 1], features[others], categories[others])
        assert second.category[i] == expected.category[0]
        assert second.similarity[i] == pytest.approx(expected.similarity[0].item())


def slow_margin(known, hidden):
    values = sorted(known + hidden)
    borders = [(a + b) / 2 for a, b in itertools.pairwise(values)]
    return max(
        borders,
        key=lambda m: (sum(k <= m for k in known) / len(known) + sum(h > m for h in hidden) / len(hidden), -m),
    )


@pytest.mark.parametrize("seed", range(4))
def test_margin_equals_slow_twin(seed):
    generator = torch.Generator().manual_seed(seed)
    known = torch.randn(12, generator=generator, dtype=torch.float64)
    hidden = torch.randn(7, generator=generator, dtype=torch.float64) + 1
    assert choose_margin(known, hidden) == pytest.approx(slow_margin(known.tolist(), hidden.tolist()))


def test_margin_equals_slow_twin_where_values_are_equal():
    known, hidden = [0.0, 1.0, 1.0, 2.0], [1.0, 1.0, 2.0, 3.0]
    assert choose_margin(torch.tensor(known), torch.tensor(hidden)) == slow_margin(known, hidden)
    known, hidden = [0.0, 1.0], [1.0, 1.0, 1.0]
    assert choose_margin(torch.tensor(known), torch.tensor(hidden)) == slow_margin(known, hidden) == 0.5


def test_margin_lies_in_the_gap():
    known, hidden = torch.tensor([0.1, 0.0, -0.2]), torch.tensor([0.5, 0.3])
    assert choose_margin(known, hidden) == pytest.approx(0.2)
    with pytest.raises(IgcdError, match="got 0 and 2"):
        choose_margin(known[:0], hidden)


def test_calibrated_margin_finds_novel_clusters_where_a_fixed_one_fails():
    generator = torch.Generator().manual_seed(7)
    centers = torch.eye(48)[:24] + 0.3
    labels, rows = torch.arange(14).repeat_interleave(10), torch.arange(24).repeat_interleave(10)
    labeled = centers[labels] + 0.14 * torch.randn(140, 48, generator=generator)
    unlabeled = centers[rows] + 0.14 * torch.randn(240, 48, generator=generator)
    projection = fit_projection(torch.cat([labeled, unlabeled]), n_components=24)
    labeled, unlabeled = projection(labeled), projection(unlabeled)
    found = find_density_peaks(neighbor_graph(unlabeled, 8), n_neighbors=4, n_overlap_neighbors=8)
    match = match_known(unlabeled[found.idx], labeled, labels)
    truth = rows[found.idx] >= 14

    def share_right(margin):
        return float((is_novel(found.density[found.idx], match.similarity, margin=margin) == truth).float().mean())

    margin = calibrate_margin(labeled, labels, n_neighbors=4)
    assert share_right(margin) > 0.95 > share_right(0.03)
    order = torch.randperm(14, generator=generator)
    assert calibrate_margin(labeled, order[labels] * 3, n_neighbors=4) == pytest.approx(margin)  # names do not matter


def slow_calibration(features, categories, n_neighbors, *, n_closest=2, max_iou=0.6):
    """Peak by peak: both halves play the unlabeled in turn, each peak is matched with and without its category."""
    known, hidden, n = [], [], max(1, n_neighbors // 2)
    rank = [categories[:i].tolist().count(category) for i, category in enumerate(categories.tolist())]
    for role in (0, 1):
        asked = [i for i, number in enumerate(rank) if number % 2 == role]
        labeled = [i for i, number in enumerate(rank) if number % 2 != role]
        if not labeled or len(asked) <= 2 * n:
            continue
        graph = neighbor_graph(features[asked], 2 * n)
        peaks = find_density_peaks(graph, n_neighbors=n, n_overlap_neighbors=2 * n, max_iou=max_iou)
        for peak in peaks.idx.tolist():
            others = [i for i in labeled if categories[i] != categories[asked[peak]]]
            for rows, excess in ((labeled, known), (others, hidden)):
                if rows:
                    ((_, similarity),) = slow_match(
                        features[[asked[peak]]], features[rows], categories[rows], n_closest
                    )
                    excess.append(float(peaks.density[peak]) - similarity)
    return slow_margin(known, hidden)


@pytest.mark.parametrize("n_neighbors", [1, 2, 3, 5, 6])
@pytest.mark.parametrize(("n_each", "seed"), [(11, 0), (6, 1), (2, 2), (1, 3)])
def test_calibrated_margin_equals_slow_twin(n_neighbors, n_each, seed):
    generator = torch.Generator().manual_seed(seed)
    categories = torch.arange(6).repeat_interleave(n_each)
    categories = torch.cat([categories, torch.tensor([3, 4])])[torch.randperm(6 * n_each + 2, generator=generator)]
    features = torch.eye(8, dtype=torch.float64)[categories] + 0.35 * torch.randn(
        len(categories), 8, generator=generator, dtype=torch.float64
    )
    features = torch.nn.functional.normalize(features, dim=1)
    try:
        expected = slow_calibration(features, categories, n_neighbors)
    except (ValueError, ZeroDivisionError):  # no border, or no peak: too few images
        with pytest.raises(IgcdError, match="give more labeled images"):
            calibrate_margin(features, categories, n_neighbors=n_neighbors)
    else:
        assert calibrate_margin(features, categories, n_neighbors=n_neighbors) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_calibrated_margin_is_not_too_careful_where_categories_overlap(seed):
    """Known categories of 20 labeled images and 6 more, ten novel ones of 30. With half of the images and all of
    `n_closest` the margin let 0, 4 and 0 peaks through."""
    generator, scales = torch.Generator().manual_seed(seed), torch.arange(1, 129).float().rsqrt()
    centers = 0.5 * torch.randn(40, 1, 128, generator=generator) * scales
    images = centers + torch.randn(40, 36, 128, generator=generator) * scales
    labeled, labels = images[:30, :20].flatten(0, 1), torch.arange(30).repeat_interleave(20)
    unlabeled = torch.cat([images[:30, 20:26].flatten(0, 1), images[30:, :30].flatten(0, 1)])
    projection = fit_projection(labeled)
    labeled, unlabeled = projection(labeled), projection(unlabeled)
    found = find_density_peaks(neighbor_graph(unlabeled, 6), n_neighbors=3, n_overlap_neighbors=6)
    match = match_known(unlabeled[found.idx], labeled, labels)
    margin = calibrate_margin(labeled, labels, n_neighbors=3)
    opens = found.idx[is_novel(found.density[found.idx], match.similarity, margin=margin)]
    assert len({int(row - 180) // 30 for row in opens if row >= 180}) >= 6  # different novel categories
    assert (opens < 180).sum() <= 4  # of peaks of known ones


def test_a_margin_cannot_be_calibrated_with_one_category():
    with pytest.raises(IgcdError, match="and 0; give more labeled images"):
        calibrate_margin(torch.randn(30, 4), torch.zeros(30, dtype=torch.int64), n_neighbors=4)
    with pytest.raises(IgcdError, match="got 0 and 0"):
        calibrate_margin(torch.randn(3, 4), torch.arange(3), n_neighbors=4)


def test_matching_needs_labeled_images():
    with pytest.raises(IgcdError, match="at least one labeled image"):
        match_known(torch.eye(2), torch.empty(0, 2), torch.empty(0, dtype=torch.int64))


def test_peaks_that_share_most_neighbors_count_once_unless_asked_otherwise():
    categories = torch.arange(6).repeat_interleave(12)
    noise = 0.35 * torch.randn(72, 8, generator=torch.Generator().manual_seed(39))
    features = torch.nn.functional.normalize(torch.eye(8)[categories] + noise, dim=1)
    expected = slow_calibration(features, categories, 2, max_iou=0.6)
    assert expected != pytest.approx(slow_calibration(features, categories, 2, max_iou=1.0))
    assert calibrate_margin(features, categories, n_neighbors=2) == pytest.approx(expected)
