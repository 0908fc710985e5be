import json

import pytest

from igcd.metrics.forgetting import final_forgetting, maximum_forgetting, mean_discovery


@pytest.mark.parametrize(
    ("base", "later", "printed"),
    [
        (41.8, [16.4, 14.2], 27.6),  # table 1, the paper's method
        (42.3, [12.3, 9.3, 5.1], 37.2),  # table 2, FRoST
        (79.0, [45.3, 43.2, 40.2], 38.8),  # table A10, GM
    ],
)
def test_rows_of_the_paper(base, later, printed):
    assert maximum_forgetting(base, later) == pytest.approx(printed, abs=0.1)


def test_every_row_of_tables_1_2_a9_a10(shared_data):
    path = shared_data.parent / "paper_results.json"
    if not path.is_file():
        pytest.skip(f"published figures not found at {path}")
    tables = [table for table in json.loads(path.read_text()).values() if isinstance(table, dict)]
    n_rows = 0
    for table in tables:
        if table.get("table") not in {"1", "2", "A9", "A10"}:
            continue
        for name, figures in table["rows"].items():
            row = dict(zip(table["columns"], figures, strict=True))
            if row["M_f"] is None:  # the upper bound does not forget
                continue
            later = [value for column, value in row.items() if column.endswith(".S-0")]
            # 0.1 as published, and a little for what decimals lose in binary
            assert maximum_forgetting(row["S0.All"], later) == pytest.approx(row["M_f"], abs=0.1 + 1e-9), name
            n_rows += 1
    assert n_rows == 16


def test_maximum_is_not_less_than_final_forgetting():
    later = [30.0, 10.0, 20.0]
    assert maximum_forgetting(50.0, later) == 40.0
    assert final_forgetting(50.0, later) == 30.0


def test_getting_better_is_negative_forgetting():
    assert maximum_forgetting(50.0, [60.0, 55.0]) == -5.0


def test_undefined_without_a_start_or_a_later_stage():
    assert maximum_forgetting(None, [1.0]) is None
    assert maximum_forgetting(50.0, []) is None
    assert maximum_forgetting(50.0, [None, None]) is None
    assert final_forgetting(50.0, [10.0, None]) is None
    assert mean_discovery([]) is None
    assert mean_discovery([None]) is None


def test_a_stage_without_the_group_does_not_count():
    assert maximum_forgetting(50.0, [None, 20.0]) == 30.0
    assert mean_discovery([10.0, None, 30.0]) == 20.0
