"""`igcd count` and the estimator take the same steps to the same core, so they find the same new categories."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from igcd import CategoryDiscoverer
from igcd.cli.count import estimate_from, read_features
from igcd.discoverer import estimator
from igcd.functional import counting, discovery, held_out, neighbors, projection, whitening


def one_answer(monkeypatch, rows, labels, *, from_file=None, seed=0, granularity=0.0):
    """The number of new categories, which `igcd count` and the estimator agree about to the last bit of every mean.

    `from_file` are the rows as `igcd count` reads them.
    """
    found = []

    def noted(*args, **options):
        found.append(discovery.discover(*args, **options))
        return found[-1]

    for module in (counting, estimator):
        monkeypatch.setattr(module, "discover", noted)
    settings = {"method": "density", "max_categories": None, "n_starts": 1, "seed": seed, "granularity": granularity}
    names = ["" if label == -1 else str(label) for label in labels.tolist()]
    counted, n_known = estimate_from(rows if from_file is None else from_file, names, **settings)
    model = CategoryDiscoverer(random_state=seed, granularity=granularity).fit(rows, labels)
    of_count, of_fit = found
    assert n_known == of_count.n_known == of_fit.n_known == len(set(labels.tolist()) - {-1})
    assert (of_count.category == of_fit.category).all()
    assert (of_count.means == of_fit.means).all()
    assert counted.details == {"height": of_fit.cut.height, "neighbor_recall": model.neighbor_recall_}
    assert counted.n_novel == model.n_novel_
    return counted.n_novel


def clouds(n, width, *, n_categories, spread=0.7, seed=0):
    rng = np.random.default_rng(seed)
    categories = rng.integers(n_categories, size=n)
    rows = rng.normal(size=(n_categories, width))[categories] + spread * rng.normal(size=(n, width))
    return rows.astype(np.float32), categories


@pytest.mark.parametrize("n_known", [0, 5, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_count_and_estimator_find_the_same_number(n_known, seed, monkeypatch):
    rows, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(rows))[:900]
    rows, digits = rows[order].astype(np.float32), digits[order]
    labels = np.where((digits < n_known) & (np.arange(len(rows)) % 2 == 0), digits, -1)
    assert one_answer(monkeypatch, rows, labels) > 0


@pytest.mark.parametrize("n_known", [0, 4])
@pytest.mark.parametrize("seed", range(6))
def test_they_do_with_fewer_rows_than_columns(n_known, seed, monkeypatch):
    rows, categories = clouds(80, 128, n_categories=9, spread=2.0, seed=seed)
    labels = np.where((categories < n_known) & (np.arange(80) % 3 == 0), categories, -1)
    one_answer(monkeypatch, rows, labels)


@pytest.mark.parametrize(
    ("dtype", "factor"), [(np.float64, 1e200), (np.float32, 1e-25), (np.float16, 1), (np.int16, 50)]
)
def test_they_do_in_every_precision(dtype, factor, monkeypatch, tmp_path):
    rows, categories = clouds(300, 20, n_categories=8)
    np.save(tmp_path / "rows.npy", (factor * rows.astype(np.float64)).astype(dtype))
    labels = np.where((categories < 5) & (np.arange(300) % 4 == 0), categories, -1)
    from_file, given = read_features(tmp_path / "rows.npy"), np.load(tmp_path / "rows.npy")
    assert one_answer(monkeypatch, given, labels, from_file=from_file) > 0


def test_they_do_where_only_a_sample_of_the_rows_is_looked_at(monkeypatch):
    rows, categories = clouds(1_200, 24, n_categories=30)
    rows[1::100] = rows[::100]  # copies count once
    labels = np.where((categories < 20) & (np.arange(1_200) % 25 == 0), categories, -1)
    monkeypatch.setattr(whitening, "SAMPLE", 200)
    monkeypatch.setattr(held_out, "MAX_ROWS", 300)
    numbers = [one_answer(monkeypatch, rows, labels, seed=seed, granularity=0.3) for seed in (0, 1, 2)]
    assert min(numbers) > 0


def test_they_do_with_more_rows_than_a_graph_is_exact_for(monkeypatch):
    for module in (projection, neighbors):
        monkeypatch.setattr(module, "EXACT_UP_TO", 500)  # rows are in half precision then; the graph keeps its limit
    rows, categories = clouds(1_200, 24, n_categories=30)
    rows[1::100] = rows[::100]
    labels = np.where((categories < 20) & (np.arange(1_200) % 25 == 0), categories, -1)
    assert one_answer(monkeypatch, rows.astype(np.float16), labels) > 0
