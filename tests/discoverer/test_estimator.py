# ruff: noqa: N806 - X is what scikit-learn calls the features

import numpy as np
import pytest
from discoverer.easy_rows import WIDTH, a_start, blob, blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from igcd.discoverer import CategoryDiscoverer, decisions, estimator
from igcd.functional.assignment import contingency, match
from igcd.functional.discovery import discover
from igcd.memory.category_ledger import DiscovererError


def kept_keys(model):
    """The rows a model keeps, and their categories."""
    return dict(zip(model._kept.entries.image_ids, model._kept.entries.categories.tolist(), strict=True))


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
    search = GridSearchCV(pipeline, {"categorydiscoverer__granularity": [-0.5, 0.5]}, cv=2, error_score="raise")
    assert search.fit(X, truth).best_score_ == 1
    assert not hasattr(clone(pipeline[-1]), "labels_")


def test_a_transform_has_one_column_per_category(model):
    X, _, _ = a_start()
    similarity, means = model.transform(X), model.means_
    assert similarity.shape == (len(X), 6) and means.shape == (6, WIDTH)
    rows = model._compared(X).numpy()
    for row, column in ((0, 0), (77, 5), (150, 2)):  # the slow twin
        cosine = rows[row] @ means[column] / np.linalg.norm(rows[row]) / np.linalg.norm(means[column])
        assert similarity[row, column] == pytest.approx(cosine)
    np.testing.assert_array_equal(model.categories_[similarity.argmax(axis=1)], model.labels_)
    assert len(model.get_feature_names_out()) == 6


def test_nothing_is_answered_before_fit():
    rows_to = ("predict", "predict_proba", "predict_none", "transform", "assign", "is_unsure")
    for ask in (*rows_to, "row_keys", "sub_categories"):
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
        assert found.nearest_id != found.id and found.similarity < 0.5
        assert found.n_rows == (model.labels_ == label).sum() == len(found.members)
        own = truth == truth[found.peak]
        to_mean = model.transform(a_start()[0])[:, model.categories_.tolist().index(label)]
        assert to_mean[found.peak] >= np.median(to_mean[own]), "the peak is typical"
    assert model.discoveries_[0].nearest_id in range(4)


def test_digits_of_which_four_are_not_labeled(digits, fitted_to_digits):
    *_, test_X, test_truth = digits
    model = fitted_to_digits
    right, is_old = discovered_as(model.predict(test_X), test_truth), test_truth < 6
    # Measured: 5 found (6, 7, 8, 9 and a mixed one); old 0.96, new 0.82. See docs/estimator.md.
    assert 2 <= model.n_novel_ <= 6
    assert right[is_old].mean() > 0.9
    assert right[~is_old].mean() > 0.7


def test_all_rows_labeled_is_an_ordinary_classifier(digits):
    X, _, truth, test_X, test_truth = digits
    model = CategoryDiscoverer().fit(X, truth)
    assert model.n_novel_ == 0
    np.testing.assert_array_equal(model.labels_, truth)
    assert model.score(test_X, test_truth) > 0.93  # measured: 0.96


def test_without_labels_every_peak_is_a_category():
    X, truth = blobs(range(5))
    model = CategoryDiscoverer().fit(X)
    assert model.n_novel_ == 5 and model.discoveries_[0].nearest_id is None
    assert discovered_as(model.labels_, truth).all()


def test_one_label_each_is_enough():
    X, truth = blobs(range(3))
    y = np.full(len(X), -1)
    y[[0, 30]] = [7, 8]
    model = CategoryDiscoverer().fit(X, y)
    assert not model.is_unsure(X).any()
    assert set(model.labels_[truth == 0]) == {7} and set(model.labels_[truth == 1]) == {8}
    assert set(model.labels_[truth == 2]) == {1000}


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_a_handful_of_unlabeled_rows_is_no_problem(model, n_rows):
    model.partial_fit(blob(2, n_rows, seed=5))
    assert model.labels_.tolist() == [2] * n_rows
    assert CategoryDiscoverer().fit(blob(0, n_rows)).labels_.shape == (n_rows,)


# Laws ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unshuffled():
    X, y, _ = a_start(n=14)
    X[5], y[5] = X[4], y[4]  # a row that comes twice
    return X, y, CategoryDiscoverer().fit(X, y)


