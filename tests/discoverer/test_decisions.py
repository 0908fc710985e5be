"""What a person decides about categories that were found."""

# ruff: noqa: N806 - X is what scikit-learn calls the features

import numpy as np
import pytest
from discoverer.easy_rows import a_start, blob, is_guess

from igcd.discoverer import CategoryDiscoverer, decisions
from igcd.memory.category_ledger import DiscovererError


def rows_of(model, label):
    return a_start()[0][model.labels_ == label]


def test_a_renamed_discovery_is_known_and_keeps_its_id(model):
    found = model.ledger_.find(1000)
    rows = rows_of(model, 1000)
    model.rename(1000, 42)
    assert model.ledger_.find(42).id == found.id == model.ledger_.find(1000).id
    assert model.ledger_.find(42).status == "known" and model.n_novel_ == 1
    assert set(model.predict(rows)) == {42} and 1000 not in model.labels_
    assert not is_guess(model, 42).any()
    model.partial_fit(blob(8, 30))
    assert model.categories_.tolist() == [0, 1, 2, 3, 42, 1001, 1002], "the number 1000 is not given again"


def test_renaming_needs_a_free_name_of_the_same_kind(model):
    with pytest.raises(DiscovererError, match="name 3 is or was that of another category"):
        model.rename(1000, 3)
    with pytest.raises(DiscovererError, match=r"must be a whole number below 2\*\*62 other than -1 here, got 'fox'"):
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
    with pytest.raises(DiscovererError, match="splitting must leave some of the 30 rows kept of 1000"):
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
    monkeypatch.setattr(decisions, "MAX_REJECTED", 1)
    model.reject(1000)
    model.reject(1001)
    assert set(model.state_dict()[0]["kept.categories"].tolist()) == {0, 1, 2, 3, 5}
