"""Tables of the pages from the records: what leads, and where each table has its place."""

import json
from pathlib import Path

import pytest
from tools.write_reproducibility import OURS, STREAMS, confidence_interval, leads_text, rows_of, streams_text, written

from igcd.comparison.ledger import read_ledger

ROOT = Path(__file__).parents[2]
SCORES = {  # M_d and M_f by seed
    OURS: {0: (50.0, 6.0), 1: (48.0, 4.0), 2: (46.0, 5.0)},
    "gm": {0: (47.0, 9.0), 1: (44.0, 9.0), 2: (41.0, 9.0)},
    "frost": {0: (45.0, 4.0), 1: (45.0, 4.0), 2: (39.0, 4.0)},
    "happy": {1: (46.5, 8.0)},  # higher than gm, but on one seed
    "rls": {0: (60.0, 1.0), 1: (60.0, 1.0), 2: (60.0, 1.0)},  # asks the same core
    "supervised": {0: (70.0, 0.0)},
}


def records(scores=SCORES):
    stages = [
        {"stage": 0, "opened": 0, "scores": {"Old": 60.0, "New": None}, "count": {"new": {"true": 70}}},
        {"stage": 1, "opened": 8, "scores": {"Old": 50.0, "New": 20.0}, "count": {"new": {"true": 10}}},
        {"stage": 2, "opened": 17, "scores": {"Old": 40.0, "New": 30.0}, "count": {"new": {"true": 10}}},
    ]
    return [
        {"variant": method, "seed": seed, "M_d": m_d, "M_f": m_f, "stages": stages, "commit": "abc1234"}
        for method, by_seed in scores.items()
        for seed, (m_d, m_f) in by_seed.items()
    ]


def test_leads_have_the_best_rival_with_all_seeds_and_a_paired_test():
    lines = leads_text(dict.fromkeys(STREAMS, records())).splitlines()
    # leads 3, 4, 5: mean 4, t = 4 / (1 / sqrt 3) = 6.93; with two degrees of freedom p = 1 - t / sqrt(2 + t^2) = 0.0202
    # and the interval is 4 +- 4.303 / sqrt 3
    assert lines[2] == "| CIFAR-100 MI | **48.0** | 44.0 (`gm`) | 3.0, 4.0, 5.0 | **4.0** (1.5 to 6.5) | 6.9 | 0.020 |"
    # of five methods but the bound, rls (1.0) and frost (4.0) forget less than ours (5.0)
    assert lines[9] == "| CIFAR-100 MI | 5.0 (3 of 5) | `rls` 1.0, `frost` 4.0 | 60.0 | – | 70.0 (1 seed) |"
    assert lines[14] == (
        "- CIFAR-100 MI: of 6 methods, fewer than 3 seeds have `happy` (1), `supervised` (1); nearest of these rivals "
        "is `happy`, 1.5 behind on the seeds it has."
    )


def test_a_row_has_all_its_seeds_wherever_their_records_are():
    first, *others = read_ledger(ROOT / "results" / "cub-cpu-given.jsonl")[:3]  # one method, seeds 0, 1 and 2
    apart = [first, others[0] | {"variant": "another"}, *others[1:]]
    rows = rows_of(apart, "records")
    assert [row.name for row in rows] == [first["variant"], "another"]
    assert [sorted(row.results) for row in rows] == [[0, 2], [1]]


def test_a_p_that_would_be_rounded_to_zero_says_so():
    far_ahead = {OURS: {seed: (50.0 + seed, 5.0) for seed in range(8)}}
    far_ahead["gm"] = {seed: (40.0 + seed + seed % 2 / 10, 9.0) for seed in range(8)}
    assert leads_text(dict.fromkeys(STREAMS, records(far_ahead))).splitlines()[2].endswith("| < 0.001 |")


