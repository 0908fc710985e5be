import itertools

import pytest
import torch

from igcd.errors import IgcdError
from igcd.functional.density import find_density_peaks
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novelty import (
    N_COMPONENTS,
    calibrate_margin,
    choose_margin,
    fit_projection,
    is_novel,
    match_known,
    project_together,
)


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


def test_projection_equals_singular_vectors():
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(50, 6, generator=generator, dtype=torch.float64) * torch.tensor([9.0, 1, 5, 0.1, 3, 2]) + 4
    projection = fit_projection(features, n_components=3)
    centered = features - features.mean(0)
    _, _, right = torch.linalg.svd(centered)
    torch.testing.assert_close(projection.components.abs(), right[:3].abs())
    torch.testing.assert_close(projection.components @ projection.components.T, torch.eye(3, dtype=torch.float64))
    expected = torch.nn.functional.normalize(centered @ projection.components.T, dim=1)
    torch.testing.assert_close(projection(features), expected)


def test_projection_is_the_same_every_time_and_in_any_order_or_precision():
    features = torch.randn(300, 40, generator=torch.Generator().manual_seed(2)) * torch.linspace(1, 5, 40)
    first = fit_projection(features, n_components=8)
    assert torch.equal(first.components, fit_projection(features, n_components=8).components)
    torch.testing.assert_close(fit_projection(features.flip(0), n_components=8)(features), first(features))
    exact = fit_projection(features.double(), n_components=8)
    torch.testing.assert_close(first(features).double(), exact(features), rtol=0, atol=1e-4)


def test_projection_keeps_no_more_components_than_there_are():
    features = torch.randn(5, 9, generator=torch.Generator().manual_seed(3))
    assert fit_projection(features).components.shape == (4, 9)
    with pytest.raises(IgcdError, match="got 1 and 128"):
        fit_projection(features[:1])


def test_a_projection_of_two_images_to_one_component():
    projected = fit_projection(torch.tensor([[1.0, 2.0], [3.0, 2.0]]), n_components=1)(torch.tensor([[9.0, 9.0]]))
    assert projected.tolist() == [[1.0]]
    with pytest.raises(IgcdError, match="got 2 and 0"):
        fit_projection(torch.eye(2), n_components=0)


def test_the_largest_entry_of_a_component_is_positive():
    components = fit_projection(torch.randn(80, 9, generator=torch.Generator().manual_seed(8))).components
    for row in components.tolist():
        assert max(row, key=abs) > 0


def test_half_precision_gives_rows_of_length_one_in_half_precision():
    features = torch.randn(5000, 6, generator=torch.Generator().manual_seed(9)) * torch.tensor([9.0, 1, 5, 1, 3, 2])
    projection = fit_projection(features, n_components=3)
    half = projection(features.half())
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), projection(features), rtol=0, atol=0.01)


def test_the_core_looks_at_256_components():
    first, second = torch.randn(2, 300, 290, generator=torch.Generator().manual_seed(10))
    together = project_together(first, second)
    assert [part.shape for part in together] == [(300, 256), (300, 256)] and N_COMPONENTS == 256
    torch.testing.assert_close(together[1], fit_projection(torch.cat([first, second]), n_components=256)(second))


def test_full_projection_keeps_cosines_of_centered_features():
    features = torch.randn(60, 7, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    centered = torch.nn.functional.normalize(features - features.mean(0), dim=1)
    projected = fit_projection(features)(features)
    torch.testing.assert_close(projected @ projected.T, centered @ centered.T)


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
