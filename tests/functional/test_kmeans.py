import itertools

import pytest
import torch
from sklearn.cluster import KMeans

from igcd.errors import IgcdError
from igcd.functional.kmeans import inertia, kmeans, kmeans_plus_plus, nearest_centers, semi_supervised_kmeans


def gen(seed):
    return torch.Generator().manual_seed(seed)


def blobs(n_clusters, per_cluster, *, width=6, spread=1.0, seed=0):
    """Features (n, d) in float64 and the blob of each."""
    centers = 2 * torch.randn(n_clusters, width, generator=gen(seed), dtype=torch.float64)
    rows = torch.arange(n_clusters).repeat_interleave(per_cluster)
    noise = torch.randn(len(rows), width, generator=gen(seed + 1), dtype=torch.float64)
    return centers[rows] + spread * noise, rows


def slow_semi_supervised(labeled, labels, unlabeled, drawn):
    """GCD's algorithm, image by image, from the labeled means and the drawn centers, until nothing changes."""
    ids = sorted(set(labels.tolist()))
    own = [ids.index(label) for label in labels.tolist()]
    centers = [labeled[labels == label].mean(0) for label in ids] + list(drawn)
    before = None
    while True:
        clusters = [
            min(range(len(centers)), key=lambda c, x=x: float((x - centers[c]) @ (x - centers[c]))) for x in unlabeled
        ]
        if clusters == before:
            break
        before = clusters
        for c in range(len(centers)):
            mine = [x for x, cluster in zip(labeled, own, strict=True) if cluster == c]
            mine += [x for x, cluster in zip(unlabeled, clusters, strict=True) if cluster == c]
            centers[c] = sum(mine) / len(mine)
    everything = [*zip(labeled, own, strict=True), *zip(unlabeled, clusters, strict=True)]
    return clusters, torch.stack(centers), sum(float((x - centers[c]) @ (x - centers[c])) for x, c in everything)


@pytest.mark.parametrize("seed", range(4))
def test_equals_slow_twin(seed):
    features, rows = blobs(5, 12, seed=seed)
    is_labeled = (rows < 3) & (torch.arange(60) % 2 == 0)
    labeled, labels, unlabeled = features[is_labeled], 10 * rows[is_labeled] + 7, features[~is_labeled]
    drawn = unlabeled[[20, 33]]
    first = torch.stack([*(labeled[labels == label].mean(0) for label in (7, 17, 27)), *drawn])
    found = semi_supervised_kmeans(
        labeled, labels, unlabeled, n_clusters=5, generator=gen(0), tolerance=0.0, initial_centers=first
    )
    clusters, centers, within = slow_semi_supervised(labeled, labels, unlabeled, drawn)
    assert found.clusters.tolist() == clusters
    assert found.category_ids.tolist() == [7, 17, 27]
    torch.testing.assert_close(found.centers, centers)
    assert found.inertia == pytest.approx(within)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tolerance", [0.0, 1e-4, 0.05])
def test_with_nothing_labeled_it_is_scikit_learns_kmeans(seed, tolerance):
    features, _ = blobs(12, 30, spread=1.5, seed=seed)
    first = features[torch.randperm(360, generator=gen(seed))[:15]]
    theirs = KMeans(15, init=first.numpy(), n_init=1, algorithm="lloyd", tol=tolerance).fit(features.numpy())
    ours = kmeans(features, n_clusters=15, generator=gen(0), initial_centers=first, tolerance=tolerance)
    assert ours.clusters.tolist() == theirs.labels_.tolist()
    torch.testing.assert_close(ours.centers, torch.from_numpy(theirs.cluster_centers_))
    assert ours.inertia == pytest.approx(theirs.inertia_)
    assert ours.n_iterations == theirs.n_iter_


@pytest.mark.parametrize("n_iterations", [1, 2, 3])
def test_a_limit_of_iterations_is_scikit_learns(n_iterations):
    features, _ = blobs(8, 30, spread=2.0)
    first = features[:8]
    theirs = KMeans(8, init=first.numpy(), n_init=1, algorithm="lloyd", max_iter=n_iterations, tol=0).fit(
        features.numpy()
    )
    ours = kmeans(
        features, n_clusters=8, generator=gen(0), initial_centers=first, n_iterations=n_iterations, tolerance=0.0
    )
    assert ours.clusters.tolist() == theirs.labels_.tolist()
    torch.testing.assert_close(ours.centers, torch.from_numpy(theirs.cluster_centers_))