def test_one_seed_has_no_test():
    few = {method: {0: by_seed[0]} for method, by_seed in SCORES.items() if 0 in by_seed}
    line = leads_text(dict.fromkeys(STREAMS, records(few))).splitlines()[2]
    assert line.endswith("| 3.0 | **3.0** (-inf to inf) | – | – |")
    assert confidence_interval([2.0, 4.0]) == pytest.approx((3 - 12.706, 3 + 12.706), abs=0.001)


def test_streams_count_what_was_opened_stage_by_stage():
    lines = streams_text(dict.fromkeys(STREAMS, records())).splitlines()
    opened = "8 17; 8 17; 8 17 | 10 | 3 of 6 | +2.5 |"
    assert lines[2] == f"| CIFAR-100 MI | 50.0, 48.0, 46.0: **48.0** | 5.0 | 40.0 | 30.0 | {opened}"
    assert lines[-1] == "Commit abc1234."


@pytest.fixture
def checkout(tmp_path):
    """A checkout with two pages and a file of counts."""
    page = tmp_path / "docs" / "results" / "page.md"
    counts = tmp_path / "results" / "counts" / "mine.jsonl"
    page.parent.mkdir(parents=True)
    counts.parent.mkdir(parents=True)
    page.write_text("<!-- begin counts-mine -->\nold\n<!-- end counts-mine -->\n")
    (tmp_path / "REPRODUCIBILITY.md").write_text("<!-- begin later -->\nof a removed file\n<!-- end later -->\n")
    names = ("method", "starts", "stage", "novel_found", "seconds")
    rows = [
        ("density", 10, 1, 9, 0.5),
        ("density", 10, 2, 12, 0.5),
        ("kmeans", 10, 1, 30, 50),
        ("kmeans", 10, 2, 8, 60),
    ]
    lines = [dict(zip(names, row, strict=True)) | {"novel": 10, "command": "python counting.py"} for row in rows]
    counts.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_each_table_goes_to_the_page_that_has_its_place(checkout):
    texts = written(checkout)
    assert (
        "| density peaks | 9 | 12 | 1.5 | 0.50 | 1 |\n| kmeans, 10 starts | 30 | 8 | 11.0 | 55.00 | 110 |"
        in texts[checkout / "docs" / "results" / "page.md"]
    )
    not_yet = texts[checkout / "REPRODUCIBILITY.md"]
    assert not_yet == "<!-- begin later -->\n*Not measured yet.*\n<!-- end later -->\n"


def test_records_of_earlier_versions_have_places_of_their_own(checkout):
    record = ROOT / "results" / "cifar100-cpu.jsonl"
    target = checkout / "results" / "earlier" / "cifar100-cpu.jsonl"
    target.parent.mkdir()
    target.write_text(record.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"no page has a place for the records earlier/cifar100-cpu; add a line"):
        written(checkout)
    (checkout / "docs" / "results" / "earlier.md").write_text(
        "<!-- begin earlier/cifar100-cpu -->\n<!-- end earlier/cifar100-cpu -->\n"
    )
    texts = written(checkout)
    assert "](../images/earlier-cifar100-cpu-old-new.svg)" in texts[checkout / "docs" / "results" / "earlier.md"]
    assert checkout / "docs" / "images" / "earlier-cifar100-cpu-old-new.svg" in texts


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("<!-- begin a -->\n", "a marker without its other half"),
        ("<!-- begin a -->\n<!-- end b -->\n", "a marker without its other half"),
        ("<!-- begin later -->\n<!-- end later -->\n", "both have a place for later"),
    ],
)
def test_a_place_is_whole_and_there_once(checkout, page, message):
    (checkout / "docs" / "results" / "other.md").write_text(page)
    with pytest.raises(SystemExit, match=message):
        written(checkout)


def test_the_pages_of_the_project_are_what_its_records_say():
    differ = [path.name for path, text in written(ROOT).items() if path.read_text(encoding="utf-8") != text]
    assert not differ, f"run tools/write_reproducibility.py, which changes {differ}"