@settings(max_examples=15, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_shuffled_rows_get_the_same_answers(unshuffled, random):
    X, y, one = unshuffled
    order = np.array(random.sample(range(len(X)), len(X)))
    other = CategoryDiscoverer().fit(X[order], y[order])
    np.testing.assert_array_equal(one.labels_[order], other.labels_)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert kept_keys(one) == kept_keys(other)
    assert [order.tolist().index(found.peak) for found in one.discoveries_] == [f.peak for f in other.discoveries_]


def test_shuffled_digits_get_the_same_answers(digits, fitted_to_digits):
    X, y, _, test_X, _ = digits
    order = np.random.default_rng(3).permutation(len(X))
    one, other = fitted_to_digits, CategoryDiscoverer().fit(X[order], y[order])
    np.testing.assert_array_equal(one.labels_[order], other.labels_)
    np.testing.assert_array_equal(one.predict_proba(test_X), other.predict_proba(test_X))
    assert one.n_groups_ == other.n_groups_
    assert (one._means.learned, one._means.later) == (other._means.learned, other._means.later)


def test_names_of_labels_do_not_matter(model):
    X, y, _ = a_start()
    names = np.array(["ant", "bee", "cat", "dog", ""])
    texts = CategoryDiscoverer().fit(X, names[y])
    assert texts.categories_.tolist() == ["ant", "bee", "cat", "dog", "novel 1", "novel 2"]
    np.testing.assert_array_equal(model.predict_proba(X), texts.predict_proba(X))
    objects = np.where(y == -1, None, names[y])
    np.testing.assert_array_equal(CategoryDiscoverer().fit(X, objects).labels_, texts.labels_)
    mixed = [-1 if label == -1 else str(names[label]) for label in y]  # numpy makes "-1" of it
    np.testing.assert_array_equal(CategoryDiscoverer().fit(X, mixed).labels_, texts.labels_)


def test_float32_stays_float32(model):
    X, y, _ = a_start()
    single = CategoryDiscoverer().fit(X.astype(np.float32), y)
    assert single.transform(X).dtype == np.float32 == single.predict_proba(X).dtype
    np.testing.assert_array_equal(single.labels_, model.labels_)


def test_the_same_row_twice_is_one_row(model):
    X, y, _ = a_start()
    twice = CategoryDiscoverer().fit(np.tile(X, (2, 1)), np.tile(y, 2))
    np.testing.assert_array_equal(np.tile(model.labels_, 2), twice.labels_)
    assert kept_keys(model) == kept_keys(twice)


def test_of_equal_rows_the_label_most_of_them_have_counts():
    X, y, _ = a_start()
    X, y = np.concatenate([X, X[[0, 0, 0]]]), np.concatenate([y, [1, 1, -1]])
    model = CategoryDiscoverer().fit(X, y)
    assert kept_keys(model)[model.row_keys(X[[0]])[0]] == 1
    assert model.labels_[[0, -3, -2, -1]].tolist() == [0, 1, 1, 1]  # a label that was given is kept


# Scale and size of numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("factor", [1e19, 1e-18])
def test_scale_is_not_information(model, factor, dtype):
    X, y, _ = a_start()
    new, _ = blobs(range(8), 20, seed=3)
    scaled = CategoryDiscoverer().fit((factor * X).astype(dtype), y)
    np.testing.assert_array_equal(scaled.labels_, model.labels_)
    np.testing.assert_array_equal(scaled.predict((factor * new).astype(dtype)), model.predict(new))
    np.testing.assert_array_equal(scaled.partial_fit(factor * new).labels_, model.partial_fit(new).labels_)


def test_equal_rows_under_two_new_labels_are_one_category(model):
    X = blob(9, 6)
    model.partial_fit(np.concatenate([X, X, X[:1]]), [70] * 6 + [71] * 6 + [71])
    assert model.labels_.tolist() == [70] * 6 + [71] * 6 + [71], "a label that was given is kept"
    kept = kept_keys(model)
    categories = [kept[key] for key in model.row_keys(X)]
    assert categories == [model.ledger_.find(71).id] + [model.ledger_.find(70).id] * 5
    assert set(model.predict(X)) <= {70, 71}


# How many ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_novel", [0, 1, 2, 3, 5, 20])
def test_as_many_are_found_as_asked_for(digits, n_novel):
    for X, y in (a_start()[:2], (digits[0][::3], digits[1][::3])):
        model = CategoryDiscoverer(n_novel=n_novel).fit(X, y)
        assert model.n_novel_ == n_novel == len(model.discoveries_)
        assert {*model.predict(X)} == {*model.categories_}
        assert n_novel == 0 or CategoryDiscoverer(n_novel=n_novel).fit(X).n_novel_ == n_novel


def test_without_labels_something_is_new():
    with pytest.raises(DiscovererError, match="n_novel must be 1 or more where nothing is labeled, got 0"):
        CategoryDiscoverer(n_novel=0).fit(blob(0, 5))


def test_finer_is_never_fewer(digits):
    for X, y in (a_start()[:2], (digits[0][::3], digits[1][::3])):
        found = [CategoryDiscoverer(granularity=g).fit(X, y).n_novel_ for g in (-3, -0.5, 0, 0.5, 1)]
        assert found == sorted(found)
    assert found[0] < found[2] < found[-1]


def test_a_category_of_two_clouds_has_two_parts():
    X, truth = blobs(range(6))
    model = CategoryDiscoverer().fit(X, np.where(truth == 5, 4, truth))
    parts = model.sub_categories(X[truth >= 4])
    assert {*parts[:30]} | {*parts[30:]} == {0, 1} and len({*parts[:30]}) == len({*parts[30:]}) == 1
    assert np.unique(model.sub_categories(X[truth >= 4], n=3)).tolist() == [0, 1, 2]
    assert len(model.categories_) == 5, "a preview changes nothing"


def test_a_category_can_be_split_further_by_its_name():
    X, truth = blobs(range(6))
    names = np.array(["a", "b", "c", "d", "e", "e"])[truth]
    model = CategoryDiscoverer().fit(X, names)
    parts, keys = model.sub_categories("e"), model.kept_keys("e")
    assert np.unique(parts).tolist() == [0, 1] and len(parts) == len(keys) == 50
    cloud = dict(zip(model.row_keys(X), truth.tolist(), strict=True))
    of_parts = [{cloud[key] for key, part in zip(keys, parts, strict=True) if part == which} for which in (0, 1)]
    assert sorted(map(tuple, of_parts)) == [(4,), (5,)]
    smaller = [key for key, part in zip(keys, parts, strict=True) if part == 1]
    model.split("e", X[np.isin(model.row_keys(X), smaller)], name="f")
    assert set(model.kept_keys("f")) == set(smaller)
    assert np.unique(model.sub_categories("a", n=2)).tolist() == [0, 1]
    with pytest.raises(DiscovererError, match="there is no category 'z'; take one of 'a', 'b'"):
        model.sub_categories("z")


def test_one_row_is_one_group():
    X, y, _ = a_start()
    model = CategoryDiscoverer().fit(X, y)
    assert model.sub_categories(X[:1]).tolist() == [0]
    assert model.sub_categories(X[:2], n=2).tolist() in ([0, 1], [1, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            ({"n": n}, rf"n must be a whole number from 1 to the number of rows, 7, .*got {n!r}")
            for n in (-2, 0, 2.5, 8)
        ),
        *(
            ({"granularity": g}, rf"granularity must be a number from -100 to 100, got {g!r}")
            for g in (float("nan"), 101, "fine", None)
        ),
    ],
)
def test_groups_that_cannot_be_are_refused(change, message):
    X, y, _ = a_start()
    model = CategoryDiscoverer().fit(X, y)
    with pytest.raises(DiscovererError, match=message):
        model.sub_categories(X[:7], **change)


