import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from small_run import ROWS, TAXA, discovery

from igcd.report.confusion import cross
from igcd.report.discoveries import galleries
from igcd.report.page import confused_pairs, headline, render, write_report
from igcd.report.run_records import read_run

VOID = {"meta", "img", "br", "line", "circle", "rect", "path", "image"}


class Page(HTMLParser):
    """A page taken apart: its elements, its text, and whether every element is closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        return " ".join("".join(self.words).split())


def page_of(folder):
    return Page(write_report(folder).read_text(encoding="utf-8"))


@pytest.fixture
def full(make_run):
    return make_run(
        stream="cifar100-mi",
        spec={
            "images_labeled": 50,
            "stages": [
                {"years": [2008, 2016], "continents": ["Europe"]},
                {"years": [2017, 2017], "continents": ["Oceania"]},
            ],
        },
        places=[(0, 48.5, 2.5, 5), (1, -33.5, 151.5, 7)],
        taxa=TAXA,
    )


def test_the_page_needs_nothing_else(full):
    page = page_of(full)
    for tag, attributes in page.elements:
        for name in ("src", "href"):
            if name in attributes:
                assert attributes[name].startswith(("data:image/", "#")), (tag, attributes[name][:60])
        assert not any(name.startswith("on") for name in attributes)
    for tag in ("link", "iframe", "object"):
        assert page.all(tag) == []
    text = (full / "report.html").read_text()
    assert text.count("url(") == text.count("url(data:image/webp;base64,") and "@import" not in text


def test_no_script_can_run_but_ours(full):
    text = write_report(full).read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = Page(text).all("meta")[2]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"] == (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )


def test_the_page_is_accessible(full):
    page = page_of(full)
    assert page.all("html")[0]["lang"] == "en"
    assert all("alt" in image for image in page.all("img")) and page.all("img")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"] for link in page.all("a")} <= {f"#{name}" for name in ids}
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for attributes in page.all("svg"):
        assert "aria-label" in attributes or attributes.get("aria-hidden") == "true"


def test_what_the_page_says(full):
    text = page_of(full).text
    assert "1 of the 2 new categories was found, in 1 cluster; in the end 70.0" in text
    assert "Paper, table 3 ResNet-18, MoCo" in text.replace("3ResNet", "3 ResNet")
    assert "Before comparing: our encoder is tf_efficientnet_lite0 at 96 px; our stream is a small one" in text
    assert "was trained with the labels of ImageNet" in text
    assert "Missed: moth." in text
    assert "Stage 1 · Oceania · 2017" in text and "1 old and 2 new categories" in text
    assert "3 images could not be used and were set aside: truncated 2, file is empty 1." in text
    assert "At most 1.2 GB of memory. Versions: igcd 0.1.0, python 3.11.7." in text
    assert "cp run/config.json again.yaml" in text


def test_a_taxonomy_adds_scores_by_level_and_how_new_a_discovery_is(full):
    text = page_of(full).text
    assert "By species, genus and family" in text
    assert "Same genus3 genera80.0 75.0 100.0 60.0" in re.sub(r"(\.\d)", r"\1 ", text)
    assert text.count("new species of a known genus") == 1
    (full / "taxonomy.csv").unlink()
    text = page_of(full).text
    assert not any(word in text for word in ("genus", "genera", "families", "species"))


def test_only_the_paper_s_streams_have_its_row(make_run):
    text = page_of(make_run(stream="fieldguide-igcd-l")).text
    assert "Paper, table" not in text and "Before comparing" not in text


def test_another_encoder_has_no_note_on_imagenet_labels(make_run):
    folder = make_run(changes={"config": {"encoder": {"weights": "random"}, "method": {}}})
    assert "labels of ImageNet" not in page_of(folder).text


def test_names_may_be_any_text(make_run):
    evil = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"
    rows = [(stage, split, evil if category == "newt" else category, *rest) for stage, split, category, *rest in ROWS]
    rows = [
        (stage, split, evil + "2" if category == "owl" else category, *rest) for stage, split, category, *rest in rows
    ]
    folder = make_run(
        rows,
        stream=evil,
        names=(evil + "2", "fox"),
        discoveries={1: [discovery(7, category=evil)]},
        changes={"config": {"note": "</code></pre><script>", "encoder": {}, "method": {}}, "set_aside": {evil: 1}},
    )
    page = page_of(folder)
    assert page.all("script") == [{}]  # ours
    assert all(image["src"].startswith("data:") for image in page.all("img"))
    assert page.text.count(evil) >= 4


def test_a_missing_picture_is_a_blank_with_its_name(make_run):
    folder = make_run()
    (folder / "gallery" / "found-7-0.jpg").unlink()
    page = page_of(folder)
    blanks = [attributes for tag, attributes in page.elements if attributes.get("class") == "blank"]
    named = [blank["aria-label"] for blank in blanks if "aria-label" in blank]
    assert set(named) == {"most typical of category 7 (picture missing)"}
    assert all(blank.get("aria-hidden") == "true" for blank in blanks if "aria-label" not in blank)


def test_the_same_records_give_the_same_bytes(full):
    first = write_report(full).read_bytes()
    assert write_report(full).read_bytes() == first
    assert [path.name for path in full.iterdir() if path.name.startswith(".")] == []


def test_one_stage_without_labels_to_come(make_run):
    """A static stream: everything in stage 0, nothing to draw curves of."""
    rows = [(0, split, category, cluster, group) for stage, split, category, cluster, group in ROWS if stage == 1]
    rows = [
        (stage, split, category, cluster, "Old" if group == "S-0" else group)
        for stage, split, category, cluster, group in rows
    ]
    page = page_of(make_run(rows, discoveries={0: [discovery(7)]}))
    assert "Discovery and forgetting" not in page.text
    assert "Stage 0: 1 opened, 2 true" in page.text


def test_nothing_found(make_run):
    page = page_of(make_run(discoveries={}))
    assert "Nothing was found at this stage. There were: moth, newt." in page.text


def test_the_headline_says_when_nothing_was_forgotten(make_run):
    folder = make_run(changes={"M_f": -1.5, "M_d": None})
    run = read_run(folder)
    assert headline(run, galleries(run)) == (
        "1 of the 2 new categories was found, in 1 cluster, and accuracy on the first categories never fell below its "
        "start."
    )


def test_many_discoveries_keep_the_page_small(make_run):
    images = [f"gallery/found-7-{number % 2}.jpg" for number in range(12)]
    many = [discovery(100 + number, images=images) for number in range(3_000)]
    page = render(read_run(make_run(discoveries={1: many})))
    assert "The 96 largest are shown" in page
    assert len(page) < 3_000_000


def test_the_config_shown_is_the_config_of_the_run(make_run):
    folder = make_run()
    shown = re.search(r"<details>.*?<code>(.*?)</code>", write_report(folder).read_text(), re.DOTALL)[1]
    assert json.loads(shown.replace("&#34;", '"')) == json.loads((folder / "config.json").read_text())


def test_confused_pairs_have_a_picture_of_each_side(make_run):
    rows = [*ROWS, *[(1, "test", "newt", "8", "New")] * 2, (1, "test", "moth", "8", "New")]
    found = [discovery(7), discovery(8, images=["gallery/found-7-1.jpg"])]
    run = read_run(make_run(rows, discoveries={1: found}))
    pair_of = {
        (row.pair.category, row.pair.cluster): row
        for row in confused_pairs(run, cross(run.predictions, stage=1, split="test"))
    }
    newt = pair_of["newt", "8"]  # in the cluster that is matched to moth
    assert (newt.is_known, newt.taken_for_is_known) == (False, False)
    assert newt.picture.uri and newt.taken_for_picture.uri
    moth = pair_of["moth", "1"]
    assert moth.picture is None  # it was never labeled and never found
    assert moth.taken_for_is_known and moth.taken_for_picture.uri
