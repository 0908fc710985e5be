"""The report in a real browser: what a person sees, clicks and types; light, dark, narrow, and by axe-core's rules."""

import csv
import re

import pytest

pytest.importorskip("playwright", reason="the browser is driven by playwright; pip install it")

from playwright.sync_api import expect
from small_run import ROWS

from igcd.report.page import write_report


@pytest.fixture
def report(make_run):
    return write_report(make_run(pictures=True))


@pytest.fixture
def open_page(browser):
    """Opens a page; at the end none may have complained in its console, nor asked for anything from elsewhere."""
    contexts, complaints = [], []

    def open_one(path, **options):
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:", "blob:")) else complaints.append(request.url)
            ),
        )
        page.goto(path.as_uri())
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def shown(page):
    return page.locator("#shown")


def point_of(page, name):
    """Where the first image of some name lies on the canvas, in pixels of the page."""
    x, y = page.evaluate(
        """name => {
            const data = JSON.parse(document.getElementById("exploration").textContent);
            const at = data.images.id.indexOf(name);
            const box = document.getElementById("map").getBoundingClientRect();
            const place = (value) => box.width / 2 + (value / 10000 - 0.5) * (box.width - 28);
            return [box.left + place(data.images.x[at]), box.top + place(data.images.y[at])];
        }""",
        name,
    )
    return x, y


def test_the_page_opens_with_pictures_then_a_sentence(report, open_page):
    page = open_page(report)
    places = [page.locator(one).first.bounding_box()["y"] for one in (".hero img", "h1", ".lead", "#map", "#scores")]
    assert places == sorted(places)


def test_the_slider_shows_how_categories_appear(report, open_page):
    page = open_page(report)
    expect(shown(page)).to_have_text(f"{len(ROWS) + 2} images in 3 categories, 1 of them found and not labeled yet.")
    expect(page.locator("#legend button").first).to_contain_text("category 7")
    page.locator("#stage").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#stage-name")).to_have_text("Stage 0")
    expect(shown(page)).to_have_text("7 images in 2 categories, 0 of them found and not labeled yet.")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#stage-name")).to_have_text("Stage 1")


def test_filters_narrow_down_and_can_be_taken_back(report, open_page):
    page = open_page(report)
    page.locator("select[name=verdict]").select_option("wrong")
    wrong = sum(row[2] != {"0": "owl", "1": "fox", "7": "newt"}[row[3]] for row in ROWS)
    expect(shown(page)).to_contain_text(f"{wrong} images")
    page.locator("select[name=kind]").select_option("new")
    # The owl and the moth in cluster 7.
    expect(shown(page)).to_contain_text("2 images in 1 category, 1 of them found and not labeled yet.")
    page.get_by_role("button", name="Show all").click()
    page.get_by_role("searchbox").fill("MOTH")
    expect(shown(page)).to_contain_text("2 images")
    page.get_by_role("searchbox").fill("")
    page.locator("#legend button", has_text="fox").click()
    expect(shown(page)).to_contain_text("in 1 category")
    page.locator("#legend button", has_text="fox").click()
    expect(shown(page)).to_contain_text("in 3 categories")


def test_a_mark_shows_its_picture_and_what_is_around_it(report, open_page):
    page = open_page(report)
    page.locator("#map").scroll_into_view_if_needed()
    page.mouse.move(*point_of(page, "10"))  # a newt
    expect(page.locator("#hover")).to_contain_text("Newt, recognized")
    page.mouse.click(*point_of(page, "10"))
    expect(page.locator("#chosen")).to_contain_text("Newt, recognized")
    expect(page.locator("#chosen .pictures .tile")).to_have_count(8)
    page.locator("#chosen a", has_text="newt").click()
    expect(page.locator("#category h1")).to_contain_text("newt")


def test_the_map_can_be_walked_with_the_keyboard(report, open_page):
    page = open_page(report)
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#chosen .words").inner_text()
    seen = {page.locator("#chosen .note").first.inner_text()}
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
        seen.add(page.locator("#chosen .note").first.inner_text())
    assert first and len(seen) > 2
    page.keyboard.press("+")
    page.keyboard.press("-")
    page.keyboard.press("Enter")
    expect(page.locator("#category h1")).to_be_focused()
    page.go_back()
    page.locator("#map").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#chosen")).to_be_hidden()