def test_an_empty_cluster_takes_the_farthest_image_as_in_scikit_learn():
    features, _ = blobs(4, 25, spread=0.8, seed=3)
    first = torch.cat([features[[0, 30, 60]], torch.full((1, 6), 1e3, dtype=torch.float64)])  # nobody is near the last
    theirs = KMeans(4, init=first.numpy(), n_init=1, algorithm="lloyd", tol=0).fit(features.numpy())
    ours = kmeans(features, n_clusters=4, generator=gen(0), initial_centers=first, tolerance=0.0)
    assert ours.clusters.tolist() == theirs.labels_.tolist()
    assert torch.bincount(ours.clusters, minlength=4).min() > 0


def test_labeled_images_stay_although_another_center_is_nearer():
    labeled = torch.tensor([[0.0], [10.0]])
    unlabeled = torch.tensor([[0.2], [9.8], [10.2]])
    found = semi_supervised_kmeans(labeled, torch.tensor([4, 4]), unlabeled, n_clusters=2, generator=gen(0))
    # One category holds 0 and 10, so its center lies between them; whatever the others do, both stay.
    own = [float(x) for x, c in zip(unlabeled, found.clusters, strict=True) if c == 0]
    assert float(found.centers[0]) == pytest.approx(sum([0.0, 10.0, *own]) / (2 + len(own)))
    apart = [(0.0, 0), (10.0, 0), *zip(unlabeled[:, 0].tolist(), found.clusters.tolist(), strict=True)]
    assert found.inertia == pytest.approx(sum((x - float(found.centers[c])) ** 2 for x, c in apart), rel=1e-5)


def test_known_and_new_blobs_are_found():
    features, rows = blobs(8, 30, spread=0.3, seed=5)
    is_labeled = (rows < 4) & (torch.arange(240) % 2 == 0)
    found = semi_supervised_kmeans(
        features[is_labeled], rows[is_labeled], features[~is_labeled], n_clusters=8, generator=gen(1)
    )
    truth = rows[~is_labeled]
    assert (found.clusters[truth < 4] == truth[truth < 4]).all()
    pairs = set(zip(truth[truth >= 4].tolist(), found.clusters[truth >= 4].tolist(), strict=True))
    assert len(pairs) == 4
    assert {cluster for _, cluster in pairs} == {4, 5, 6, 7}


def test_every_image_is_with_its_nearest_center_and_every_center_is_a_mean():
    features, _ = blobs(10, 40, spread=2.0, seed=8)
    found = kmeans(features, n_clusters=17, generator=gen(2), tolerance=0.0)
    distances = torch.cdist(features, found.centers)
    assert (distances.argmin(1) == found.clusters).all()
    for cluster in range(17):
        torch.testing.assert_close(found.centers[cluster], features[found.clusters == cluster].mean(0))
    assert found.inertia == pytest.approx(float(distances.amin(1).square().sum()))


def test_the_best_of_several_starts_is_kept():
    features, _ = blobs(9, 20, spread=1.0, seed=4)
    generator, one_by_one = gen(7), gen(7)
    best = kmeans(features, n_clusters=9, generator=generator, n_starts=6).inertia
    each = [kmeans(features, n_clusters=9, generator=one_by_one, n_starts=1).inertia for _ in range(6)]
    assert best == pytest.approx(min(each))
    assert max(each) > min(each) * 1.01  # else this test could not fail


def test_neither_the_size_of_chunks_nor_a_shift_nor_the_names_of_labels_matter():
    features, rows = blobs(7, 30, spread=1.5, seed=6)
    is_labeled = torch.arange(210) % 3 == 0
    labeled, labels, unlabeled = features[is_labeled], rows[is_labeled] % 4, features[~is_labeled]

    def clusters(shift=0.0, names=(0, 1, 2, 3), max_bytes=2**28):
        return semi_supervised_kmeans(
            labeled + shift,
            torch.tensor(names)[labels],
            unlabeled + shift,
            n_clusters=7,
            generator=gen(3),
            n_starts=2,
            max_bytes=max_bytes,
        ).clusters.tolist()

    assert clusters() == clusters(max_bytes=600) == clusters(shift=1e4) == clusters(names=(5, 8, 13, 21))


def test_float32_far_from_the_origin_keeps_its_digits():
    features, _ = blobs(5, 40, spread=0.2, seed=1)
    first = features[::40]
    far = kmeans((features + 300).float(), n_clusters=5, generator=gen(0), initial_centers=(first + 300).float())
    assert (
        far.clusters.tolist()
        == kmeans(features, n_clusters=5, generator=gen(0), initial_centers=first).clusters.tolist()
    )


def exact_probabilities(points, n):
    """The probability of every sequence of k-means++ on few points, by the definition."""
    found = {}
    for sequence in itertools.permutations(range(len(points)), n):
        probability = 1 / len(points)
        for step in range(1, n):
            squared = [min((p - points[c]) ** 2 for c in sequence[:step]) for p in points]
            probability *= squared[sequence[step]] / sum(squared)
        found[sequence] = probability
    return found


