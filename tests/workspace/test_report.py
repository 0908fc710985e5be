"""The report of a workspace: what it says, what it shows, and that it can be explored in a browser."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("torch", reason="features come with the extra `learn`")

from workspace.sample_catalog import sample_workspace

from igcd.cli.report import report as write_page
from igcd.errors import IgcdError
from igcd.workspace import decisions
from igcd.workspace.catalog import open_catalog
from igcd.workspace.corrections import verdicts
from igcd.workspace.exploration import explore_workspace
from igcd.workspace.feature_store import write_features
from igcd.workspace.init import init_workspace
from igcd.workspace.outlook import outlook
from igcd.workspace.queries import categories
from igcd.workspace.report import headline, write_workspace_report
from igcd.workspace.undo import undo

OWL, HARE, FOX = 1, 2, 3


@pytest.fixture
def photos(tmp_path):
    made = sample_workspace(tmp_path, known={"owl": 3}, novel={"hare": 12, "fox": 4}, n_unsure=2)
    with open_catalog(tmp_path / "ws") as catalog, catalog.transaction() as db:
        hashes = [row["content_hash"] for row in db.execute("SELECT content_hash FROM photos ORDER BY id")]
        features = np.random.default_rng(0).normal(size=(len(hashes), 8)).astype(np.float32)
        write_features(db, "some-encoder", hashes, features / np.linalg.norm(features, axis=1, keepdims=True))
        db.execute("UPDATE stages SET encoder = 'some-encoder'")
    return made


@pytest.fixture
def catalog(photos, tmp_path):  # noqa: ARG001 - they are in it
    with open_catalog(tmp_path / "ws") as opened:
        yield opened


def test_every_photo_is_what_the_catalog_holds_it_to_be(catalog, photos):
    explored = explore_workspace(catalog)
    table = explored.exploration
    assert len(table.images.id) == table.n_all == 3 + 2 + 12 + 4 + 2
    (answers,) = table.answers
    said = dict(zip(answers.images, answers.groups, strict=True))
    for name, ids in photos.items():
        for photo in ids:
            group = said[explored.positions[photo]]
            assert (
                (group == -1)
                if name == "unsure"
                else (explored.categories[group].id == {"owl": 1, "hare": 2, "fox": 3}[name])
            )
    splits = [table.splits[split] for split in table.images.split]
    assert (splits.count("labeled"), splits.count("confirmed"), splits.count("guessed")) == (3, 0, 20)
    assert [(group.name, group.found, group.labeled) for group in table.groups] == [
        ("owl", None, 0),
        ("new 2", 0, None),
        ("new 3", 0, None),
    ]
    assert [(entry.name, entry.kind) for entry in table.entries] == [
        ("owl", "known"),
        ("new 2", "new"),
        ("new 3", "new"),
        ("Unsure", "unsure"),
    ]
    assert dict(table.entries[1].facts)["Most like"] == "owl"


def test_a_large_workspace_shows_a_sample_with_the_most_typical(catalog, photos):
    explored = explore_workspace(catalog, n_pictures=24)
    assert len(explored.positions) == 23  # all
    explored = explore_workspace(catalog, n_pictures=20)
    assert len(explored.positions) == 20 and explored.exploration.n_all == 23
    assert explored.positions.keys() >= set(photos["hare"][:8]) | set(photos["fox"])
    assert explored.typical[HARE][:3] == tuple(explored.positions[photo] for photo in photos["hare"][:3])


def test_what_a_person_said_beside_what_discovery_said(catalog, photos):
    assert verdicts(catalog) == []
    decisions.name(catalog, HARE, "mountain hare", author="ada")
    decisions.merge(catalog, FOX, OWL, author="ada")
    decisions.move(catalog, photos["unsure"][:1], HARE, author="ada")
    found = {(verdict.said, verdict.decided): verdict for verdict in verdicts(catalog)}
    assert {key: len(verdict.photos) for key, verdict in found.items()} == {
        (HARE, HARE): 12,
        (FOX, OWL): 4,
        (None, HARE): 1,
    }
    assert found[HARE, HARE].is_right and not found[FOX, OWL].is_right
    undo(catalog, author="ada")
    assert (None, HARE) not in {(verdict.said, verdict.decided) for verdict in verdicts(catalog)}


def test_the_sentence(catalog):
    live = tuple(category for category in categories(catalog) if category.n_photos)
    assert headline(catalog, live) == f"3 photos of 1 category are labeled or confirmed. {outlook(catalog).sentence()}"
    assert "2 new categories with 16 photos, 3 need a look." in headline(catalog, live)
    decisions.name(catalog, HARE, "mountain hare", author="ada")
    live = tuple(category for category in categories(catalog) if category.n_photos)
    assert headline(catalog, live).startswith("15 photos of 2 categories are labeled or confirmed. 20 new photos: 12 ")


def test_the_command_writes_the_page_of_a_workspace(catalog, tmp_path, capsys):
    decisions.merge(catalog, FOX, OWL, author="ada")
    write_page(tmp_path / "ws")
    page = tmp_path / "ws" / "report.html"
    assert capsys.readouterr().out == f"report in {page}\n"
    text = page.read_text(encoding="utf-8")
    assert "Of 4 photos that you decided about, 0 were where discovery had put them." in text
    data = json.loads(text.partition('id="exploration">')[2].partition("</script>")[0])
    assert data["what"] == "photo" and len(data["images"]["id"]) == 23
    assert text.count("data:image/webp") == 1


def test_photos_that_are_gone_are_left_out(catalog, tmp_path, photos):
    for path in (tmp_path / "photos" / "unlabeled").glob("fox-*"):
        path.unlink()
    explored = explore_workspace(catalog)
    assert not set(photos["fox"]) & explored.positions.keys() and len(explored.positions) == 19
    assert "no picture" in write_workspace_report(tmp_path / "ws").read_text(encoding="utf-8")


def test_without_a_discovery_there_is_nothing_to_report(tmp_path, photos):  # noqa: ARG001 - the pictures
    init_workspace(tmp_path / "other", tmp_path / "photos", from_folders=True)
    with pytest.raises(IgcdError, match=r"has none yet; run `igcd discover .*` first"):
        write_workspace_report(tmp_path / "other")


def test_in_a_browser(catalog, tmp_path, browser):
    playwright = pytest.importorskip("playwright.sync_api")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core comes with the extra `dev`")
    decisions.merge(catalog, FOX, OWL, author="ada")
    path = write_workspace_report(tmp_path / "ws")
    complaints = []
    for look in ({}, {"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 740}}):
        context = browser.new_context(**look)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        assert page.locator("#shown").inner_text() == "23 photos in 2 categories, 1 of them new."
        assert axe.Axe().run(page).response["violations"] == []
        page.get_by_role("button", name="new 3, which is owl: 4 photos. Show them").click()
        assert page.locator("dialog .picture").count() == 4
        page.keyboard.press("Escape")
        page.locator("#found a", has_text="new 2").click()
        assert page.locator("#category h2").all_inner_texts() == ["Guessed: 12 pictures"]
        page.get_by_role("button", name="Show it on the map", exact=True).click()
        playwright.expect(page.locator("#shown")).to_have_text(re.compile("^12 photos in 1 category"))
        context.close()
    assert complaints == []
