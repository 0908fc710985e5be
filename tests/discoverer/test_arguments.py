# ruff: noqa: N806 - X is what scikit-learn calls the features
"""Labels of all kinds, and wrong parameters."""

import numpy as np
import pytest
from discoverer.easy_rows import a_start, blob

from igcd.discoverer import CategoryDiscoverer
from igcd.errors import IgcdError
from igcd.memory.category_ledger import DiscovererError


def test_classes_catch_a_misspelled_label(model):
    with pytest.raises(DiscovererError, match="labels must be among classes, got 5"):
        model.partial_fit(blob(5, 2), [5, -1], classes=[0, 1, 4])
    model.partial_fit(blob(0, 2), [0, -1], classes=[4])
    with pytest.raises(DiscovererError, match="labels must be among classes, got 'fxo'"):
        CategoryDiscoverer().partial_fit(blob(0, 2), ["fox", "fxo"], classes=["fox"])


def test_minus_one_and_one_alone_are_two_categories_by_default():
    X = np.concatenate([blob(0, 10), blob(1, 10)])
    y = np.repeat([-1, 1], 10)
    with pytest.warns(UserWarning, match="set unlabeled=-1"):
        model = CategoryDiscoverer().fit(X, y)
    assert model.categories_.tolist() == [-1, 1]
    model.partial_fit(X[:2], [-1, -1])
    assert model.n_novel_ == 0
    model = CategoryDiscoverer(unlabeled=-1).fit(X, y)
    assert model.categories_.tolist() == [1, 1000]


def test_another_mark_for_unlabeled():
    X, y, _ = a_start()
    names = np.array(["a", "b", "c", "d", "?"])
    model = CategoryDiscoverer(unlabeled="?").fit(X, names[y])
    assert model.categories_.tolist() == ["a", "b", "c", "d", "novel 1", "novel 2"]
    assert set(model.assign(-blob(0, 3))) == {"?"}
    assert CategoryDiscoverer(unlabeled="?").fit(X).categories_.tolist()[0] == "novel 1"
    with pytest.raises(DiscovererError, match="labels are numbers, so unlabeled must be one, got '\\?'"):
        CategoryDiscoverer(unlabeled="?").fit(X, y)


def test_numbers_of_discoveries_stay_clear_of_labels():
    X, y, _ = a_start()
    y = np.where(y >= 0, y + 120, -1)
    assert CategoryDiscoverer().fit(X, y).categories_.tolist()[-2:] == [10_000, 10_001]
    assert CategoryDiscoverer(first_novel=122).fit(X, y).categories_.tolist()[-2:] == [124, 125], "taken ones skipped"


def test_labels_are_of_one_kind(model):
    with pytest.raises(DiscovererError, match="of one kind at every call, int as at the first, got text"):
        model.partial_fit(blob(0, 2), ["fox", ""])
    with pytest.raises(DiscovererError, match="all numbers or all texts, got int, str"):
        CategoryDiscoverer().fit(blob(0, 2), np.array(["fox", 3], dtype=object))
    with pytest.raises(ValueError, match="continuous"):
        CategoryDiscoverer().fit(blob(0, 2), [0.5, 1.5])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("names", [np.arange(30), np.arange(30.0), np.array([f"kind {n:02d}" for n in range(30)])])
def test_one_label_per_category_is_no_regression(names):
    X = np.random.default_rng(0).normal(size=(90, 5))
    mark = "" if names.dtype.kind == "U" else -1
    model = CategoryDiscoverer(n_novel=0).fit(X, np.concatenate([names, np.full(60, mark, dtype=names.dtype)]))
    assert model.categories_.tolist() == names.tolist()
    with pytest.raises(ValueError, match="continuous"):
        CategoryDiscoverer().fit(X, np.linspace(0, 1, 90))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("n_novel", -1), ("n_novel", 2.5), ("granularity", "fine"), ("granularity", float("inf")), ("unsure", 1.5)],
        *[("n_components", 0), ("unsure", "never"), ("n_kept", 1), ("unlabeled", None), ("first_novel", -3)],
        *[("first_novel", 10**30), ("random_state", -1), ("random_state", "none")],
    ],
)
def test_a_wrong_parameter_is_named(name, value):
    with pytest.raises(DiscovererError, match=f"^{name} must be .*, got {value!r}; change it"):
        CategoryDiscoverer(**{name: value}).fit(*a_start()[:2])


def test_errors_are_ours_and_scikit_learns():
    assert issubclass(DiscovererError, IgcdError) and issubclass(DiscovererError, ValueError)
