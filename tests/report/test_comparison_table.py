import csv
import io
import re

import pytest
from fake_results import fake_results

from igcd.config import read_recipe
from igcd.errors import IgcdError
from igcd.report.comparison_table import RowRecords, comparison_table, parse_results
from igcd.report.comparison_text import as_csv, as_latex, as_markdown
from igcd.report.later_work_text import later_work_note, later_work_table
from igcd.report.paper import LATER_WORK

FIRST = {"All": 80.0, "Old": 80.0}


def row(
    method, discovery, *, n_wanted=3, paper="mi.cifar100", forgetting=(5.0, 6.0, 7.0), stream="cifar100-mi", **values
):
    """A method with an M_d for each seed, None where the run is missing."""
    results = {
        seed: parse_results(
            fake_results(
                method,
                seed,
                m_d=score,
                m_f=forgetting[seed],
                stream=stream,
                seconds=60.0 + seed,
                found=10 + seed,
                **values,
            ),
            "here",
        )
        for seed, score in enumerate(discovery)
        if score is not None
    }
    return RowRecords(method, results, n_wanted, paper, method, method)


@pytest.fixture
def table():
    return comparison_table(
        [
            row("supervised", [90.0, 91.0, 92.0], forgetting=(0.0, 0.0, 0.0)),
            row("gm", [40.0, 41.0, 42.0]),
            row("snn_density", [44.0, 44.5, None], forgetting=(4.0, 4.0, 4.0)),
            row("kmeans", [30.0, 31.0, 32.0], forgetting=(9.0, 9.0, 9.0)),
        ]
    )


def by_name(table):
    return {row.name: row for row in table.rows}


def test_columns_are_those_of_the_papers_table(table):
    assert [column.key for column in table.columns] == ["S0.All", "S1.All", "S1.Old", "S1.New", "M_f", "M_d"]
    assert [column.arrow for column in table.columns] == ["↑", "↑", "↑", "↑", "↓", "↑"]
    absent = row("gm", [40.0], stream="a", scores=[FIRST, {"All": 50.0, "New": 50.0, "S-0": 30.0}])
    assert [column.key for column in comparison_table([absent]).columns][:3] == ["S0.All", "S1.New", "S1.S-0"]


def test_mean_deviation_and_missing_seeds(table):
    rows = by_name(table)
    assert rows["gm"].scores["M_d"].mean == 41.0 and rows["gm"].scores["M_d"].deviation == 1.0
    assert rows["snn_density"].scores["M_d"].n == 2 and rows["snn_density"].seeds_note == "2 of 3"
    assert rows["gm"].seeds_note == "3"
    assert rows["gm"].seconds.mean == 61.0 and rows["gm"].peak_memory == 700_000_002
    assert rows["gm"].opened[1].mean == 11.0 and rows["gm"].won[1].mean == 2.0
    assert rows["gm"].kept_images.mean == 5 and rows["gm"].kept_bytes.mean == 100


def test_the_upper_bound_takes_no_part(table):
    rows = by_name(table)
    assert rows["supervised"].ranks == {}
    assert (rows["snn_density"].ranks["M_d"], rows["gm"].ranks["M_d"], rows["kmeans"].ranks.get("M_d")) == (1, 2, None)
    assert (rows["snn_density"].ranks["M_f"], rows["gm"].ranks["M_f"]) == (1, 2)  # less forgetting is better


def test_the_papers_figures_stand_beside_ours(table):
    rows = by_name(table)
    assert rows["gm"].paper_figures == {"M_f": 3.6, "M_d": 30.6} and rows["gm"].paper.table == "3"
    assert rows["kmeans"].paper is None and rows["kmeans"].paper_figures == {}
    assert rows["gm"].paper_found.found == (14, 13, 13)
    static = comparison_table(
        [row("orca", [None, 7.0], paper="static_gcd.scars", scores=[{"All": 7.0, "Old": 9.0, "New": 5.0}])]
    )
    assert static.rows[0].paper_figures == {"S0.All": 23.5, "S0.Old": 50.1, "S0.New": 10.7}


def test_pairs_are_tested_on_the_seeds_they_share(table):
    tests = table.pairs["M_d"]
    assert tests["gm", "kmeans"].n == 3 and tests["gm", "kmeans"].difference == 10.0
    assert tests["gm", "kmeans"].p is None  # the same difference for all seeds
    assert tests["gm", "snn_density"].n == 2 and tests["gm", "snn_density"].p is None
    assert tests["supervised", "gm"].difference == 50.0


