"""The page finishes the job: add, discover, cancel, accept and export in a real browser, and what helps to decide."""

import re
import threading
from itertools import pairwise

import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("playwright", reason="the browser is driven by playwright; pip install it")

from playwright.sync_api import expect
from workspace.painted_photos import paint_categories

from igcd.workspace import decisions, queries

OWL, HARE, FOX = 1, 2, 3  # known, new, new


def title(page):
    return page.locator("h1")


def tile(page, index):
    return page.locator(f'.grid .tile[data-index="{index}"]')


def leave_out(shown):
    if shown.get_attribute("aria-selected") == "true":
        shown.click(modifiers=["Control"])


def live(page):
    return page.locator("#live")


def test_discover_again_after_decisions(link, open_page, catalog):
    page = open_page(link)
    expect(page.locator("#next-step")).to_have_count(0)  # nothing has changed since the discovery
    expect(page.locator("#summary")).to_contain_text("20 new photos: about 1 is very likely of your 1 category")
    page.keyboard.press("n")
    page.keyboard.type("hare")
    page.keyboard.press("Enter")
    expect(page.locator("#summary")).to_contain_text("20 new photos: 12 confirmed, about 1 is very likely of your 2")
    page.get_by_role("button", name="Discover again").click()
    expect(live(page)).to_contain_text("8 photos that you have not confirmed were decided again", timeout=30_000)
    expect(page.locator("#job")).to_be_hidden()
    assert queries.category(catalog, HARE).n_confirmed == 12


def test_a_discovery_can_be_cancelled(link, open_page, catalog, monkeypatch):
    import igcd.workspace.discover as module

    reached = threading.Event()

    def endless(*_arguments, progress, **_options):
        for step in range(1_000):
            reached.set()
            progress(step + 1, 1_000)
            threading.Event().wait(0.02)

    monkeypatch.setattr(module, "embed_missing", endless)
    page = open_page(link)
    before = queries.revision(catalog)
    page.keyboard.press("w")
    page.get_by_role("dialog").get_by_role("button", name="Discover again").click()
    assert reached.wait(20)
    expect(page.locator(".job-text")).to_contain_text("of 1,000")
    page.get_by_role("button", name="Cancel").click()
    expect(live(page)).to_contain_text("Cancelled; nothing was decided")
    expect(page.locator("#job")).to_be_hidden()
    assert queries.revision(catalog) == before


def test_photos_are_added_by_a_path_that_completes_itself(link, open_page, catalog, tmp_path):
    paint_categories(tmp_path / "july photos", {"x": (3, range(3))})
    page = open_page(link)
    page.keyboard.press("w")
    page.get_by_role("button", name="Add photos", exact=True).click()
    field = page.get_by_label("Folder of photos")
    field.fill(f"{tmp_path}/jul")
    expect(page.get_by_role("dialog").get_by_role("option")).to_have_text(f"{tmp_path}/july photos/")
    field.press("Tab")
    expect(field).to_have_value(f"{tmp_path}/july photos/")
    expect(page.get_by_role("dialog").get_by_role("option")).to_contain_text("3 photos")
    field.press("Enter")
    expect(live(page)).to_have_text("3 new photos")
    expect(page.locator("#next-step")).to_have_text("Discover 3 photos")
    assert queries.status(catalog).stages[0].n_waiting == 3


def test_accept_and_export(link, open_page, catalog, tmp_path):
    page = open_page(link)
    page.keyboard.press("n")
    page.keyboard.type("hare")
    page.keyboard.press("Enter")
    expect(title(page)).to_have_text("new 3")
    page.keyboard.press("w")
    page.get_by_role("button", name="Accept stage 0").click()
    expect(live(page)).to_contain_text("Stage 0 accepted: 1 new known category, 12 photos labeled.")
    expect(page.locator("#summary")).to_contain_text("Stage 0 is accepted: 15 photos labeled")
    expect(page.locator("#next-step")).to_have_text("Add photos")
    page.keyboard.press("w")
    page.get_by_role("button", name="Export", exact=True).click()
    page.get_by_label("Photos", exact=True).select_option("confirmed")
    expect(page.get_by_label("Where to")).to_have_value(f"{tmp_path}/ws-export.csv")
    page.get_by_role("dialog").get_by_role("button", name="Export").click()
    expect(live(page)).to_contain_text("15 photos written to")
    assert len((tmp_path / "ws-export.csv").read_text().splitlines()) == 16
    assert queries.status(catalog).stages[0].state == "accepted"


def test_read_only_says_so_and_offers_no_work(catalog, serve, open_page):
    page = open_page(serve(read_only=True))
    expect(page.locator(".chip")).to_have_text("read only")
    assert page.locator("#steps, #next-step, #granularity").count() == 0
    page.keyboard.press("w")
    expect(page.get_by_role("dialog")).to_have_count(0)
    tile(page, 0).click()
    page.keyboard.press("f")  # looking around is fine
    expect(title(page)).to_have_text("More like this")
    assert page.get_by_role("button", name="Name").count() == 0
    assert queries.history(catalog) == []


