import pytest
from fake_results import fake_results
from hypothesis import given
from hypothesis import strategies as st

from igcd.report.comparison_table import RowRecords, comparison_table, parse_results
from igcd.report.scatter import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, axis, old_against_new, place_labels


def table_of(last_stages):
    rows = []
    for name, scores in last_stages.items():
        results = {
            seed: parse_results(fake_results(name, seed, scores=[{"All": 80.0, "Old": 80.0}, one]), "here")
            for seed, one in enumerate(scores)
        }
        rows.append(RowRecords(name, results, len(scores), None, name, name))
    return comparison_table(rows)


def test_up_and_to_the_right_is_better():
    worse, better = [{"Old": 40.0, "New": 20.0, "All": 30.0}], [{"Old": 50.0, "New": 30.0, "All": 40.0}]
    figure = old_against_new(table_of({"gm": worse, "supervised": better}))
    first, second = figure.marks
    assert first.x < second.x and first.y > second.y  # SVG counts down
    assert (first.is_upper_bound, second.is_upper_bound) == (False, True)
    assert figure.summary == "gm: Old 40.0%, New 20.0%; supervised: Old 50.0%, New 30.0%"
    assert first.x_spread == (pytest.approx(first.x), pytest.approx(first.x))  # one seed has no spread


def test_where_no_known_category_comes_back_the_first_ones_stand_for_them():
    figure = old_against_new(table_of({"gm": [{"All": 30.0, "New": 30.0, "S-0": 50.0}]}))
    assert figure.old == "S-0"
    assert old_against_new(table_of({"gm": [{"All": 30.0, "Old": 30.0}]})) is None


@given(st.lists(st.floats(0, 100), min_size=1, max_size=9))
def test_an_axis_holds_all_values_and_few_ticks(values):
    low, high, step = axis(values)
    assert low <= min(values) and max(values) <= high
    assert 1 <= (high - low) / step <= 9


@given(
    st.lists(
        st.tuples(st.floats(LEFT, WIDTH - RIGHT), st.floats(30, HEIGHT - BOTTOM)), min_size=1, max_size=4, unique=True
    )
)
def test_a_name_stays_close_to_its_point(places):
    names = ["method"] * len(places)
    for (x, y), (label_x, label_y, anchor) in zip(places, place_labels(names, places), strict=True):
        assert abs(label_x - x) <= 10 and abs(label_y - y) <= 50
        assert anchor in ("start", "middle", "end")


def test_names_of_neighbors_do_not_cover_each_other():
    first, second = place_labels(["simgcd", "simgcd_icarl"], [(100.0, 100.0), (104.0, 103.0)])
    assert first != second
    assert first[2] == "start" and (second[2] == "end" or abs(first[1] - second[1]) >= 11)
