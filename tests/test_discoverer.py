# ruff: noqa: N806 - X is what scikit-learn calls the features
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from igcd.discoverer import CategoryDiscoverer, estimator
from igcd.errors import IgcdError
from igcd.functional.assignment import contingency, match
from igcd.memory.category_ledger import CategoryLedger, DiscovererError

WIDTH = 16


def blob(category, n, *, seed=0, spread=0.25):
    """n rows around a direction of their own: categories that are easy to tell apart."""
    noise = np.random.default_rng([category, seed]).normal(size=(n, WIDTH))
    return 5 * np.eye(WIDTH)[category] + spread * noise


def blobs(categories, n=30, *, seed=0):
    rows = np.concatenate([blob(category, n, seed=seed) for category in categories])
    return rows, np.repeat(categories, n)


def a_start(n=30):
    """Categories 0 to 3 with every second row labeled, 4 and 5 without a label."""
    X, truth = blobs(range(6), n)
    y = np.where((truth < 4) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    return X, y, truth


@pytest.fixture
def model():
    X, y, _ = a_start()
    return CategoryDiscoverer().fit(X, y)


@pytest.fixture(scope="module")
def digits():
    """All digits, of 0 to 5 every second one labeled; the last 500 are for testing."""
    X, truth = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, truth = X[order], truth[order]
    y = np.where((truth < 6) & (np.arange(len(X)) % 2 == 0), truth, -1)
    return X[:-500], y[:-500], truth[:-500], X[-500:], truth[-500:]


def discovered_as(found, truth):
    """Rows that are right: labels for known categories, the best one-to-one matching for discoveries."""
    is_novel = found >= 1000
    category_of = match(contingency(np.where(is_novel, found - 1000, -1), truth))
    right = np.where(is_novel, -2, found)
    right[is_novel] = category_of[found[is_novel] - 1000]
    return right == truth


# scikit-learn's own laws ---------------------------------------------------------------------------------------------


@parametrize_with_checks([CategoryDiscoverer(), CategoryDiscoverer(n_components=None, unsure=None)])
def test_it_is_an_estimator_in_full(estimator, check):
    check(estimator)


def test_works_in_a_pipeline_and_a_search():
    X, y, truth = a_start()
    pipeline = make_pipeline(StandardScaler(with_std=False), CategoryDiscoverer())
    pipeline.fit(X, y)
    assert set(pipeline.classes_) == {0, 1, 2, 3, 1000, 1001}
    search = GridSearchCV(pipeline, {"categorydiscoverer__n_support": [1, 5]}, cv=2, error_score="raise")
    assert search.fit(X, truth).best_score_ == 1
    assert not hasattr(clone(pipeline[-1]), "labels_")


def test_a_transform_has_one_column_per_support_row(model):
    X, _, _ = a_start()
    similarity = model.transform(X)
    support = model.support_
    assert similarity.shape == (len(X), len(support.keys)) == (len(X), 6 * 5)
    at = dict(zip(model.row_keys(X), range(len(X)), strict=True))
    rows = [at[key] for key in support.keys]
    np.testing.assert_allclose(similarity[rows, np.arange(len(rows))], 1)  # a support row is like itself
    np.testing.assert_array_equal(model.labels_[rows], support.categories)
    assert len(model.get_feature_names_out()) == 30


def test_nothing_is_answered_before_fit():
    for ask in ("predict", "predict_proba", "transform", "assign", "is_unsure", "row_keys"):
        with pytest.raises(NotFittedError):
            getattr(CategoryDiscoverer(), ask)([[0.0, 1.0]])
    with pytest.raises(NotFittedError):
        CategoryDiscoverer().rename(1, 2)


# What is found -------------------------------------------------------------------------------------------------------


def test_finds_the_categories_nobody_labeled(model):
    X, _, truth = a_start()
    assert model.categories_.tolist() == [0, 1, 2, 3, 1000, 1001]
    assert model.n_novel_ == 2
    assert discovered_as(model.labels_, truth).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.categories_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def test_a_discovery_tells_where_it_was_found(model):
    _, y, truth = a_start()
    for found, label in zip(model.discoveries_, (1000, 1001), strict=True):
        assert model.ledger_.categories[found.id].label == label
        assert found.peak == found.members[0] and found.batch == 0
        assert len({*truth[list(found.members)]}) == 1 and (y[list(found.members)] == -1).all()
        assert found.nearest_id in range(4) and found.similarity + model.margin_ < found.density
    assert model.discoveries_[0].density >= model.discoveries_[1].density


def test_digits_of_which_four_are_not_labeled(digits):
    X, y, _, test_X, test_truth = digits
    model = CategoryDiscoverer().fit(X, y)
    right, is_old = discovered_as(model.predict(test_X), test_truth), test_truth < 6
    # Measured: 3 found (6, 7 and 9; most of the 8 are unsure); old 0.92, new 0.68. See docs/estimator.md.
    assert 2 <= model.n_novel_ <= 6
    assert right[is_old].mean() > 0.85
    assert right[~is_old].mean() > 0.5


def test_all_rows_labeled_is_an_ordinary_classifier(digits):
    X, _, truth, test_X, test_truth = digits
    model = CategoryDiscoverer(n_support=20).fit(X, truth)
    assert model.n_novel_ == 0
    np.testing.assert_array_equal(model.labels_, truth)
    assert model.score(test_X, test_truth) > 0.85  # measured: 0.92


def test_without_labels_every_peak_is_a_category():
    X, truth = blobs(range(5))
    model = CategoryDiscoverer().fit(X)
    assert model.n_novel_ == 5 and model.discoveries_[0].nearest_id is None
    assert discovered_as(model.labels_, truth).all()


def test_few_labels_fall_back_to_the_papers_k():
    X, truth = blobs(range(3))
    y = np.full(len(X), -1)
    y[[0, 30]] = [7, 8]
    model = CategoryDiscoverer().fit(X, y)
    assert (model.n_neighbors_, model.margin_, model.unsure_threshold_) == (10, 0.03, None)
    assert not model.is_unsure(X).any()
    assert set(model.labels_[truth == 0]) == {7} and set(model.labels_[truth == 1]) == {8}
    assert set(model.labels_[truth == 2]) == {1000}


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_a_handful_of_unlabeled_rows_is_no_problem(model, n_rows):
    model.partial_fit(blob(2, n_rows, seed=5))
    assert model.labels_.tolist() == [2] * n_rows
    assert CategoryDiscoverer().fit(blob(0, n_rows)).labels_.shape == (n_rows,)


# Laws ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False))
def test_shuffled_rows_get_the_same_answers(random):
    X, y, _ = a_start(n=14)
    X[5], y[5] = X[4], y[4]  # a row that comes twice
    order = np.array(random.sample(range(len(X)), len(X)))
    one, other = CategoryDiscoverer().fit(X, y), CategoryDiscoverer().fit(X[order], y[order])
    np.testing.assert_array_equal(one.labels_[order], other.labels_)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.support_.keys == other.support_.keys
    assert [found.density for found in one.discoveries_] == [found.density for found in other.discoveries_]


def test_shuffled_digits_get_the_same_answers(digits):
    X, y, _, test_X, _ = digits
    order = np.random.default_rng(3).permutation(len(X))
    one, other = CategoryDiscoverer().fit(X, y), CategoryDiscoverer().fit(X[order], y[order])
    np.testing.assert_array_equal(one.labels_[order], other.labels_)
    np.testing.assert_array_equal(one.predict_proba(test_X), other.predict_proba(test_X))
    assert (one.n_neighbors_, one.margin_) == (other.n_neighbors_, other.margin_)


def test_names_of_labels_do_not_matter():
    X, y, _ = a_start()
    names = np.array(["ant", "bee", "cat", "dog", ""])
    numbers, texts = CategoryDiscoverer().fit(X, y), CategoryDiscoverer().fit(X, names[y])
    assert texts.categories_.tolist() == ["ant", "bee", "cat", "dog", "novel 1", "novel 2"]
    np.testing.assert_array_equal(numbers.predict_proba(X), texts.predict_proba(X))
    objects = np.where(y == -1, None, names[y])
    np.testing.assert_array_equal(CategoryDiscoverer().fit(X, objects).labels_, texts.labels_)
    mixed = [-1 if label == -1 else str(names[label]) for label in y]  # numpy makes "-1" of it
    np.testing.assert_array_equal(CategoryDiscoverer().fit(X, mixed).labels_, texts.labels_)


def test_float32_stays_float32():
    X, y, _ = a_start()
    model = CategoryDiscoverer().fit(X.astype(np.float32), y)
    assert model.transform(X).dtype == np.float32 == model.predict_proba(X).dtype
    np.testing.assert_array_equal(model.labels_, CategoryDiscoverer().fit(X, y).labels_)


def test_the_same_row_twice_is_one_row():
    X, y, _ = a_start()
    model, twice = CategoryDiscoverer().fit(X, y), CategoryDiscoverer().fit(np.tile(X, (2, 1)), np.tile(y, 2))
    np.testing.assert_array_equal(np.tile(model.labels_, 2), twice.labels_)
    assert model.support_.keys == twice.support_.keys


def test_of_equal_rows_the_label_most_of_them_have_counts():
    X, y, _ = a_start()
    X, y = np.concatenate([X, X[[0, 0, 0]]]), np.concatenate([y, [1, 1, -1]])
    model = CategoryDiscoverer(n_support=50).fit(X, y)
    key = model.row_keys(X[[0]])[0]
    assert model.support_.categories[model.support_.keys.index(key)] == 1
    assert model.labels_[[0, -3, -2, -1]].tolist() == [0, 1, 1, 1]  # a label that was given is kept


# Later batches -------------------------------------------------------------------------------------------------------


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


def test_a_label_may_name_a_discovery_by_its_number(model):
    X = blob(4, 6, seed=2)
    label = int(model.predict(X)[0])
    model.partial_fit(X, [label] * 6)
    assert model.ledger_.find(label).status == "known" and model.n_novel_ == 1
    assert model.categories_.tolist() == [0, 1, 2, 3, 1000, 1001]
    assert not model.support_.is_pseudo[model.support_.categories == label].any()  # labeled rows before guesses


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
    assert len(model.support_.keys) == 6 * 5
    assert len(model.state_dict()[0]["kept.categories"]) <= 6 * 50


def test_classes_catch_a_misspelled_label(model):
    with pytest.raises(DiscovererError, match="labels must be among classes, got 5"):
        model.partial_fit(blob(5, 2), [5, -1], classes=[0, 1, 4])
    model.partial_fit(blob(0, 2), [0, -1], classes=[4])
    with pytest.raises(DiscovererError, match="labels must be among classes, got 'fxo'"):
        CategoryDiscoverer().partial_fit(blob(0, 2), ["fox", "fxo"], classes=["fox"])


# A person's decisions ------------------------------------------------------------------------------------------------


def rows_of(model, label):
    return a_start()[0][model.labels_ == label]


def test_a_renamed_discovery_is_known_and_keeps_its_id(model):
    found = model.ledger_.find(1000)
    rows = rows_of(model, 1000)
    model.rename(1000, 42)
    assert model.ledger_.find(42).id == found.id == model.ledger_.find(1000).id
    assert model.ledger_.find(42).status == "known" and model.n_novel_ == 1
    assert set(model.predict(rows)) == {42} and 1000 not in model.labels_
    assert not model.support_.is_pseudo[model.support_.categories == 42].any()
    model.partial_fit(blob(8, 30))
    assert model.categories_.tolist() == [0, 1, 2, 3, 42, 1001, 1002], "the number 1000 is not given again"


def test_renaming_needs_a_free_name_of_the_same_kind(model):
    with pytest.raises(DiscovererError, match="name 3 is or was that of another category"):
        model.rename(1000, 3)
    with pytest.raises(DiscovererError, match="must be a whole number other than -1 here, got 'fox'"):
        model.rename(1000, "fox")
    with pytest.raises(DiscovererError, match=r"got 2\.5"):
        model.rename(1000, 2.5)
    with pytest.raises(DiscovererError, match="got -1"):
        model.rename(1000, -1)
    with pytest.raises(DiscovererError, match="there is no category 77; take one of 0, 1, 2, 3, 1000, 1001"):
        model.rename(77, 78)


def test_merged_categories_are_one_and_both_are_recognised(model):
    rows = np.concatenate([rows_of(model, 0), rows_of(model, 1000), rows_of(model, 1001)])
    model.merge(0, [1000, 1001])
    assert model.categories_.tolist() == [0, 1, 2, 3] and model.n_novel_ == 0
    assert set(model.predict(rows)) == {0}
    assert not {1000, 1001} & {*model.labels_.tolist()}
    model.partial_fit(blob(9, 6), [1001] * 6)  # an old name leads to what it was merged into
    assert set(model.labels_) == {0}
    model.partial_fit(blob(8, 30))
    assert model.categories_.tolist() == [0, 1, 2, 3, 1002]


def test_two_discoveries_merged_stay_one_discovery(model):
    model.merge(1001, 1000)
    assert model.categories_.tolist() == [0, 1, 2, 3, 1001] and model.n_novel_ == 1
    model.rename(1001, 1000)  # the name of what is part of it is free for it
    assert model.categories_.tolist() == [0, 1, 2, 3, 1000]


def test_a_category_cannot_be_merged_with_itself(model):
    for others in (1000, [1001, 1001], []):
        with pytest.raises(DiscovererError, match="one or more categories other than 1000"):
            model.merge(1000, others)
    model.merge(1000, 1001)
    with pytest.raises(DiscovererError, match="one or more categories other than 1000"):
        model.merge(1000, 1001)


def test_a_split_becomes_a_category_of_its_own():
    X = np.concatenate([blob(0, 30), blob(1, 30), blob(2, 20)])
    model = CategoryDiscoverer().fit(X, [0] * 30 + [1] * 50)  # 2 was labeled 1 by mistake
    label = model.split(1, X[60:])
    assert label == 1000 and model.n_novel_ == 1
    assert model.labels_.tolist() == [0] * 30 + [1] * 30 + [1000] * 20
    assert set(model.predict(blob(2, 20, seed=4))) == {1000} and set(model.predict(blob(1, 20, seed=4))) == {1}
    assert model.split(1000, X[60:65], name=5) == 5
    assert model.categories_.tolist() == [0, 1, 1000, 5] and model.n_novel_ == 1


def test_a_split_must_leave_something(model):
    with pytest.raises(DiscovererError, match="splitting must leave some of the 13 rows kept of 1000"):
        model.split(1000, rows_of(model, 1000))
    with pytest.raises(DiscovererError, match="name 3 is or was that of another"):
        model.split(1000, rows_of(model, 1000)[:4], name=3)
    assert model.categories_.tolist() == [0, 1, 2, 3, 1000, 1001], "nothing has changed"


def test_a_rejected_category_is_not_found_again(model):
    rows = rows_of(model, 1000)
    category = int(a_start()[2][model.labels_ == 1000][0])
    model.reject(1000)
    assert model.categories_.tolist() == [0, 1, 2, 3, 1001]
    assert set(model.assign(rows)) == {-1} and model.is_unsure(rows).all()
    assert (model.labels_ == -1).sum() == len(rows)
    assert set(model.predict(rows)) <= {0, 1, 2, 3, 1001}, "predict always answers"
    model.partial_fit(np.concatenate([blob(category, 40, seed=7), blob(8, 40)]))
    assert model.categories_.tolist() == [0, 1, 2, 3, 1001, 1002], "the id is not used again"
    assert (model.labels_[:40] == -1).all() and (model.labels_[40:] == 1002).all()
    with pytest.raises(DiscovererError, match="1000 has been rejected"):
        model.partial_fit(rows[:2], [1000, 77])
    assert 77 not in model.ledger_, "an error comes before any change"


def test_only_so_many_rejected_categories_are_remembered(model, monkeypatch):
    monkeypatch.setattr(estimator, "MAX_REJECTED", 1)
    model.reject(1000)
    model.reject(1001)
    assert set(model.state_dict()[0]["kept.categories"].tolist()) == {0, 1, 2, 3, 5}


# Unsure --------------------------------------------------------------------------------------------------------------


def test_a_row_far_from_everything_is_unsure(model):
    far = -blob(0, 20)
    assert model.is_unsure(far).all() and set(model.assign(far)) == {-1}
    assert set(model.predict(far)) <= {*model.categories_}
    assert model.is_unsure(blobs(range(6), 50, seed=9)[0]).mean() < 0.1
    never = CategoryDiscoverer(unsure=None).fit(*a_start()[:2])
    assert not never.is_unsure(far).any()
    np.testing.assert_array_equal(never.assign(far), never.predict(far))


def test_the_threshold_leaves_one_in_fifty_labeled_rows_out(digits):
    X, _, truth, _, _ = digits
    model = CategoryDiscoverer(n_kept=10_000).fit(X, truth)
    h = model._compared(X)
    alone = [
        float((h[(truth == truth[row]) & (np.arange(len(h)) != row)] @ h[row]).topk(5).values.mean())
        for row in range(len(h))
    ]
    assert np.mean(np.array(alone) < model.unsure_threshold_ - 1e-9) == pytest.approx(0.02, abs=1 / len(h))


def test_few_labeled_rows_do_not_open_many_categories():
    """A fifth of six digits is labeled. A margin less careful opened 6 to 21 categories where four are new."""
    X, truth = load_digits(return_X_y=True)
    for seed, known in ((1, [4, 5, 6, 7, 8, 9]), (2, [4, 5, 6, 7, 8, 9])):
        order = np.random.default_rng(seed).permutation(len(X))
        is_labeled = np.isin(truth[order], known) & (np.arange(len(X)) % 5 == 0)
        model = CategoryDiscoverer().fit(X[order], np.where(is_labeled, truth[order], -1))
        assert 4 <= model.n_novel_ <= 9


def test_what_no_category_explains_is_unsure_more_often(digits):
    X, _, truth, test_X, test_truth = digits
    model = CategoryDiscoverer().fit(X[truth < 6], truth[truth < 6])
    unsure, is_old = model.is_unsure(test_X), test_truth < 6
    # Measured: 0.01 of the known digits, 0.73 of the others, all of pure noise.
    assert unsure[is_old].mean() < 0.08 and unsure[~is_old].mean() > 0.5
    assert model.is_unsure(np.random.default_rng(0).uniform(0, 16, (100, 64))).all()


# Storing -------------------------------------------------------------------------------------------------------------


def a_life(model):
    """What a model answers now and after more has happened to it."""
    later, _ = blobs([1, 4, 6, 7], seed=1)
    told = [model.labels_, model.predict_proba(later), model.categories_, model.category_ids_, model.assign(later)]
    model.partial_fit(later)
    return [*told, model.labels_, model.categories_, model.support_.features, np.array(model.n_neighbors_)]


@pytest.mark.parametrize("labels", ["int", "float", "text"])
def test_a_stored_model_goes_on_as_if_it_had_never_stopped(tmp_path, labels):
    X, y, _ = a_start()
    y = {"int": y, "float": y.astype(float), "text": np.array(["a", "b", "c", "d", ""])[y]}[labels]
    model = CategoryDiscoverer(tau=0.2).fit(X, y)
    first, second = model.categories_[-2:].tolist()
    model.rename(first, "fox" if labels == "text" else 42)
    model.reject(second)
    tensors, metadata = model.state_dict()
    save_file(tensors, tmp_path / "model.safetensors", metadata)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        stored = {name: file.get_tensor(name) for name in tensors}
        again = CategoryDiscoverer.from_state_dict(stored, file.metadata())
    assert again.get_params() == model.get_params() and again.discoveries_ == model.discoveries_
    pickled = pickle.loads(pickle.dumps(model))
    for one, other, third in zip(a_life(model), a_life(again), a_life(pickled), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)
        assert one.dtype == other.dtype


def test_an_incomplete_or_newer_state_is_said_so(model):
    tensors, metadata = model.state_dict()
    with pytest.raises(DiscovererError, match="needs the entry 'mean', it is absent"):
        CategoryDiscoverer.from_state_dict({name: t for name, t in tensors.items() if name != "mean"}, metadata)
    with pytest.raises(DiscovererError, match="must be of version 1, got 2"):
        CategoryDiscoverer.from_state_dict(tensors, metadata | {"version": "2"})


# Labels and parameters -----------------------------------------------------------------------------------------------


def test_minus_one_and_one_alone_are_two_categories_unless_told():
    X = np.concatenate([blob(0, 10), blob(1, 10)])
    y = np.repeat([-1, 1], 10)
    with pytest.warns(UserWarning, match="set unlabeled=-1"):
        model = CategoryDiscoverer().fit(X, y)
    assert model.categories_.tolist() == [-1, 1]
    model.partial_fit(X[:2], [-1, -1])
    assert model.n_novel_ == 0
    told = CategoryDiscoverer(unlabeled=-1).fit(X, y)
    assert told.categories_.tolist() == [1, 1000]


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("n_neighbors", 0), ("margin", "wide"), ("n_support", 2.5), ("tau", 0), ("max_iou", 1.5), ("n_closest", 0)],
        *[("n_components", 0), ("unsure", "never"), ("n_kept", 1), ("unlabeled", None), ("first_novel", -3)],
    ],
)
def test_a_wrong_parameter_is_named(name, value):
    with pytest.raises(DiscovererError, match=f"^{name} must be .*, got {value!r}; change it"):
        CategoryDiscoverer(**{name: value}).fit(*a_start()[:2])


def test_errors_are_ours_and_scikit_learns():
    assert issubclass(DiscovererError, IgcdError) and issubclass(DiscovererError, ValueError)


def test_a_ledger_never_uses_an_id_twice():
    ledger = CategoryLedger(kind="text", unlabeled="", first_novel=1)
    a, b, c = ledger.open("a"), ledger.open(), ledger.open()
    ledger.reject(b)
    ledger.merge(a, c)
    assert ledger.open() == 3 and ledger.labels([a, b, c, 3, -1]).tolist() == ["a", "", "a", "novel 3", ""]
    assert CategoryLedger.from_state(ledger.state()).categories == ledger.categories
    assert replace(ledger.categories[c], merged_into=None).status == "merged"
