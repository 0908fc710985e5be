# ruff: noqa: N806 - X is what scikit-learn calls the features
"""What `partial_fit` makes of later batches: ids stay, discoveries grow, labels name them."""

import numpy as np
import pytest
from discoverer.easy_rows import WIDTH, a_start, blob, blobs, is_guess
from sklearn.datasets import load_digits

from igcd.discoverer import CategoryDiscoverer


def test_a_later_batch_extends_or_opens_and_never_renumbers(model):
    before = dict(zip(model.category_ids_.tolist(), model.categories_.tolist(), strict=True))
    X, truth = blobs([1, 4, 5, 6, 7], seed=1)
    first = model.predict(X)
    model.partial_fit(X)
    after = dict(zip(model.category_ids_.tolist(), model.categories_.tolist(), strict=True))
    assert after == before | {6: 1002, 7: 1003}
    old = np.isin(truth, [1, 4, 5])
    assert (model.labels_[old] == first[old]).mean() > 0.9
    assert ((model.labels_ == first) | (model.labels_ == -1))[old].all(), "the others are unsure"
    assert {*model.labels_[~old]} <= {1002, 1003, -1} and len({*model.predict(X[~old])}) == 2
    assert {found.batch for found in model.discoveries_} == {0, 1}


def test_the_same_batch_again_changes_nothing(model):
    X, _, _ = a_start()
    labels, categories = model.labels_, model.categories_
    model.partial_fit(X)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.categories_, categories)


def mixture(n_categories=20, n=40, width=24):
    """Gaussian categories that overlap a little."""
    generator = np.random.default_rng(4)
    centers, truth = generator.normal(size=(n_categories, width)), np.repeat(np.arange(n_categories), n)
    order = generator.permutation(len(truth))
    return (centers[truth] + 0.4 * generator.normal(size=(len(truth), width)))[order], truth[order]


@pytest.mark.parametrize("scene", ["digits", "mixture"])
def test_rows_keep_their_category_after_a_later_batch(scene):
    X, truth = load_digits(return_X_y=True) if scene == "digits" else mixture()
    n_known, n_later = (5, 7) if scene == "digits" else (10, 15)
    is_first = (truth < n_later) & (np.arange(len(X)) % 2 == 0)
    y = np.where((truth < n_known) & (np.arange(len(X)) % 4 == 0), truth, -1)
    model = CategoryDiscoverer().fit(X[is_first], y[is_first])
    before, categories = model.predict(X[is_first]), model.categories_
    model.partial_fit(X[~is_first])
    after = model.predict(X[is_first])
    assert model.n_novel_ > len(categories) - n_known, "the later batch opens categories"
    stayed = (after == before)[np.isin(after, categories)]
    assert stayed.mean() >= 0.97
    assert np.isin(after, categories).mean() > 0.9


def test_a_label_may_name_a_discovery_by_its_number(model):
    X = blob(4, 6, seed=2)
    label = int(model.predict(X)[0])
    model.partial_fit(X, [label] * 6)
    assert model.ledger_.find(label).status == "known" and model.n_novel_ == 1
    assert model.categories_.tolist() == [0, 1, 2, 3, 1000, 1001]
    assert (~is_guess(model, label)).sum() == 6 and is_guess(model, label).any()


def test_a_new_label_whose_rows_fall_into_a_discovery_names_it(model):
    X = blob(5, 6, seed=2)
    found = model.ledger_.find(int(model.predict(X)[0]))
    model.partial_fit(X, [50] * 6)
    assert model.ledger_.categories[found.id].label == 50
    assert model.ledger_.find(found.label).id == found.id, "the number it was found under still leads to it"
    assert len(model.categories_) == 6 and model.n_novel_ == 1


def test_a_new_label_elsewhere_opens_a_category(model):
    model.partial_fit(blob(9, 6), [50] * 6)
    assert model.categories_.tolist() == [0, 1, 2, 3, 1000, 1001, 50] and model.n_novel_ == 2
    assert set(model.predict(blob(9, 10, seed=3))) == {50}


def test_labels_that_take_all_of_a_discovery_make_it_that_category(model):
    X, _, _ = a_start()
    label = int(model.categories_[-1])
    model.partial_fit(X[model.labels_ == label], [0] * int((model.labels_ == label).sum()))
    assert label not in model.categories_
    assert model.ledger_.find(label).label == 0


def test_what_was_labeled_once_needs_no_label_again():
    X, y, _ = a_start()
    model = CategoryDiscoverer().fit(X, y)
    model.partial_fit(X[[0]], [3])  # a person corrects a label
    model.partial_fit(X[[0]])
    assert model.labels_.tolist() == [3]


def test_what_is_kept_is_bounded(model):
    for seed in range(3):
        model.partial_fit(*blobs(range(4), 80, seed=seed))
    sizes = np.bincount(model.state_dict()[0]["kept.categories"].numpy())
    assert len(sizes) == 6 and sizes.max() == 50 and model.means_.shape == (6, WIDTH)
