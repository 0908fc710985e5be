import itertools

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score

from igcd.errors import IgcdError
from igcd.functional import counting
from igcd.functional.counting import (
    COUNT_METHODS,
    count_by_density,
    estimate_count,
    matched_accuracy,
    mean_silhouette,
)
from igcd.functional.discovery import discover
from igcd.functional.kmeans import kmeans
from igcd.functional.projection import fit_projection


def gen(seed):
    return torch.Generator().manual_seed(seed)


def stage(n_known, n_novel, *, n_images=20, spread=0.1, seed=0):
    """Labeled images of the known categories, and unlabeled ones of all."""
    n_categories = n_known + n_novel
    centers = torch.eye(2 * n_categories)[:n_categories] + 0.3
    labels, rows = (torch.arange(n).repeat_interleave(n_images) for n in (n_known, n_categories))
    noise = spread * torch.randn(len(labels) + len(rows), 2 * n_categories, generator=gen(seed))
    return centers[labels] + noise[: len(labels)], labels, centers[rows] + noise[len(labels) :]


@pytest.mark.parametrize("method", COUNT_METHODS)
@pytest.mark.parametrize(("n_known", "n_novel"), [(8, 4), (6, 0), (3, 9)])
def test_clear_clusters_are_counted_rightly(method, n_known, n_novel):
    found = estimate_count(
        method, *stage(n_known, n_novel), generator=gen(0), max_categories=30, n_starts=10 if method != "density" else 1
    )
    # Labels say nothing of what is novel, so k-means may split or join there without being less right on them.
    slack = {"density": 0, "silhouette": 0, "kmeans": n_novel}[method]
    assert abs(found.n_categories - n_known - n_novel) <= slack
    assert found.n_categories == n_known + found.n_novel
    assert found.method == method
    assert (found.n_trials > 1) == (method != "density")


@pytest.mark.parametrize("method", ["density", "silhouette"])
def test_without_labels_all_categories_are_novel(method):
    _, _, unlabeled = stage(0, 9)
    nobody, no_labels = unlabeled[:0], torch.empty(0, dtype=torch.int64)
    found = estimate_count(method, nobody, no_labels, unlabeled, generator=gen(0), max_categories=25, n_starts=5)
    assert found.n_categories == found.n_novel == 9


def test_k_means_cannot_count_without_labels():
    _, _, unlabeled = stage(0, 4)
    with pytest.raises(IgcdError, match="got none; give labels"):
        estimate_count("kmeans", unlabeled[:0], torch.empty(0, dtype=torch.int64), unlabeled, generator=gen(0))


@pytest.mark.parametrize("method", COUNT_METHODS)
def test_names_of_labels_and_a_second_run_change_nothing(method):
    labeled, labels, unlabeled = stage(5, 3, spread=0.25)
    names = torch.tensor([11, 3, 500, 7, 20])
    counts = [
        estimate_count(method, labeled, of, unlabeled, generator=gen(4), max_categories=20).n_categories
        for of in (labels, labels, names[labels])
    ]
    assert len(set(counts)) == 1


def test_density_is_the_number_of_the_discovery_core_and_granularity_moves_it():
    labeled, labels, unlabeled = stage(8, 4)
    project = fit_projection(torch.cat([labeled, unlabeled]), n_components=256)
    for granularity in (-2.0, 0.0, 2.0):
        core = discover(project(unlabeled), project(labeled), labels, granularity=granularity)
        found = count_by_density(labeled, labels, unlabeled, granularity=granularity)
        assert (found.n_novel, found.n_categories) == (core.n_novel, 8 + core.n_novel)
        assert found.details == {"height": core.cut.height, "neighbor_recall": 1.0}
    counts = [count_by_density(labeled, labels, unlabeled, granularity=g).n_novel for g in (-5.0, 0.0, 4.0)]
    assert counts[0] < counts[1] == 4 < counts[2]


def slow_best(counts):
    """The most images that can be right under any one-to-one matching."""
    n_rows, n_columns = counts.shape
    size = max(n_rows, n_columns)
    square = np.zeros((size, size), dtype=int)
    square[:n_rows, :n_columns] = counts
    return max(sum(square[i, j] for i, j in enumerate(order)) for order in itertools.permutations(range(size)))


@pytest.mark.parametrize("seed", range(5))
def test_matched_accuracy_equals_the_best_of_all_matchings(seed):
    rng = np.random.default_rng(seed)
    clusters, rows = rng.integers(5, size=40), rng.integers(4, size=40)
    counts = np.zeros((5, 4), dtype=int)
    np.add.at(counts, (clusters, rows), 1)
    assert matched_accuracy(clusters, rows) == pytest.approx(slow_best(counts) / 40)
    assert matched_accuracy(rows, rows) == 1.0


@pytest.mark.parametrize("max_bytes", [1, 2**26])
def test_silhouette_is_scikit_learns(max_bytes):
    features = 100 * torch.randn(60, 3, generator=gen(0), dtype=torch.float64)
    clusters = torch.randint(7, (60,), generator=gen(1)) * 3
    clusters[0] = 99  # alone in its cluster
    expected = silhouette_score(features.numpy(), clusters.numpy())
    assert mean_silhouette(features, clusters, max_bytes=max_bytes) == pytest.approx(expected)


def test_silhouette_of_one_cluster_or_of_copies_is_zero():
    assert mean_silhouette(torch.rand(5, 2), torch.zeros(5, dtype=torch.int64)) == 0.0
    assert mean_silhouette(torch.ones(4, 2), torch.tensor([0, 0, 1, 1])) == 0.0


def test_one_label_of_each_category_is_enough():
    labeled, labels, unlabeled = stage(5, 3)
    few = torch.arange(5) * (len(labels) // 5)
    assert estimate_count("density", labeled[few], labels[few], unlabeled, generator=gen(0)).n_novel == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "guess"}, "no count method 'guess'; choose one of density, kmeans, silhouette"),
        ({"max_categories": 2, "method": "kmeans"}, "between 5, the fewest there can be, .* got 2"),
        ({"max_categories": 999, "method": "silhouette"}, "the number of images, 260, got 999"),
        ({"unlabeled": torch.rand(1, 16)}, "two unlabeled images at least, got 1"),
        ({"unlabeled": torch.rand(9, 4)}, r"\(100, 16\) and \(9, 4\)"),
        ({"labels": torch.zeros(3, dtype=torch.int64)}, "got 3 for 100"),
        ({"unlabeled": torch.tensor([[0.0] * 16, [float("inf")] * 16])}, "unlabeled image 1 has others"),
    ],
)
def test_bad_input_is_an_error(change, message):
    labeled, labels, unlabeled = stage(5, 3)
    arguments = {"method": "density", "labeled": labeled, "labels": labels, "unlabeled": unlabeled} | change
    with pytest.raises(IgcdError, match=message):
        estimate_count(generator=gen(0), **arguments)


@pytest.mark.parametrize("method", ["kmeans", "silhouette"])
def test_each_number_is_tried_with_one_start_unless_asked_otherwise(method, monkeypatch):
    starts = []

    def noted(*args, n_starts=1, **options):
        starts.append(n_starts)
        return kmeans(*args, n_starts=n_starts, **options)

    monkeypatch.setattr(counting, "kmeans", noted)
    labeled, labels, unlabeled = stage(3, 2)
    count = getattr(counting, f"count_by_{method}")
    count(labeled, labels, unlabeled, generator=gen(0))
    assert starts and set(starts) == {1}
    starts.clear()
    count(labeled, labels, unlabeled, generator=gen(0), n_starts=2)
    assert set(starts) == {2}