def test_a_cell_of_the_confusion_table_opens_its_photos(report, open_page):
    page = open_page(report)
    page.get_by_role("button", name="newt taken for fox: 1 image. Show them").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("h2")).to_have_text("newt taken for fox")
    expect(dialog.locator(".picture")).to_have_count(1)
    expect(dialog.locator(".picture")).to_have_attribute("title", "newt, taken for fox; 13")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Stage 1: known category, novel cluster: 1 image. Show them").click()
    expect(dialog.locator(".picture")).to_have_attribute("title", "owl, taken for category 7 (newt); 7")
    dialog.locator(".picture").click()  # leads to its place on the map
    expect(dialog).to_be_hidden()
    expect(page.locator("#chosen")).to_contain_text("Owl, taken for category 7 (newt)")
    page.locator("#matrix-stage").select_option("0")
    expect(page.locator("[data-matrix='0'] caption")).to_be_visible()
    expect(page.locator("[data-matrix='1'] caption")).to_be_hidden()


def test_every_category_has_a_page(report, open_page):
    page = open_page(report)
    page.get_by_role("link", name="newt").last.click()
    heading = page.locator("#category h1")
    expect(heading).to_contain_text("newt")
    expect(heading).to_be_focused()
    expect(page.locator("#scores")).to_be_hidden()
    titles = page.locator("#category h2").all_inner_texts()
    assert titles[:2] == ["Recognized: 7 pictures", "Taken for fox: 1 picture"]
    assert sorted(titles[2:]) == ["Moth taken for it: 1 picture", "Owl taken for it: 1 picture"]
    page.get_by_role("link", name=re.compile("^Next")).click()
    expect(heading).to_contain_text("owl")
    page.go_back()
    expect(heading).to_contain_text("newt")
    page.get_by_role("link", name="← All categories").click()
    page.locator("#found h4 a").click()  # the card of what was found
    expect(heading).to_contain_text("newt")
    page.get_by_role("link", name="← All categories").click()
    expect(page.locator("#scores")).to_be_visible()
    expect(page.locator("#category")).to_be_hidden()


def test_tables_are_sorted_and_saved(report, open_page, tmp_path):
    page = open_page(report)
    names = page.locator("table.entries tbody th")
    before = names.all_inner_texts()
    head = page.locator("table.entries thead th", has_text="Right, %")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert names.all_inner_texts() == ["fox", "newt", "owl", "moth"]
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert names.all_inner_texts() == ["moth", "owl", "newt", "fox"]
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the table categories as CSV").click()
    waiting.value.save_as(tmp_path / "categories.csv")
    rows = list(csv.DictReader((tmp_path / "categories.csv").open(newline="")))
    assert [row["Category"] for row in rows] == ["moth", "owl", "newt", "fox"]  # as it is sorted now
    assert rows[2]["Right, %"] == "75.0" and rows[2]["Most often taken for"] == "fox (1)"
    head.get_by_role("button").click()
    assert names.all_inner_texts() == before
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the table scores as CSV").click()
    waiting.value.save_as(tmp_path / "scores.csv")
    heads, ours = list(csv.reader((tmp_path / "scores.csv").open(newline="")))[:2]
    assert heads[:3] == ["Method", "Stage-0 All", "Stage-1 All"] and len(ours) == len(heads)


LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "narrow": {"viewport": {"width": 360, "height": 740}, "has_touch": True},
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_rules_of_accessibility(report, open_page, look):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core comes with the extra `dev`")
    page = open_page(report, **LOOKS[look])
    check = axe.Axe()

    def violations():
        found = check.run(page).response["violations"]
        return [(one["id"], node["target"], node["failureSummary"]) for one in found for node in one["nodes"]]

    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    assert violations() == []
    page.locator("td .cell").first.click()
    assert violations() == []
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '#category-2'")
    expect(page.locator("#category h1")).to_be_focused()
    assert violations() == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_without_a_script_the_page_still_says_what_there_is(report, open_page):
    page = open_page(report, java_script_enabled=False)
    expect(page.locator(".lead")).to_contain_text("1 of the 2 new categories was found")
    expect(page.locator("#explore")).to_be_hidden()
    expect(page.locator("table.entries tbody tr")).to_have_count(4)
    expect(page.locator("table.scores").first).to_be_visible()
