import json
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from fake_results import fake_results

from igcd.report.comparison import ComparisonPage, RunLink, comparison_json, headline, render, write_comparison
from igcd.report.comparison_table import RowRecords, comparison_table, parse_results

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Nesting(HTMLParser):
    """Fails on a tag that closes another than the last open one."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, _attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, _tag, _attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def make_page(methods, *, n_seeds=3, **values):
    rows, runs = [], {}
    for at, method in enumerate(methods):
        results = {
            seed: parse_results(
                fake_results(method, seed, m_d=40.0 + at + seed + at * seed % 2, m_f=9.0 - at + seed, **values), "here"
            )
            for seed in range(n_seeds)
        }
        rows.append(RowRecords(method, results, n_seeds, "mi.cifar100", method, method))
        runs |= {(method, seed): RunLink(True, 40.0, f"cells/{method}-{seed}/report.html") for seed in range(n_seeds)}
    return ComparisonPage("small & fine", "igcd compare <small>", comparison_table(rows), tuple(range(n_seeds)), runs)


def test_the_page_is_whole_and_needs_nothing_else():
    text = render(make_page(["supervised", "gm", "snn_density"]))
    parser = Nesting()
    parser.feed(text)
    assert parser.open == []
    assert text.replace("http://www.w3.org/2000/svg", "").count("http") == 1  # the policy's http-equiv
    assert "small &amp; fine" in text and "igcd compare &lt;small&gt;" in text
    assert "prefers-color-scheme: dark" in text
    assert "trained with ImageNet labels" in text and "paper, table 3" in text
    assert 'href="cells/gm-0/report.html"' in text
    assert text.count('class="scatter"') == 1 and "t 1.73" not in text


def test_a_failed_run_is_reported():
    page = make_page(["gm", "snn_density"])
    page.runs["orca", 0] = RunLink(False, failure="it <broke>")
    text = render(page)
    assert "<b>orca, seed 0</b>: it &lt;broke&gt;" in text and "6 of 7 runs" in text


def test_one_row_one_seed_and_a_static_stream():
    static = [{"All": 50.0, "Old": 60.0, "New": 30.0}]
    page = make_page(["gm"], n_seeds=1, scores=static)
    parser = Nesting()
    parser.feed(render(page))
    assert headline(page.table) == "Scores of one row, over its seeds."
    alone = make_page(["gm"], n_seeds=1, scores=[{"All": 50.0, "Old": 50.0}])
    assert "against New" not in render(alone).split("<main>")[1]


def test_the_headline_names_who_leads():
    page = make_page(["supervised", "gm", "snn_density"])
    discovery, forgetting = headline(page.table).split(". ")
    assert discovery == "snn_density (43.0) recognizes most in the end, followed by gm (42.3)"
    assert forgetting == "snn_density (8.0) forgets least, followed by gm (9.0)."


def test_the_files_and_the_json(tmp_path):
    page = make_page(["gm", "snn_density"])
    assert write_comparison(page, tmp_path) == tmp_path / "index.html"
    assert {path.name for path in tmp_path.iterdir()} == {
        "table.md",
        "table.csv",
        "table.tex",
        "old_new.svg",
        "index.html",
    }
    figure = ElementTree.fromstring((tmp_path / "old_new.svg").read_text(encoding="utf-8"))
    titles = [title.text for title in figure.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(page.table.rows) and all("Old" in title and "New" in title for title in titles)
    record = json.loads(json.dumps(comparison_json(page), allow_nan=False))
    assert record["rows"][1]["scores"]["M_d"] == {
        "mean": pytest.approx(127 / 3),
        "deviation": pytest.approx(1.1547, abs=0.0001),
        "n": 3,
        "rank": 1,
        "paper": 31.2,
    }
    (pair,) = [pair for pair in record["pairs"] if pair["score"] == "M_d"]
    assert (pair["first"], pair["second"], pair["seeds"]) == ("gm", "snn_density", 3)
