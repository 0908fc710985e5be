"""What one row has right and another wrong: on rows to count by hand, and on the page in a browser."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from fake_results import fake_results
from small_run import ROWS, predictions_of

from igcd.metrics.predictions import write_predictions
from igcd.report.comparison import ComparisonPage, RunLink, render
from igcd.report.comparison_pictures import compare_pictures, tiles_of
from igcd.report.comparison_table import RowRecords, comparison_table, curves, parse_results
from igcd.report.picture_sheets import read_pictures


@pytest.fixture
def folders(make_run, tmp_path):
    """The small run, and the same with every newt of the test set taken for a fox, and nothing found."""
    ours = make_run(pictures=True)
    other = tmp_path / "other"
    shutil.copytree(ours, other)
    rows = [(*row[:3], "1", row[4]) if row[:3] == (1, "test", "newt") else row for row in ROWS]
    write_predictions(predictions_of(rows), other / "predictions.csv")
    stage = other / "stages" / "stage-1.json"
    stage.write_text(stage.read_text().replace('"category": "newt"', '"category": "owl"'))
    return {"ours": ours, "other": other}


def test_what_is_right_is_counted_by_hand(folders):
    compared = compare_pictures(folders, seed=0)
    assert compared.stage == 1 and len(compared.ids) == 10  # the test images of the last stage
    right = {row.name: {compared.ids[at] for at in row.right} for row in compared.rows}
    assert right["ours"] == {"5", "6", "8", "9", "10", "11", "12"}
    # There cluster 1 has four newts and two foxes, and stands for the newt.
    assert right["other"] == {"5", "6", "10", "11", "12", "13"}
    other = dict(zip(compared.ids, compared.rows[1].said, strict=True))
    assert {compared.categories[other[image]] for image in ("10", "11", "12", "13")} == {"newt"}
    assert {compared.categories[other[image]] for image in right["ours"] - right["other"]} == {"newt"}  # foxes
    assert [compared.categories[at] for at in compared.rows[0].found] == ["newt"]
    assert compared.rows[1].found == ()
    assert dict(zip(compared.categories, compared.is_new, strict=True)) == {
        "fox": False,
        "moth": True,
        "newt": True,
        "owl": False,
    }


def test_pictures_are_taken_out_of_their_sheets(folders):
    pictures = read_pictures(folders["ours"])
    tiles = tiles_of(pictures, list(pictures.images))
    of_stage_1 = [tile.mean() for tile, image in zip(tiles, pictures.images, strict=True) if image.stage == 1]
    assert np.allclose(of_stage_1, np.linspace(40, 220, len(of_stage_1)), atol=4)


def test_a_large_comparison_shows_a_sample(folders):
    compared = compare_pictures(folders, seed=0, n_pictures=4)
    assert len(compared.ids) == 4 and max(max(row.right, default=0) for row in compared.rows) < 4
    assert compared == compare_pictures(folders, seed=0, n_pictures=4)


def test_one_row_or_no_pictures(folders):
    assert compare_pictures({"ours": folders["ours"]}, seed=0) is None
    for folder in folders.values():
        shutil.rmtree(folder / "pictures")
    assert compare_pictures(folders, seed=0) is None


def page_of(folders):
    def results(at):
        return {seed: parse_results(fake_results("gm", seed, m_d=50.0 + at, m_f=3.0), "here") for seed in (0, 1)}

    records = [RowRecords(name, results(at), 2) for at, name in enumerate(folders)]
    runs = {(name, seed): RunLink(True, 50.0) for name in folders for seed in (0, 1)}
    page = ComparisonPage("small", "igcd compare", comparison_table(records), (0, 1), runs)
    return replace(page, curves=curves(records), pictures=compare_pictures(folders, seed=0))


def test_curves_are_means_over_seeds():
    records = RowRecords("gm", {s: parse_results(fake_results("gm", s, m_d=50.0, m_f=3.0), "here") for s in (0, 1)}, 2)
    (own,) = curves([records]).values()
    for group, by_stage in own.items():
        assert len(by_stage) > 1
        for stage, value in by_stage.items():
            scores = [results.stages[stage].scores[group] for results in records.results.values()]
            assert value == pytest.approx(sum(scores) / 2)


def test_a_fault_is_told_on_the_page(folders):
    page = replace(page_of(folders), pictures=None, pictures_fault="the <sheets> are gone")
    assert "This page has no pictures: the &lt;sheets&gt; are gone." in render(page)


@pytest.mark.parametrize("look", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 740}}])
def test_in_a_browser(folders, tmp_path, browser, look):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core comes with the extra `dev`")
    path = tmp_path / "index.html"
    path.write_text(render(page_of(folders)), encoding="utf-8")
    complaints = []
    context = browser.new_context(**look)
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    said = page.locator("#difference")
    assert said.inner_text() == ("Of 10 images, 2 are right with ours and wrong with other; the other way round 1.")
    assert page.locator("#found-list h3").inner_text() == "fox 2 images, by other taken for newt (2)"
    assert page.locator("#found-list .tile").count() == 2
    page.get_by_role("button", name="Swap").click()
    assert page.locator("#found-list h3").inner_text() == "newt 1 image, a new category, by ours taken for fox (1)"
    assert page.locator(".chart path").count() == 2
    page.locator("#picked input").first.focus()
    page.keyboard.press("Space")
    assert page.locator(".chart path").count() == 1
    page.locator("#group").select_option("Old")
    assert page.locator(".chart").get_attribute("aria-label") == "Old. other: stage 0 80.0%, stage 1 60.0%"
    assert [(one["id"], one["nodes"][0]["target"]) for one in axe.Axe().run(page).response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.locator("table.scores thead button").last.click()
    assert page.locator("table.scores tbody tr").first.inner_text().startswith("other")
    context.close()
    assert complaints == []