def test_more_like_this_is_named_in_one_step(link, open_page, catalog, photos):
    page = open_page(f"{link}#/category/{FOX}")
    page.goto(page.url.split("#")[0] + f"#/category/{FOX}")
    expect(title(page)).to_have_text("new 3")
    tile(page, 0).click()
    page.keyboard.press("f")
    expect(title(page)).to_have_text("More like this")
    expect(page.locator(".heading-text p")).to_contain_text(" · 1 more like another category, not selected")
    expect(page.locator(".selection-count")).to_have_text("12 selected")
    slider = page.get_by_label("How many")
    slider.fill("6")
    expect(page.locator(".selection-count")).to_have_text("6 selected")
    for index in range(4, 7):  # the first are foxes; what does not belong is left out
        leave_out(tile(page, index))
    page.keyboard.press("n")
    page.keyboard.type("fox")
    page.keyboard.press("Enter")
    expect(live(page)).to_have_text("Named new 3 “fox”")  # the four are all of that category
    assert queries.category(catalog, FOX).n_confirmed == 4
    page.goto(page.url.split("#")[0] + f"#/category/{HARE}")
    expect(title(page)).to_have_text("new 2")
    tile(page, 0).click()
    page.keyboard.press("f")
    slider.fill("18")
    for index in (13, 14):  # the last ones are none: two owls and the unsure ones are beyond the twelve
        leave_out(tile(page, index))
    page.keyboard.press("n")
    page.keyboard.type("hare")
    page.keyboard.press("Enter")
    expect(live(page)).to_contain_text("as hare")
    assert set(photos["hare"]) <= set(queries.photo_ids_of(catalog, 4))


def test_a_group_that_needs_a_look(link, open_page, catalog, photos):
    page = open_page(link)
    page.keyboard.press("l")
    expect(page.locator(".heading-text p")).to_contain_text("2 photos that look alike · group 1 of 2")
    expect(page.locator("#growth")).to_contain_text("of the new photos are expected to be right now")
    expect(page.locator(".near h2")).to_have_text("May be")
    expect(page.locator(".near-known")).to_have_count(3)
    tile(page, 0).click()
    expect(page.locator(".selection-count")).to_have_text("1 selected")
    page.keyboard.press("2")  # one photo: its own second alternative
    expect(live(page)).to_have_text("Moved 1 photo to new 2")
    expect(page.locator(".selection-count")).to_have_text("All 1")
    page.keyboard.press("n")
    page.keyboard.type("elk")
    page.keyboard.press("Enter")
    expect(live(page)).to_have_text("Split 1 photo as elk")
    expect(page.locator(".heading-text p")).to_contain_text("group 1 of 1")
    assert {queries.photos(catalog, [photo])[0].category for photo in photos["unsure"]} == {HARE, 4}


def test_a_category_in_parts_before_it_is_split(link, open_page, catalog, photos):
    decisions.merge(catalog, FOX, HARE, author="bo")
    page = open_page(link)
    page.keyboard.press("p")
    expect(title(page)).to_have_text("new 2 in parts")
    expect(page.locator(".heading-text p")).to_have_text("part 1: 12 photos · part 2: 4 photos")
    page.keyboard.press("2")
    expect(page.locator(".selection-count")).to_have_text("4 selected")
    page.keyboard.press("s")
    expect(live(page)).to_have_text("Split 4 photos off new 2 as new 4")
    assert set(queries.photo_ids_of(catalog, 4)) == set(photos["fox"])


def test_suspected_mistakes_are_kept_or_corrected_with_one_key(link, open_page, catalog, photos):
    decisions.name(catalog, HARE, "hare", author="bo")
    with catalog.transaction() as db:
        rows = [(photos["owl"][i], OWL, 0.1 * i, HARE, 0.9 - 0.1 * i) for i in range(2)]
        db.executemany("INSERT INTO doubts VALUES (?, ?, ?, ?, ?)", rows)
    page = open_page(link)
    page.keyboard.press("x")
    expect(title(page)).to_have_text("Suspected mistakes")
    expect(page.locator(".heading-text p")).to_have_text("2 labels · about 2 expected to be wrong")
    assert tile(page, 0).locator(".badge").all_inner_texts() == ["owl", "hare?"]
    expect(page.locator(".near h2")).to_have_text("More likely")
    page.keyboard.press("1")
    expect(live(page)).to_have_text("Moved 1 photo to hare")
    page.keyboard.press("c")
    expect(live(page)).to_have_text("Confirmed 1 photo of owl")
    expect(page.locator(".empty h2")).to_have_text("No label is suspected")
    page.keyboard.press("z")
    expect(page.locator(".grid .tile")).to_have_count(1)
    assert queries.photos(catalog, [photos["owl"][0]])[0].category == HARE


