"""Labels in doubt, the order of what needs a look, and which categories were found again."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from igcd.workspace.again import found_again
from igcd.workspace.doubts import check_labels
from igcd.workspace.looks import expected_growth, most_teaching_first


def unit(rows):
    return torch.nn.functional.normalize(torch.tensor(rows, dtype=torch.float64), dim=1)


def slow_probability(rows, labels, sharpness):
    """The same with a loop: each row against the means, its own without itself."""
    found = []
    for at, row in enumerate(rows):
        logits = {}
        for category in sorted(set(labels)):
            members = [rows[i] for i in range(len(rows)) if labels[i] == category and i != at]
            mean = sum(members) / len(members)
            logits[category] = sharpness * float(1 - (row - mean).square().sum()) / 2
        total = sum(np.exp(value) for value in logits.values())
        found.append(float(np.exp(logits[labels[at]]) / total))
    return found


def test_a_wrong_label_is_in_doubt_and_the_others_are_not():
    rng = np.random.default_rng(0)
    left, right = rng.normal([1, 0, 0], 0.1, (10, 3)), rng.normal([0, 1, 0], 0.1, (10, 3))
    labels = torch.tensor([5] * 10 + [9] * 10)
    labels[3] = 9
    check = check_labels(unit(np.concatenate([left, right])), labels)
    assert np.flatnonzero(check.is_doubtful).tolist() == [3]
    assert check.other[3] == 5 and check.probability[3] < 0.5 < check.other_probability[3]


def test_probabilities_are_those_of_the_slow_twin():
    rng = np.random.default_rng(1)
    rows, labels = unit(rng.normal(size=(12, 4))), [0, 1, 2] * 4
    check = check_labels(rows, torch.tensor(labels))
    candidates = [slow_probability(rows, labels, float(np.exp(power))) for power in np.linspace(0, 6, 601)]
    nearest = min(np.abs(np.array(one) - check.probability).max() for one in candidates)
    assert nearest < 0.01  # one sharpness explains all of them


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
