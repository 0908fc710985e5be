import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from igcd.report.spread import PairedTest, Spread, paired_test, ranks, spread

SCORES = st.lists(st.floats(0, 100), min_size=1, max_size=8)


@given(SCORES)
def test_spread_is_the_plain_loop(values):
    mean = sum(values) / len(values)
    found = spread(values)
    assert found.mean == pytest.approx(mean) and found.n == len(values)
    if len(values) > 1:
        assert found.deviation == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)))
    else:
        assert found.deviation is None


def test_the_paired_test_by_hand():
    """Differences 1, 2, 3: mean 2, standard error 1/sqrt(3), so t = 2 sqrt(3)."""
    test = paired_test({0: 2.0, 1: 4.0, 2: 6.0}, {2: 3.0, 0: 1.0, 1: 2.0})
    t = 2 * math.sqrt(3)
    assert test.t == pytest.approx(t) and test.difference == pytest.approx(2.0)
    assert test.p == pytest.approx(1 - t / math.sqrt(t**2 + 2))  # Student's distribution with 2 degrees of freedom


@given(SCORES, SCORES)
def test_swapping_two_methods_turns_the_sign(first, second):
    a, b = dict(enumerate(first)), dict(enumerate(second))
    one, other = paired_test(a, b), paired_test(b, a)
    assert one.difference == pytest.approx(-other.difference, abs=1e-9)
    assert (one.p is None) == (other.p is None)
    if one.p is not None:
        assert one.p == pytest.approx(other.p) and 0 <= one.p <= 1


def test_no_test_of_two_seeds_of_none_or_of_equal_differences():
    assert paired_test({0: 1.0, 1: 2.0}, {0: 1.5, 1: 2.7}).p is None
    assert paired_test({0: 1.0}, {1: 2.0}) is None
    same = paired_test({0: 1.0, 1: 2.0, 2: 3.0}, {0: 0.9, 1: 1.9, 2: 2.9})
    assert same == PairedTest(pytest.approx(0.1), None, None, 3)


def test_ranks_follow_what_is_printed():
    assert ranks([1.0, 2.0, 3.0], lower_is_better=True) == [1, 2, None]
    assert ranks([50.01, 50.04, 40.0], lower_is_better=False) == [1, 1, 2]
    assert ranks([None, None], lower_is_better=False) == [None, None]
    assert Spread(1.0, None, 1) == spread([1.0])