def test_drawn_centers_have_the_probabilities_of_the_definition():
    points = [0.0, 1.0, 3.0, 7.0]
    features = torch.tensor(points)[:, None]
    expected = exact_probabilities(points, 3)
    generator, n_draws, seen = gen(0), 6000, {}
    for _ in range(n_draws):
        drawn = tuple(kmeans_plus_plus(features, 3, generator=generator).tolist())
        seen[drawn] = seen.get(drawn, 0) + 1
    assert sum(expected.values()) == pytest.approx(1)
    for sequence, probability in expected.items():
        sigma = (probability * (1 - probability) / n_draws) ** 0.5
        assert abs(seen.get(sequence, 0) / n_draws - probability) < 4.5 * sigma + 1e-9


def test_given_centers_keep_drawn_ones_away():
    features = torch.tensor([[0.0], [0.0], [0.0], [5.0]])
    for seed in range(20):
        assert kmeans_plus_plus(features, 1, centers=torch.tensor([[0.0]]), generator=gen(seed)).tolist() == [3]


def test_copies_are_drawn_when_nothing_else_is_left_and_never_twice():
    drawn = kmeans_plus_plus(torch.ones(5, 3), 5, generator=gen(0))
    assert sorted(drawn.tolist()) == [0, 1, 2, 3, 4]
    found = kmeans(torch.ones(6, 2), n_clusters=3, generator=gen(0))
    assert found.inertia == 0.0
    assert torch.isfinite(found.centers).all()


def test_nearest_centers_and_inertia_equal_loops():
    features, centers = torch.randn(50, 3, generator=gen(1)) + 40, torch.randn(7, 3, generator=gen(2)) + 40
    expected = [min(range(7), key=lambda c, x=x: float((x - centers[c]).norm())) for x in features]
    for max_bytes in (100, 2**28):
        assert nearest_centers(features, centers, max_bytes=max_bytes).tolist() == expected
    by_loop = sum(float((x - centers[c]).square().sum()) for x, c in zip(features, expected, strict=True))
    assert inertia(features, torch.tensor(expected), centers) == pytest.approx(by_loop, rel=1e-5)


def test_as_many_clusters_as_categories_draws_nothing():
    features, rows = blobs(3, 10, spread=0.2)
    found = semi_supervised_kmeans(features, rows, features + 0.01, n_clusters=3, generator=gen(0))
    assert found.clusters.tolist() == rows.tolist()
    nobody = semi_supervised_kmeans(features, rows, features[:0], n_clusters=3, generator=gen(0))
    assert nobody.clusters.tolist() == []
    torch.testing.assert_close(nobody.centers[1], features[rows == 1].mean(0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": 1}, "got 1 for 2 categories"),
        ({"n_clusters": 99}, "got 99 for 2 categories and 4"),
        ({"n_starts": 0}, "got 0 and 300"),
        ({"labels": torch.tensor([1])}, "got 1 for 2"),
        ({"unlabeled": torch.zeros(4, 5)}, r"\(2, 3\) and \(4, 5\)"),
        ({"unlabeled": torch.tensor([[0.0, 0.0, 0.0], [1.0, float("nan"), 0.0]])}, "position 3"),
    ],
)
def test_bad_input_is_an_error(change, message):
    arguments = {
        "labeled": torch.eye(3)[:2],
        "labels": torch.tensor([1, 2]),
        "unlabeled": torch.rand(4, 3),
        "n_clusters": 3,
    }
    arguments |= change
    features = [arguments.pop(name) for name in ("labeled", "labels", "unlabeled")]
    with pytest.raises(IgcdError, match=message):
        semi_supervised_kmeans(*features, generator=gen(0), **arguments)


def test_an_empty_cluster_takes_no_image_that_is_its_own_center():
    """Two pairs of equal points and three centers: the third has no image, and no image is away from its center."""
    features = torch.tensor([[0.0], [0.0], [10.0], [10.0]])
    first = torch.tensor([[0.0], [10.0], [5.5]])
    found = kmeans(features, n_clusters=3, generator=gen(0), initial_centers=first, tolerance=0.0)
    assert found.centers[:, 0].tolist() == [0.0, 10.0, 5.5] and found.clusters.tolist() == [0, 0, 1, 1]


def test_a_cluster_that_gives_its_farthest_image_away_has_the_mean_of_the_others():
    features = torch.tensor([[0.0], [1.0], [2.0], [9.0]])
    first = torch.tensor([[3.0], [100.0]])  # nobody is near the second: it gets the image at 9
    found = kmeans(features, n_clusters=2, generator=gen(0), initial_centers=first, tolerance=0.0, n_iterations=1)
    assert found.centers[:, 0].tolist() == [1.0, 9.0]
