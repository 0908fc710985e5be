"""How sure the nearest mean is, and when a row is of none of the categories."""

# ruff: noqa: N806 - X is what scikit-learn calls the features

import numpy as np
import pytest
import torch
from discoverer.easy_rows import a_start, blob, blobs
from scipy.stats import norm
from sklearn.datasets import load_digits

from igcd.discoverer import CategoryDiscoverer


def test_a_row_far_from_everything_is_unsure(model):
    far = -blob(0, 20)
    assert model.is_unsure(far).all() and set(model.assign(far)) == {-1}
    assert set(model.predict(far)) <= {*model.categories_}
    assert model.is_unsure(blobs(range(6), 50, seed=9)[0]).mean() < 0.1
    never = CategoryDiscoverer(unsure=None).fit(*a_start()[:2])
    assert not never.is_unsure(far).any()
    np.testing.assert_array_equal(never.assign(far), never.predict(far))


def test_none_of_these_is_learned_from_rows_asked_without_their_category(digits):
    """The slow twin of `fit_none`: each row beside the means of all other rows, with its own category and without."""
    X, _, truth, _, _ = digits
    model = CategoryDiscoverer(n_novel=0).fit(X, truth)
    rows, means = model._compared(X).double(), model._means.means.double()
    known, alone = [], []
    for row, own in zip(rows, truth.tolist(), strict=True):
        closeness = {c: float(1 - (row - means[c]).square().sum()) / 2 for c in range(len(means)) if c != own}
        n = int((truth == own).sum())
        without = (n * means[own] - row) / (n - 1)
        alone.append(max(closeness.values()))
        known.append(max([float(1 - (row - without).square().sum()) / 2, *closeness.values()]))
    none = model._means.learned.none
    assert [none.known, none.other] == pytest.approx([np.mean(known), np.mean(alone)], abs=1e-4)
    assert [none.known_spread, none.other_spread] == pytest.approx([np.std(known), np.std(alone)], rel=1e-2)
    at = torch.linspace(none.other, none.known, 7)
    expected = [
        norm.pdf(c, none.other, none.other_spread)
        / (norm.pdf(c, none.other, none.other_spread) + norm.pdf(c, none.known, none.known_spread))
        for c in at.tolist()
    ]
    np.testing.assert_allclose(none(at).numpy(), expected, atol=1e-5)
    beyond = none(torch.tensor([none.other - 1, none.known + 1]))
    np.testing.assert_allclose(beyond.numpy(), none(at)[[0, -1]].numpy())


def test_rows_of_a_category_nobody_showed_are_of_none(digits):
    """ECE of the probability of "none", one row in two of a hidden category; and it is high where it should be."""
    X, _, truth, _, _ = digits
    is_shown, is_first = truth < 7, np.arange(len(X)) % 2 == 0
    model = CategoryDiscoverer().fit(X[is_shown & is_first], truth[is_shown & is_first])
    known, hidden = (model.predict_none(X[~is_first & rows]) for rows in (is_shown, ~is_shown))
    assert ((known >= 0) & (known <= 1)).all()
    assert known.mean() < 0.2 and hidden.mean() > 0.8
    assert model.is_unsure(X[~is_first & ~is_shown]).mean() > model.is_unsure(X[~is_first & is_shown]).mean() + 0.5


def test_without_labels_none_is_a_category_at_the_origin():
    model = CategoryDiscoverer().fit(blobs(range(5), 30)[0])
    assert model._means.learned.none is None
    rows = model._compared(blobs(range(5), 4, seed=3)[0])
    own = torch.ones(len(rows), dtype=torch.bool)
    closeness = (1 - torch.cdist(rows, model._means.means).min(dim=1).values.square()) / 2
    expected = 1 / (1 + np.exp(model._means.learned.confidence.sharpness * closeness.numpy()))
    np.testing.assert_allclose(model._means.none_probs(rows, own).numpy(), expected, rtol=1e-3, atol=1e-6)


def test_most_rows_of_one_category_are_not_unsure():
    """Features are centered, so the mean of nearly all rows is close to the origin, which stands for none."""
    X = np.concatenate([blob(0, 400), blob(1, 10)])
    model = CategoryDiscoverer().fit(X, np.repeat([0, 1], [400, 10]))
    assert model.is_unsure(blob(0, 200, seed=3)).mean() < 0.1


def test_few_labeled_rows_do_not_open_many_categories():
    """A fifth of six digits is labeled; four are new. Measured: 2 and 3."""
    X, truth = load_digits(return_X_y=True)
    for seed, known in ((1, [4, 5, 6, 7, 8, 9]), (2, [4, 5, 6, 7, 8, 9])):
        order = np.random.default_rng(seed).permutation(len(X))
        is_labeled = np.isin(truth[order], known) & (np.arange(len(X)) % 5 == 0)
        model = CategoryDiscoverer().fit(X[order], np.where(is_labeled, truth[order], -1))
        assert 2 <= model.n_novel_ <= 6


def test_what_no_category_explains_is_unsure_more_often(digits):
    X, _, truth, test_X, test_truth = digits
    model = CategoryDiscoverer().fit(X[truth < 6], truth[truth < 6])
    unsure, is_old = model.is_unsure(test_X), test_truth < 6
    # Measured: 0.02 of the known digits, 0.67 of the others, all of pure noise.
    assert unsure[is_old].mean() < 0.08 and unsure[~is_old].mean() > 0.5
    assert model.is_unsure(np.random.default_rng(0).uniform(0, 16, (100, 64))).all()