def test_sub_categories_draw_from_the_random_state(monkeypatch):
    seeds = []

    def noted(*args, seed, **options):
        seeds.append(seed)
        return discover(*args, seed=seed, **options)

    monkeypatch.setattr(decisions, "discover", noted)
    X, y, _ = a_start()
    CategoryDiscoverer(random_state=7).fit(X, y).sub_categories(X[:9])
    assert seeds == [7]


def test_the_core_is_asked_once(monkeypatch):
    calls = []

    def count(*args, **options):
        calls.append(len(args[0]))
        return discover(*args, **options)

    monkeypatch.setattr(estimator, "discover", count)
    X, y, _ = a_start()
    model = CategoryDiscoverer().fit(X, y)
    model.predict(X)
    assert calls == [(y == -1).sum()]
    model.partial_fit(blob(7, 30))
    assert calls[1:] == [30]


# How sure ------------------------------------------------------------------------------------------------------------


def test_probabilities_are_honest(digits, fitted_to_digits):
    *_, test_X, test_truth = digits
    model = fitted_to_digits
    probs = model.predict_proba(test_X)
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    right = discovered_as(model.predict(test_X), test_truth)
    # Measured: 0.73 and 0.91. Rehearsals hide half of six categories and are harder than the task itself.
    assert probs.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.2)
    sure = probs.max(axis=1) > np.median(probs.max(axis=1))
    assert right[sure].mean() > right[~sure].mean()