def test_a_row_without_a_run_has_a_place():
    empty = comparison_table([row("gm", [40.0]), RowRecords("orca", {}, 3, None, "orca", "orca")])
    assert empty.rows[1].scores == {} and empty.rows[1].seeds_note == "0 of 3"
    assert "orca | 0 of 3 | –" in as_markdown(empty, "x", "y")
    with pytest.raises(IgcdError, match="no run is complete"):
        comparison_table([RowRecords("orca", {}, 3)])
    with pytest.raises(IgcdError, match="runs of one stream"):
        comparison_table([row("gm", [40.0]), row("orca", [40.0], stream="cub-mi")])
    with pytest.raises(IgcdError, match=r"here is not what `igcd run` writes: default"):
        parse_results({"M_d": 1.0}, "here")


def test_markdown(table):
    text = as_markdown(table, "small", "igcd compare small")
    assert "trained with ImageNet labels" in text and "`supervised` is an upper bound" in text
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "**44.2 ± 0.4**" in text and "<u>41.0 ± 1.0</u>" in text
    assert "↳ paper, table 3" in lines
    (head,) = [line for line in text.splitlines() if line.startswith("| method | seeds")]
    assert head.endswith("M_f ↓ | M_d ↑ |")
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert all(len({line.count("|") for line in one.splitlines()}) == 1 for one in tables)


def test_csv_has_every_score(table):
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    (best,) = [line for line in rows if line["variant"] == "snn_density" and line["score"] == "M_d"]
    assert (float(best["mean"]), best["seeds"], best["rank"], best["paper"]) == (44.25, "0 1", "1", "31.2")
    assert {line["better"] for line in rows if line["score"] == "M_f"} == {"lower"}
    assert len(rows) == 4 * (6 + 2 + 6)  # scores, time and memory, won and opened at two stages, images and bytes kept


def test_latex(table):
    text = as_latex(table, "10% & more_")
    assert r"\textbf{44.2{\scriptsize$\pm$0.4}}" in text and r"\underline{41.0" in text
    assert r"snn\_density (2 of 3 seeds)" in text and r"10\% \& more\_" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {6}
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


def in_the_layout_of_later_work(recipe, *overrides):
    """A table of runs of a recipe of that layout."""
    config = read_recipe(recipe, overrides).model_dump(mode="json")
    runs = row("vb_cgcd", [40.0, 42.0], paper=None, stream="cifar100-cgcd", config=config)
    for results in runs.results.values():
        results.later_work.update({"Happy": {"All": results.M_d, "M_f": None}, "VB-CGCD": {"New": 30.0}})
    return comparison_table([runs])


def test_the_layout_of_later_work_has_its_scores_and_published_figures():
    table = in_the_layout_of_later_work("cifar100-cgcd", "encoder.weights=dino.pth", "seed=2")
    heads, rows = later_work_table(table)
    assert heads == ["method", "Happy All", "VB-CGCD New"]
    assert rows[0] == ["vb_cgcd", "41.0 ± 1.4", "30.0 ± 0.0"]
    assert ["↳ published, vb_cgcd", "81.2", "–"] in rows and len(rows) == 4
    assert "DINO ViT-B/16" in later_work_note(table)
    assert later_work_table(comparison_table([row("gm", [40.0])])) is None


@pytest.mark.parametrize(
    ("recipe", "overrides"),
    [
        ("cifar100-cgcd-cpu", ()),
        ("cifar100-cgcd", ("encoder.backbone=resnet18",)),
        ("cifar100-cgcd", ("stream.by_category.images_labeled=40",)),
        ("cifar100-cgcd", ("n_novel=estimated",)),
        ("cifar100-cgcd", ("stream.rehearsal=true",)),
    ],
)
def test_published_figures_stand_only_beside_runs_of_their_setting(recipe, overrides):
    table = in_the_layout_of_later_work(recipe, *overrides)
    assert later_work_table(table)[1] == [["vb_cgcd", "41.0 ± 1.4", "30.0 ± 0.0"]]
    assert "Published" not in later_work_note(table)


def test_published_figures_agree_with_each_other():
    """All is the mean over 90 old and 10 new categories, so that their definition of Old is Happy's."""
    for figures in LATER_WORK["cifar100-cgcd"]["rows"].values():
        assert 0.9 * figures["Old"] + 0.1 * figures["New"] == pytest.approx(figures["All"], abs=0.1)
