import pytest

from igcd.report.charts import HEIGHT, LABEL_GAP, WIDTH, line_chart


def test_points_follow_the_values_and_stay_inside():
    chart = line_chart("t", {"All": {0: 80.0, 1: 40.0, 2: 60.0}, "New": {0: None, 1: 0.0, 2: 60.0}}, [0, 1, 2])
    everything, new = chart.lines
    assert [point.value for point in new.points] == [0.0, 60.0]  # no value, no point
    ys = [point.y for point in everything.points]
    assert ys[0] < ys[2] < ys[1]
    assert ys[2] - ys[0] == pytest.approx(ys[1] - ys[2])  # 80 to 60 is as far as 60 to 40
    for line in chart.lines:
        for point in line.points:
            assert 0 < point.x < WIDTH and 0 < point.y < HEIGHT and 0 < point.text_y < HEIGHT
    assert abs(everything.label_y - new.label_y) >= LABEL_GAP
    assert everything.path.count("L") == 2


def test_the_axis_grows_with_the_values():
    assert [tick.text for tick in line_chart("t", {"All": {0: 12.0, 1: 9.0}}, [0, 1]).y_ticks] == ["0", "10", "20"]
    assert line_chart("t", {"All": {0: 100.0, 1: 9.0}}, [0, 1]).y_ticks[-1].text == "100"


def test_the_largest_fall_is_marked():
    drop = line_chart("t", {"stage 0": {0: 80.0, 1: 50.0, 2: 60.0}}, [0, 1, 2], show_drop=True).drop
    assert drop is not None
    assert drop.value == 30.0
    assert drop.y_end > drop.y_start


def test_no_fall_no_mark():
    assert line_chart("t", {"stage 0": {0: 80.0, 1: 85.0}}, [0, 1], show_drop=True).drop is None
    assert line_chart("t", {"stage 0": {0: 80.0}}, [0, 1], show_drop=True).drop is None


def test_many_stages_have_values_at_the_ends_only():
    line = line_chart("t", {"All": dict.fromkeys(range(12), 50.0)}, range(12)).lines[0]
    assert [point.text_y is None for point in line.points] == [False, *[True] * 10, False]


def test_words_say_what_the_lines_show():
    chart = line_chart("t", {"All": {0: 80.0, 1: 41.25}}, [0, 1])
    assert chart.summary == "All: stage 0 80.0%, stage 1 41.2%"


def test_nothing_to_draw():
    chart = line_chart("t", {"All": {0: None, 1: None}}, [0, 1], show_drop=True)
    assert (chart.lines, chart.drop) == ((), None)
