"""Labels in doubt, the order of what needs a look, and which categories were found again."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from igcd.workspace import doubts
from igcd.workspace.again import found_again
from igcd.workspace.doubts import check_labels
from igcd.workspace.looks import expected_growth, most_teaching_first


def unit(rows):
    return torch.nn.functional.normalize(torch.tensor(rows, dtype=torch.float64), dim=1)


def slow_judgement(rows, labels, sharpness, rates, n_alike):
    """Probability that each label is right, with loops: each row against the means, its own without itself."""
    categories = sorted(set(labels))
    means = {one: sum(rows[i] for i in range(len(rows)) if labels[i] == one) for one in categories}
    means = {one: mean / mean.norm() for one, mean in means.items()}
    found = []
    for at, row in enumerate(rows):
        logits = []
        for one in categories:
            members = [rows[i] for i in range(len(rows)) if labels[i] == one and i != at]
            logits.append(sharpness * float(1 - (row - sum(members) / len(members)).square().sum()) / 2)
        probs = np.exp(logits) / np.exp(logits).sum()
        own = labels[at]
        others = sorted((one for one in categories if one != own), key=lambda one: -float(means[one] @ means[own]))
        weights = [rates[0] if one == own else rates[1] / len(others) for one in categories]
        for one in others[:n_alike]:
            weights[categories.index(one)] += rates[2] / n_alike
        shown = probs * weights
        found.append(shown[categories.index(own)] / shown.sum())
    return found


def crowd(rng, *, n_categories=20, n_rows=20, spread=0.6):
    """Gaussian categories that overlap, and their labels."""
    means = rng.normal(size=(n_categories, 10))
    labels = np.repeat(np.arange(n_categories), n_rows)
    return unit(means[labels] + rng.normal(0, spread, (len(labels), 10))), labels


def test_a_wrong_label_is_in_doubt_and_the_others_are_not():
    rng = np.random.default_rng(0)
    left, right = rng.normal([1, 0, 0], 0.1, (10, 3)), rng.normal([0, 1, 0], 0.1, (10, 3))
    labels = torch.tensor([5] * 10 + [9] * 10)
    labels[3] = 9
    check = check_labels(unit(np.concatenate([left, right])), labels)
    assert np.flatnonzero(check.is_doubtful).tolist() == [3]
    assert check.other[3] == 5 and check.probability[3] < 0.5 < check.other_probability[3]


def test_judgements_are_those_of_the_slow_twin():
    rng = np.random.default_rng(1)
    rows, labels = unit(rng.normal(size=(28, 4))), [0, 1, 2, 3, 4, 5, 6] * 4
    owners = torch.tensor(labels)
    sums = torch.zeros(7, 4, dtype=torch.float64).index_add_(0, owners, rows)
    means = doubts._Means(sums, torch.full((7,), 4), doubts._most_alike(sums))
    habits = doubts._Habits(7.0, np.array([0.9, 0.04, 0.06]))
    shown = habits.judge(means.closeness(rows, owners), owners, means.alike)
    expected = slow_judgement(rows, labels, 7.0, habits.rates, doubts.N_ALIKE)
    np.testing.assert_allclose(shown[torch.arange(28), owners], expected)
    np.testing.assert_allclose(shown.sum(dim=1), 1)


def test_rates_are_the_most_probable_ones():
    ways = np.random.default_rng(2).dirichlet([1, 1, 1], 200) ** 2
    loss, rates = doubts._fit_rates(ways)
    assert rates.min() > 0 and np.isclose(rates.sum(), 1)
    grid = [np.array([a, b, 1 - a - b]) for a in np.linspace(0.01, 0.98, 41) for b in np.linspace(0.001, 0.999 - a, 41)]
    assert loss <= min(-np.log(ways @ one).sum() - doubts.SEEN_BEFORE @ np.log(one) for one in grid) + 0.05


def test_few_labels_of_hard_photos_are_no_mistakes(monkeypatch):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 8)
    rows = unit(rng.normal(size=(4, 200))[labels] * 0.2 + rng.normal(size=(32, 200)))
    assert not check_labels(rows, torch.from_numpy(labels)).is_doubtful.any()
    monkeypatch.setattr(doubts, "SEEN_BEFORE", np.full(3, 1e-9))  # then mistakes explain what is hard to tell
    assert check_labels(rows, torch.from_numpy(labels)).is_doubtful.sum() >= 5


@pytest.mark.parametrize("seed", range(3))
def test_right_labels_of_categories_that_overlap_are_no_mistakes(seed):
    rows, labels = crowd(np.random.default_rng(seed))
    means = torch.stack([rows[labels == category].mean(dim=0) for category in range(20)])
    assert (torch.cdist(rows, means).argmin(dim=1).numpy() != labels).sum() >= 8  # nearer to another category
    assert check_labels(rows, torch.from_numpy(labels)).is_doubtful.sum() <= 2  # of 400


@pytest.mark.parametrize("seed", range(3))
def test_most_of_the_listed_labels_are_wrong_and_as_many_as_expected(seed):
    rng = np.random.default_rng(seed)
    rows, labels = crowd(rng)
    given_labels = labels.copy()
    wrong = rng.permutation(len(labels))[:20]
    given_labels[wrong] = (labels[wrong] + rng.integers(1, 20, 20)) % 20
    check = check_labels(rows, torch.from_numpy(given_labels))
    listed, n_found = np.flatnonzero(check.is_doubtful), np.isin(wrong, np.flatnonzero(check.is_doubtful)).sum()
    assert n_found >= 12 and n_found >= 0.7 * len(listed)
    assert 0.7 < n_found / (1 - check.probability[listed]).sum() < 1.3
    assert (check.other[wrong] == labels[wrong]).mean() > 0.7


def test_doubts_do_not_depend_on_the_order_of_rows():
    rows, labels = crowd(np.random.default_rng(4), n_rows=6)
    labels[::11] = 3
    order = np.random.default_rng(5).permutation(len(labels))
    first, second = (check_labels(rows[i], torch.from_numpy(labels[i])) for i in (np.arange(len(labels)), order))
    np.testing.assert_allclose(first.probability[order], second.probability, atol=1e-6)


def test_the_only_photo_of_a_category_is_in_no_doubt():
    check = check_labels(unit([[1, 0], [0.9, 0.1], [0, 1]]), torch.tensor([1, 1, 2]))
    assert not check.is_doubtful[2] and check.probability[2] == 1
    assert not check_labels(unit([[1, 0], [0, 1]]), torch.tensor([3, 3])).is_doubtful.any()


def test_the_first_looks_see_something_of_everything():
    means = np.array([[1.0, 0], [0.99, 0.141], [0, 1.0]])
    order = most_teaching_first(means, np.array([5.0, 4.9, 2.0]), np.zeros(3))
    assert order.tolist() == [0, 2, 1]  # the second is nearly the first again
    assert most_teaching_first(means, np.array([1.0, 1, 1]), np.array([0.0, 0, 0.5])).tolist()[0] == 2


@given(st.lists(st.floats(0, 10), min_size=1, max_size=8))
def test_the_order_holds_every_group_once(gains):
    means = np.eye(len(gains))
    order = most_teaching_first(means, np.array(gains), np.zeros(len(gains)))
    assert sorted(order.tolist()) == list(range(len(gains)))
    assert [gains[i] for i in order] == sorted(gains, reverse=True)  # all different: worth alone decides


def test_growth_never_falls_and_ends_at_one():
    growth = expected_growth(6.0, 10, np.array([2.0, 1.5, 3.0]))
    assert growth == sorted(growth) and growth[0] == 0.6 and growth[-1] == 1.0
    assert expected_growth(0.0, 0, np.array([])) == []


def test_a_category_is_found_again_by_half_of_its_photos():
    former = {1: 7, 2: 7, 3: 7, 4: 8, 5: 8}
    assert found_again({1000: [1, 2, 3, 9], 1001: [4, 5]}, former) == {1000: 7, 1001: 8}
    assert found_again({1000: [1, 2, 3, 4, 5]}, former) == {1000: 7}  # joined: the larger one stays
    assert found_again({1000: [1, 10, 11, 12]}, former) == {}
    assert found_again({}, former) == {} and found_again({1000: [1]}, {}) == {}