def test_search_sort_and_filter(link, open_page, catalog):
    decisions.name(catalog, HARE, "Lepus/mountain_hare", author="bo")
    page = open_page(link)
    page.keyboard.press("/")
    expect(page.get_by_label("Name or file")).to_be_focused()
    page.keyboard.type("fox")
    expect(page.locator(".heading-text p")).to_have_text("4 photos")
    page.get_by_label("Name or file").fill("")
    page.get_by_label("Which").select_option("unsure")
    expect(page.locator(".heading-text p")).to_have_text("2 photos")
    page.get_by_role("button", name="Keep this filter").click()
    page.get_by_label("Which").select_option("")
    expect(page.locator(".heading-text p")).to_have_text("23 photos")
    page.get_by_role("button", name="unsure", exact=True).click()
    expect(page.locator(".heading-text p")).to_have_text("2 photos")
    page.get_by_label("Name or file").fill("mountain")
    page.get_by_role("button", name=re.compile("mountain_hare")).click()
    expect(title(page)).to_have_text("Lepus/mountain_hare")


def test_a_search_that_was_being_typed_does_not_take_over_what_is_opened(link, open_page):
    page = open_page(link)
    page.keyboard.press("/")
    expect(page.locator(".heading-text p")).to_have_text("23 photos")
    held, waits = [], [True]
    page.route("**/api/categories/*", lambda route: held.append(route) if waits else route.continue_())
    page.get_by_label("Name or file").fill("owl")
    page.get_by_role("button", name="owl", exact=True).click()
    page.wait_for_timeout(500)  # longer than a search waits for the next letter
    waits.clear()
    for route in held:  # on a busy machine there may be several
        route.continue_()
    expect(title(page)).to_have_text("owl")


def test_search_by_place(link, open_page, catalog, photos):
    places = {photos["hare"][0]: (48.1, 11.6), photos["hare"][1]: (48.3, 11.7), photos["fox"][0]: (-33.9, 18.4)}
    with catalog.transaction() as db:
        db.executemany("INSERT INTO shots VALUES (?, NULL, ?, ?)", [(photo, *place) for photo, place in places.items()])
    page = open_page(link)
    page.keyboard.press("/")
    found = page.locator(".heading-text p")
    page.get_by_label("Place").select_option("known")
    expect(found).to_have_text("3 photos")
    page.get_by_label("Place").select_option("")
    offered = page.locator("#spots option")
    expect(offered).to_have_count(2)
    assert offered.first.get_attribute("value") == "48.20, 11.65"
    page.get_by_label("Taken near").fill("48.1, ")  # not a place yet
    page.get_by_label("Taken near").fill("48.1, 11.6")
    expect(found).to_have_text("2 photos")
    page.get_by_label("Within").select_option("10")
    expect(found).to_have_text("1 photo")
    page.get_by_role("button", name="Keep this filter").click()
    page.get_by_role("button", name="Clear all").click()
    expect(found).to_have_text("23 photos")
    expect(page.get_by_label("Taken near")).to_have_value("")
    page.get_by_role("button", name="near 48.1, 11.6, 10 km", exact=True).click()
    expect(found).to_have_text("1 photo")
    expect(page.get_by_label("Taken near")).to_have_value("48.1, 11.6")


def test_two_people_who_decided_what_and_where_they_disagree(link, open_page, catalog, photos):
    decisions.name(catalog, HARE, "hare", author="ada")
    decisions.move(catalog, photos["hare"][:2], OWL, author="bo")
    page = open_page(link)
    page.keyboard.press("h")
    entries = page.locator(".history li")
    expect(entries).to_have_count(2)
    page.get_by_label("Decided by").select_option("bo")
    expect(entries).to_have_count(1)
    expect(entries).to_contain_text("moved 2 photos to owl")
    page.keyboard.press("Escape")
    page.keyboard.press("x")
    page.locator(".list").get_by_role("button", name=re.compile("Disagreements")).click()
    expect(page.locator(".grid .tile")).to_have_count(2)
    assert tile(page, 0).locator(".badge").all_inner_texts() == ["ada: hare", "bo: owl"]
    expect(page.locator(".near h2")).to_have_text("The other opinion")
    page.keyboard.press("1")  # as ada said
    expect(live(page)).to_have_text("Moved 1 photo to hare")


def test_the_tree_of_categories(link, open_page, catalog):
    decisions.name(catalog, HARE, "Lepus/hare", author="bo")
    decisions.name(catalog, FOX, "fox", author="bo")
    page = open_page(link)
    page.keyboard.press("b")
    page.get_by_role("button", name="Tree").click()
    expect(page.locator(".tree .entry")).to_have_count(3)
    page.locator(".tree .entry", has_text="fox").click()
    expect(title(page)).to_have_text("fox")


