"""How sure answers are about rows that nothing was learned from."""

# ruff: noqa: N806 - X is what scikit-learn calls the features

import numpy as np
import pytest
import torch
from discoverer.easy_rows import a_start, blobs
from sklearn.datasets import load_digits

from igcd.discoverer import CategoryDiscoverer
from igcd.discoverer import category_means as module
from igcd.discoverer.certainty import Certainty, NoneOfThese
from igcd.functional import left_out
from igcd.functional.confidence import Confidence


def few_digits(n_each, seed=0):
    """So many labeled rows of each of eight digits; the other rows of these, and as many of two never shown."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order]
    rank = np.array([(y[:row] == y[row]).sum() for row in range(len(y))])
    is_first = (rank < n_each) & (y < 8)
    is_later = ~is_first & (y < 8)
    return X[is_first], y[is_first], X[is_later], y[is_later], X[y >= 8]


@pytest.mark.parametrize("n_each", [4, 8])
def test_later_rows_are_right_as_often_as_promised(n_each):
    """As if they had been learned from, they would be promised 20 to 30 points too little."""
    gaps, gaps_if_learned = [], []
    for seed in range(3):
        X, y, later, truth, _ = few_digits(n_each, seed)
        model = CategoryDiscoverer().fit(X, y)
        right = (model.predict(later) == truth).mean()
        gaps.append(right - model.predict_proba(later).max(axis=1).mean())
        model._means.later = None
        gaps_if_learned.append(right - model.predict_proba(later).max(axis=1).mean())
    assert abs(np.mean(gaps)) < 0.07 < 0.14 < np.mean(gaps_if_learned)


def test_later_rows_of_known_categories_are_seldom_taken_for_none():
    """Ten rows of 400 numbers in each of six categories: the space follows them, and later rows lie far from all."""
    known, never, known_if_learned = [], [], []
    for seed in range(3):
        generator = np.random.default_rng(seed)
        centers = generator.normal(size=(8, 400))
        rows = [centers[np.arange(8).repeat(10)] + 2.5 * generator.normal(size=(80, 400)) for _ in range(2)]
        model = CategoryDiscoverer().fit(rows[0][:60], np.arange(6).repeat(10))
        known.append(model.predict_none(rows[1][:60]))
        never.append(model.predict_none(rows[1][60:]))
        model._means.later = None
        known_if_learned.append(model.predict_none(rows[1][:60]))
    assert (np.array(known) > 0.8).mean() < 0.05 and np.mean(never) > 0.4
    assert (np.array(known_if_learned) > 0.8).mean() > 0.5


def test_rows_that_were_learned_from_have_the_certainty_of_their_batch():
    X, y, _ = a_start()
    second = blobs([0, 1, 7], 20, seed=3)[0]
    model = CategoryDiscoverer().fit(X, y).partial_fit(second)
    model._means.later = Certainty(Confidence(1e-6), NoneOfThese(0.1, 0.1, 0.0, 0.1))
    unknown = blobs([0, 1], 5, seed=8)[0]
    for rows in (X, second):
        mixed = np.concatenate([unknown, rows])
        np.testing.assert_allclose(model.predict_proba(mixed)[10:], model.predict_proba(rows), atol=1e-12)
        assert model.predict_proba(rows).max(axis=1).mean() > 0.9
        assert model.predict_proba(mixed)[:10].max() < 0.3
        np.testing.assert_allclose(model.predict_none(mixed)[10:], model.predict_none(rows), atol=1e-9)
    again = CategoryDiscoverer.from_state_dict(*model.state_dict())
    np.testing.assert_array_equal(again.predict_proba(mixed), model.predict_proba(mixed))
    np.testing.assert_array_equal(again.is_unsure(mixed), model.is_unsure(mixed))


def test_the_same_row_in_half_precision_is_the_same_row():
    X, y, _ = a_start()
    X = X.astype(np.float16).astype(np.float32)
    model = CategoryDiscoverer().fit(X, y)
    model._means.later = Certainty(Confidence(1e-6))
    np.testing.assert_allclose(model.predict_proba(X.astype(np.float16)), model.predict_proba(X), atol=1e-3)


def test_without_labels_later_rows_are_asked_beside_what_was_found():
    model = CategoryDiscoverer().fit(blobs(range(5), 30)[0])
    assert model._means.later is not None and model._means.later.none is None
    assert model.predict_proba(blobs(range(5), 4, seed=3)[0]).max(axis=1).mean() > 0.8


def test_very_many_rows_have_one_certainty(monkeypatch):
    monkeypatch.setattr(left_out, "MAX_ROWS", 50)
    X, y, _ = a_start()
    model = CategoryDiscoverer().fit(X, y)
    assert model._means.later is None
    later = blobs([0, 1], 5, seed=8)[0]
    assert model.predict_proba(later).max(axis=1).mean() > 0.9
    assert CategoryDiscoverer.from_state_dict(*model.state_dict())._means.later is None


def test_labels_that_stand_alone_say_nothing_about_later_rows():
    """A category of one row is gone when that is left out: nobody can ask whether it would be right."""
    X, y, _ = a_start(12)
    y = np.where(np.arange(len(y)) % 12 == 0, y, -1)
    model = CategoryDiscoverer().fit(X, y)
    assert np.isfinite(model.predict_none(blobs(range(6), 3, seed=5)[0])).all()
    assert torch.isfinite(torch.tensor(model.predict_proba(blobs(range(6), 3, seed=5)[0]))).all()


def test_the_certainty_of_later_rows_follows_each_calibration(monkeypatch):
    calls = []
    found = module.certainty_of_later
    monkeypatch.setattr(module, "certainty_of_later", lambda *asked, **rest: calls.append(1) or found(*asked, **rest))
    X, y, _ = a_start()
    model = CategoryDiscoverer().fit(X, y)
    model.partial_fit(blobs([0], 3, seed=4)[0])  # far fewer than are known
    assert len(calls) == 1
    model.partial_fit(blobs(range(8), 40, seed=6)[0])
    assert len(calls) == 2
