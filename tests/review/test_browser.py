"""The review page in a real browser: what a person does, and what the catalog holds then."""

import re
from contextlib import ExitStack

import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("playwright", reason="the browser is driven by playwright; pip install it")

from playwright.sync_api import expect
from review.live_page import served
from workspace.sample_catalog import sample_workspace

from igcd.workspace import decisions, queries
from igcd.workspace.catalog import open_catalog

OWL, HARE, FOX = 1, 2, 3  # known, new, new


@pytest.fixture
def photos(tmp_path):
    return sample_workspace(tmp_path, known={"owl": 3}, novel={"hare": 12, "fox": 4}, n_unsure=2)


@pytest.fixture
def catalog(photos, tmp_path):  # noqa: ARG001 - they are in it
    with open_catalog(tmp_path / "ws") as opened:
        yield opened


@pytest.fixture
def serve(tmp_path):
    """Serves the workspace of the test; ends after the pages are closed."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(served(tmp_path / "ws", **options))


@pytest.fixture
def link(catalog, serve):  # noqa: ARG001 - the workspace is made by then
    return serve()


@pytest.fixture
def open_page(browser, serve):  # noqa: ARG001 - pages are closed before the server
    """Opens the page in a browser of its own; at the end no page may have complained in its console."""
    contexts, complaints = [], []

    def open_one(address, *, wait_for=None, **options):
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(address)
        if wait_for is not None:
            page.wait_for_url(wait_for)
        expect(page.locator("h1")).not_to_be_empty()
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not [text for text in complaints if "409" not in text]  # a conflict is meant, and Chromium notes it down


def title(page):
    return page.locator("h1")


def tile(page, index):
    return page.locator(f'.grid .tile[data-index="{index}"]')


def selected(page):
    return page.locator('.grid .tile[aria-selected="true"]')


def test_name_with_the_mouse_goes_on_to_the_next_and_survives_a_reload(link, open_page, catalog):
    page = open_page(link)
    assert "token" not in page.url
    expect(title(page)).to_have_text("new 2")
    page.get_by_role("button", name="Name").click()
    page.get_by_label("Name", exact=True).fill("Lepus/mountain hare")
    page.get_by_role("dialog").get_by_role("button", name="Name").click()
    expect(title(page)).to_have_text("new 3")
    expect(page.locator("#live")).to_have_text("Named new 2 “Lepus/mountain hare”")
    assert queries.category(catalog, HARE).name == "Lepus/mountain hare"
    page.goto(page.url.split("#")[0] + f"#/category/{HARE}")
    page.reload()
    expect(title(page)).to_have_text("Lepus/mountain hare")
    expect(page.locator("#tab-new .count")).to_have_text("1")


def test_a_file_that_leads_to_the_link_opens_the_page_without_a_token_in_the_address_bar(link, open_page, tmp_path):
    file = tmp_path / "open.html"
    file.write_text(f'<meta http-equiv="refresh" content="0; url={link}">')
    page = open_page(file.as_uri(), wait_for="http://**/")
    expect(title(page)).to_have_text("new 2")
    assert "token" not in page.url
    page.goto(f"{link}-of-yesterday")
    expect(title(page)).to_have_text("new 2")
    assert "token" not in page.url


def test_merge_reject_and_undo(link, open_page, catalog):
    page = open_page(link)
    page.get_by_role("button", name="Merge into").click()
    page.get_by_role("combobox").fill("OW")
    page.get_by_role("option", name="owl").click()
    expect(title(page)).to_have_text("new 3")
    assert queries.category(catalog, HARE).merged_into == OWL
    page.get_by_role("button", name="Reject").click()
    expect(title(page)).to_have_text("Nothing to review")
    assert queries.category(catalog, FOX).state == "rejected"
    page.locator("#undo").click()
    expect(title(page)).to_have_text("new 3")
    page.locator("#undo").click()
    expect(title(page)).to_have_text("new 2")
    expect(page.locator("#undo")).to_be_disabled()
    assert [category.id for category in queries.queue(catalog)] == [HARE, FOX]
    page.locator("#redo").click()
    expect(page.locator("#live")).to_contain_text("Redid: merged")
    assert queries.category(catalog, HARE).merged_into == OWL


def test_split_off_what_a_frame_a_range_and_single_clicks_select(link, open_page, catalog, photos):
    page = open_page(link)
    first, second = tile(page, 0).bounding_box(), tile(page, 1).bounding_box()
    page.mouse.move(first["x"] + 20, first["y"] + 20)
    page.mouse.down()
    page.mouse.move(second["x"] + 30, second["y"] + 60, steps=5)
    page.mouse.up()
    expect(selected(page)).to_have_count(2)
    tile(page, 4).click(modifiers=["Control"])
    tile(page, 6).click(modifiers=["Control", "Shift"])
    expect(page.locator(".selection-count")).to_have_text("5 selected")
    tile(page, 5).click(modifiers=["Control"])
    page.get_by_role("button", name="Split off").click()
    expect(page.locator("#live")).to_have_text("Split 4 photos off new 2 as new 4")
    expect(title(page)).to_have_text("new 2")
    assert set(queries.photo_ids_of(catalog, 4)) == {photos["hare"][i] for i in (0, 1, 4, 6)}
    page.get_by_role("button", name="Open").click()
    expect(title(page)).to_have_text("new 4")
    expect(page.locator(".grid .tile")).to_have_count(4)


def test_all_of_it_by_keyboard(link, open_page, catalog, photos):
    page = open_page(link)
    expect(page.locator(".grid")).to_be_focused()
    for key in ["End", "Shift+ArrowLeft", "u"]:  # the two least typical are doubtful
        page.keyboard.press(key)
    expect(page.locator("#live")).to_have_text("Set 2 photos to unsure")
    assert set(photos["hare"][-2:]) <= set(queries.photo_ids_of(catalog, None))
    for key in ["Home", "Space", "ArrowRight", "Space", "Shift+S"]:
        page.keyboard.press(key)
    page.keyboard.type("leveret")
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_have_text("Split 2 photos off new 2 as leveret")
    page.keyboard.press("n")
    page.keyboard.type("hare")
    page.keyboard.press("Enter")
    expect(title(page)).to_have_text("new 3")
    page.keyboard.press("u")
    expect(page.locator("#live")).to_have_text("Put off new 3")
    page.keyboard.press("1")  # it looks most like an owl
    expect(title(page)).to_have_text("Nothing to review")
    assert queries.category(catalog, FOX).merged_into == OWL
    page.keyboard.press("z")
    expect(title(page)).to_have_text("new 3")
    page.keyboard.press("Control+y")
    expect(page.locator("#live")).to_contain_text("Redid")
    page.keyboard.press("l")
    expect(title(page)).to_have_text("Low confidence")
    page.keyboard.press("c")
    expect(page.locator("#tab-check .count")).to_have_text("1")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("split them off under a name")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_lasso_on_the_map_moves_photos(link, open_page, catalog, photos):
    page = open_page(link)
    page.keyboard.press("g")
    box = page.locator("canvas").bounding_box()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.mouse.down()
    for x, y in corners:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=3)
    page.mouse.up()
    n_open = len(photos["hare"]) + len(photos["fox"]) + len(photos["unsure"]) + 2  # all but those with labels
    expect(page.locator(".selection-count")).to_have_text(f"{n_open} selected")
    page.get_by_role("button", name="Move to").click()
    page.get_by_role("combobox").fill("owl")
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_have_text(f"Moved {n_open} photos to owl")
    assert queries.category(catalog, OWL).n_photos == n_open + 3


def test_two_tabs_do_not_overwrite_each_other(link, open_page, catalog):
    first, second = open_page(link), open_page(link)
    first.keyboard.press("n")  # this page has seen the category as it was
    second.keyboard.press("n")
    second.keyboard.type("hare")
    second.keyboard.press("Enter")
    expect(title(second)).to_have_text("new 3")
    first.keyboard.type("rabbit")
    first.keyboard.press("Enter")
    expect(first.locator("#alarm")).to_contain_text("somebody else changed category 2")
    expect(title(first)).to_have_text("hare")
    assert queries.category(catalog, HARE).name == "hare"
    decisions.name(catalog, FOX, "fox", author="bo")  # the other page notices by itself
    expect(title(second)).to_have_text("fox")


def test_a_category_called_script_is_only_text(link, open_page, catalog):
    name = "<script>alert(1)</script>"
    page = open_page(link)
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.keyboard.press("n")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    expect(title(page)).to_have_text("new 3")
    full = "/".join(part.strip() for part in name.split("/"))
    assert queries.category(catalog, HARE).name == full
    for shown in ["m", "Escape", "h", "Escape", "b", "j", "g"]:
        page.keyboard.press(shown)
        page.wait_for_timeout(150)
    page.goto(page.url.split("#")[0] + f"#/category/{HARE}")
    page.reload()
    expect(title(page)).to_have_text(full)
    assert page.locator("script").count() == 1 and not dialogs


def test_five_thousand_photos_are_few_elements(serve, open_page, tmp_path):
    ids = sample_workspace(tmp_path, known={"owl": 2}, novel={"hare": 5000}, size=8)
    page = open_page(serve())
    expect(page.locator(".heading-text p")).to_contain_text("5,000 photos")
    assert 10 < page.locator(".tile").count() < 120
    page.keyboard.press("End")
    last = page.locator('.tile[data-index="4999"]')
    expect(last).to_be_visible()
    expect(last).to_have_attribute("aria-posinset", "5000")
    expect(last).to_have_attribute("aria-label", re.compile(r"hare-\d+\.png, certainty"))
    page.keyboard.press("Control+Shift+Home")
    expect(page.locator(".selection-count")).to_have_text("5,000 selected")
    assert page.locator(".tile").count() < 120
    page.keyboard.press("Escape")
    page.keyboard.press("Space")
    page.keyboard.press("s")
    expect(page.locator("#live")).to_have_text("Split 1 photo off new 2 as new 3")
    with open_catalog(tmp_path / "ws") as catalog:
        assert queries.photo_ids_of(catalog, 3) == [ids["hare"][0]]


def test_read_only_shows_everything_and_offers_nothing(catalog, serve, open_page):
    before = queries.revision(catalog)
    page = open_page(serve(read_only=True))
    expect(title(page)).to_have_text("new 2")
    expect(page.locator(".tile")).to_have_count(12)
    for key in ["Space", "s", "u", "a", "r", "1", "z", "n"]:
        page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_have_count(0)
    names = ["Name", "Accept", "Merge", "Reject", "Not sure", "Split off", "It is this"]
    assert sum(page.get_by_role("button", name=name).count() for name in names) == 0
    assert page.locator("#undo").count() == 0
    assert queries.revision(catalog) == before


def test_a_stranger_gets_no_photos_and_the_page_says_what_to_do(link, browser):
    page = browser.new_context().new_page()
    page.goto(link.split("?")[0])
    expect(page.locator("h1")).to_have_text("This page opens with its link")
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(link, open_page, scheme):
    page = open_page(link, color_scheme=scheme)
    tile(page, 0).click()
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 15
    assert {text: ratio for text, ratio in contrasts if ratio < 4.5} == {}


CONTRASTS = """() => {
  const rgb = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = rgb(getComputedStyle(node).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    const shown = node.checkVisibility() && !node.closest(":disabled, .unseen, .badges, noscript");
    if (!own || !shown) continue;
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))];
    found.push([node.textContent.trim().slice(0, 30), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
  }
  return found;
}"""


def test_on_a_tablet_everything_is_large_enough_to_touch(link, open_page):
    page = open_page(link, has_touch=True, is_mobile=True)
    page.set_viewport_size({"width": 820, "height": 1180})
    tile(page, 1).tap()
    tile(page, 2).tap()
    expect(page.locator(".selection-count")).to_have_text("2 selected")
    page.get_by_role("button", name="Show the lists").tap()
    expect(page.locator("#tab-new")).to_be_visible()
    for control in page.locator("button:visible, select:visible").all():
        box = control.bounding_box()
        is_photo = control.evaluate("node => node.closest('.near-photos') !== null")
        assert is_photo or min(box["width"], box["height"]) >= 43.5, control.inner_text()


def test_every_control_has_a_name(link, open_page):
    page = open_page(link)
    tile(page, 0).click()
    for path in ["", "#/check", "#/map"]:
        page.goto(page.url.split("#")[0] + path)
        page.wait_for_timeout(200)
        nameless = page.evaluate(NAMELESS)
        assert nameless == []


NAMELESS = """() => [...document.querySelectorAll("button, input, select, canvas, [role=listbox], [role=option]")]
  .filter((node) => !(node.ariaLabel || node.textContent.trim() || node.labels?.length))
  .map((node) => node.outerHTML)"""
