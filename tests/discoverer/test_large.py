"""More rows than an exact graph is for, in half precision and mapped from a file; tried with a limit far lower."""

from functools import partial

import numpy as np
import pytest
import torch

from igcd.discoverer.estimator import CategoryDiscoverer
from igcd.functional import discovery, neighbors, projection, pulling
from igcd.functional.discovery import discover


def clouds(n, *, n_clouds=12, width=16, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_clouds
    return (3 * rng.normal(size=(n_clouds, width))[y] + rng.normal(size=(n, width))).astype(np.float32), y


@pytest.fixture
def low_limits(monkeypatch):
    for module in (projection, neighbors):
        monkeypatch.setattr(module, "EXACT_UP_TO", 500)
    graph = neighbors.neighbor_graph
    monkeypatch.setattr(discovery, "neighbor_graph", partial(graph, approximate_above=500))
    monkeypatch.setattr(discovery, "node_of_rows", partial(pulling.node_of_rows, max_nodes=100))


def partly_labeled(y):
    return np.where((y < 6) & (np.arange(len(y)) % 10 < 2), y, -1)


@pytest.mark.slow  # PyNNDescent is compiled at its first call
@pytest.mark.usefixtures("low_limits")
def test_a_mapped_file_in_half_precision_gives_what_exact_rows_give(tmp_path):
    pytest.importorskip("pynndescent", reason="approximate neighbors need the extra `scale`")
    x, y = clouds(1_500)
    np.save(tmp_path / "x.npy", x.astype(np.float16))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = CategoryDiscoverer().fit(mapped, partly_labeled(y))
    assert 0.9 < model.neighbor_recall_ <= 1
    assert model.n_novel_ == 6
    predicted = model.predict(mapped)
    for category in range(12):
        assert len(set(predicted[y == category].tolist())) == 1
    assert (predicted[y < 6] == y[y < 6]).all()
    assert model.means_.dtype == np.float32
    again = CategoryDiscoverer().fit(mapped, partly_labeled(y))
    assert (again.labels_ == model.labels_).all()
    stored = CategoryDiscoverer.from_state_dict(*model.state_dict())
    assert (stored.predict(mapped) == predicted).all()
    assert stored.neighbor_recall_ == model.neighbor_recall_
    more, more_y = clouds(700, seed=0)
    labels, truth = stored.partial_fit(more.astype(np.float16)).labels_[more_y < 6], more_y[more_y < 6]
    assert set(labels[labels != truth].tolist()) <= {-1}  # unsure
    assert (labels == truth).mean() > 0.98


@pytest.mark.usefixtures("low_limits")
def test_the_search_for_neighbors_draws_from_the_random_state():
    x, y = clouds(1_500)
    seeds = []

    def search(features, k, *, seed):
        seeds.append(seed)
        return neighbors.nearest_neighbors(features, features, k + 1).idx[:, 1:]

    with neighbors.searching_with(search):
        CategoryDiscoverer(random_state=7).fit(x, partly_labeled(y))
    assert seeds and set(seeds) == {7}


@pytest.fixture(scope="module")
def fitted():
    x, y = clouds(600)
    return CategoryDiscoverer().fit(x, partly_labeled(y))


ANSWERS = ("predict", "predict_proba", "predict_none", "transform", "assign", "is_unsure")


@pytest.mark.parametrize("n", [1, 300, 4_096, 2 * 4_096 + 77])
@pytest.mark.parametrize("ask", ANSWERS)
def test_rows_are_answered_part_by_part_as_all_at_once(ask, n, fitted):
    x, _ = clouds(n, seed=1)
    whole, ids = fitted._compared(x), fitted._live_ids()
    own = torch.zeros(n, dtype=torch.bool)
    expected = {
        "predict": lambda: fitted.ledger_.labels(fitted._means.predict(whole, ids).tolist()),
        "predict_proba": lambda: fitted._means.probs(whole, ids, own).numpy(),
        "predict_none": lambda: fitted._means.none_probs(whole, own).numpy(),
        "transform": lambda: (whole @ torch.nn.functional.normalize(torch.from_numpy(fitted.means_), dim=1).T).numpy(),
        "assign": lambda: fitted.ledger_.labels(fitted._assign(whole, own).tolist()),
        "is_unsure": lambda: fitted._assign(whole, own).numpy() == -1,
    }[ask]()
    found = getattr(fitted, ask)(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("ask", ANSWERS)
def test_no_more_than_a_part_is_read_or_compared_at_a_time(ask, fitted, monkeypatch, tmp_path):
    np.save(tmp_path / "x.npy", clouds(9_000, seed=1)[0].astype(np.float16))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    sizes = []

    def noted(function):
        return lambda rows, *rest: sizes.append(len(rows)) or function(rows, *rest)

    monkeypatch.setattr(fitted, "_read_features", noted(fitted._read_features))
    monkeypatch.setattr(fitted, "_whitened", noted(fitted._whitened))
    assert len(getattr(fitted, ask)(mapped)) == 9_000
    assert set(sizes) == {4_096, 9_000 - 2 * 4_096} and len(sizes) == 6


def test_a_bad_row_in_a_later_part_is_found(fitted):
    x, _ = clouds(5_000, seed=1)
    x[4_999, 3] = np.nan
    for rows in (x, x.tolist()):
        with pytest.raises(ValueError, match="contains NaN"):
            fitted.predict(rows)
    with pytest.raises(ValueError, match="features"):
        fitted.predict(x[:, :5])
    with pytest.raises(ValueError, match="0 sample"):
        fitted.predict(x[:0])


def test_half_and_single_precision_of_the_same_numbers_are_the_same_rows():
    x, y = clouds(300)
    half = x.astype(np.float16)
    one, other = CategoryDiscoverer().fit(half, partly_labeled(y)), CategoryDiscoverer()
    other.fit(half.astype(np.float32), partly_labeled(y))
    assert (one.labels_ == other.labels_).all()
    assert one.row_keys(half) == other.row_keys(half.astype(np.float32))


def test_the_core_answers_alike_in_half_precision():
    x, y = clouds(400)
    rows, categories = torch.from_numpy(x), torch.from_numpy(y)
    known = categories < 6
    known &= torch.arange(len(rows)) % 3 == 0
    single = discover(rows[~known], rows[known], categories[known])
    half = discover(rows[~known].half(), rows[known], categories[known])
    assert half.means.dtype == torch.float32
    assert torch.equal(half.category, single.category)
    assert single.recall == 1


def test_exact_rows_have_full_recall():
    x, y = clouds(200)
    assert CategoryDiscoverer().fit(x, partly_labeled(y)).neighbor_recall_ == 1