@pytest.mark.parametrize("renderer", ["SwiftShader", "a graphics card"])
def test_the_legend_of_the_map_filters(link, open_page, renderer):
    page = open_page(link)
    # With a graphics card the page draws by WebGL, without one pixel by pixel.
    page.evaluate("name => { WebGLRenderingContext.prototype.getParameter = () => name; }", renderer)
    page.keyboard.press("g")
    canvas = page.locator("canvas.map-overlay")
    expect(page.locator(".map-legend .check")).to_have_count(3)
    canvas.press("Enter")  # all in view that nobody has confirmed
    expect(page.locator(".selection-count")).to_have_text("20 selected")
    page.locator(".map-legend").get_by_text("new 3").click()
    canvas.press("Enter")
    expect(page.locator(".selection-count")).to_have_text("16 selected")
    page.locator(".map-kinds").get_by_text("unsure").click()
    canvas.press("Enter")
    expect(page.locator(".selection-count")).to_have_text("14 selected")
    n_painted = page.evaluate(PAINTED)
    assert n_painted > 100
    page.locator(".map-kinds").get_by_text("guessed").click()
    assert page.evaluate(PAINTED) < n_painted / 2
    draws_flat = page.evaluate("document.querySelector('canvas.map-points').getContext('2d') !== null")
    assert draws_flat == (renderer == "SwiftShader")


PAINTED = """() => {
  const canvas = document.querySelector("canvas.map-points");
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  return new Promise((resolve) => {
    const overlay = document.querySelector("canvas.map-overlay");
    overlay.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true })); // is drawn in the next frame
    requestAnimationFrame(() => {
      const pen = copy.getContext("2d");
      pen.drawImage(canvas, 0, 0);
      const { data } = pen.getImageData(0, 0, copy.width, copy.height);
      let n = 0;
      for (let at = 3; at < data.length; at += 4) n += data[at] > 0;
      resolve(n);
    });
  });
}"""


def test_on_a_phone_photos_come_first_and_actions_are_at_the_bottom(link, open_page):
    page = open_page(link, has_touch=True, is_mobile=True)
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".tile").first).to_be_visible()
    name = page.get_by_role("button", name="Name").bounding_box()
    first = page.locator(".tile").first.bounding_box()
    assert first["y"] < 300 and name["y"] > 760
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".tile").first.tap()
    expect(page.locator(".selection-count")).to_be_visible()
    assert page.locator(".selection").bounding_box()["y"] > 700


def test_the_photo_on_the_whole_screen_says_whether_it_is_selected(link, open_page):
    page = open_page(link)
    tile(page, 0).dblclick()
    dialog = page.get_by_role("dialog")
    page.keyboard.press("ArrowRight")
    expect(dialog.get_by_role("button", name="Select", exact=True)).to_be_visible()
    page.keyboard.press("Space")
    expect(dialog.get_by_role("button", name="Selected")).to_have_attribute("aria-pressed", "true")


def test_the_address_of_a_list_opens_the_first_of_it(link, open_page):
    page = open_page(link)
    for address, first in {"known": "owl", "new": "new 2", "checks": "Suspected mistakes"}.items():
        page.goto(page.url.split("#")[0] + f"#/{address}")
        expect(title(page)).to_have_text(first)


def test_a_slow_answer_shows_that_it_is_awaited(link, open_page):
    page = open_page(link)
    held = []
    page.route("**/api/similar", lambda route: held.append(route))
    tile(page, 0).click()
    page.keyboard.press("f")
    expect(page.locator("body")).to_have_class("waiting")
    held[0].continue_()
    expect(title(page)).to_have_text("More like this")
    expect(page.locator("body")).not_to_have_class("waiting")


def test_a_note_covers_no_action(link, open_page):
    page = open_page(link)
    page.keyboard.press("a")
    expect(title(page)).to_have_text("new 3")
    tile(page, 0).click()
    expect(page.locator(".selection")).to_be_visible()
    note, bar = (page.locator(one).bounding_box() for one in (".toast", ".selection"))
    assert note["y"] + note["height"] <= bar["y"]


def test_long_names_of_the_legend_have_room(link, open_page, catalog):
    for category in (FOX, HARE):
        decisions.name(catalog, category, f"A very long name of an animal {category}", author="bo")
    page = open_page(link)
    page.keyboard.press("g")
    expect(page.locator(".map-legend .check")).to_have_count(3)
    boxes = [name.bounding_box() for name in page.locator(".map-legend .check span:last-child").all()]
    assert max(box["height"] for box in boxes) > 30  # two lines
    assert all(box["y"] + box["height"] <= below["y"] for box, below in pairwise(boxes))
