import json
from pathlib import Path

import pytest
from fake_results import fake_results

from igcd.comparison.folder import Note, claim, log_path, read_note, write_note
from igcd.comparison.ledger import (
    comparison_command,
    portable,
    read_ledger,
    record_cells,
    run_command,
    without_local_paths,
)
from igcd.comparison.plan import method_variants, plan
from igcd.errors import IgcdError

COMMAND = "igcd compare small …"


@pytest.fixture
def comparison(recipe, tmp_path):
    """Two methods and two seeds, of which gm-1 is not complete."""
    variants = method_variants(["snn_density", "gm"], "mi.cifar100")
    made = plan(recipe, ["stream.data=/home/me/digits.npz"], variants, [0, 1], tmp_path / "out")
    for cell in made.cells:
        if cell.name != "gm-1":
            finish(cell)
    return made


def finish(cell, **values):
    cell.folder.mkdir(parents=True, exist_ok=True)
    results = fake_results(cell.variant.name, cell.seed, config=cell.config, **values) | {"variants": {"big": [1] * 99}}
    (cell.folder / "results.json").write_text(json.dumps(results))
    write_note(cell, Note(12.5, "abc1234"))


def test_a_line_for_each_complete_cell_without_paths_of_this_machine(comparison, tmp_path):
    path = tmp_path / "results" / "small.jsonl"
    assert record_cells(path, comparison, COMMAND) == 3
    records = read_ledger(path)
    assert [(record["variant"], record["seed"]) for record in records] == [
        ("snn_density", 0),
        ("snn_density", 1),
        ("gm", 0),
    ]
    first = records[0]
    assert "/home" not in path.read_text() and "variants" not in first
    assert str(tmp_path) not in path.read_text()
    assert first["config"]["stream"]["data"] == "digits.npz"
    assert (first["commit"], first["paper"], first["recipe"], first["command"]) == (
        "abc1234",
        "mi.cifar100",
        "small",
        COMMAND,
    )
    assert first["run"] == "igcd run small.yaml stream.data=digits.npz method.name=snn_density seed=0"


def test_a_cell_that_is_run_anew_replaces_its_line(comparison, tmp_path):
    path = tmp_path / "small.jsonl"
    record_cells(path, comparison, COMMAND)
    finish(comparison.cells[0], m_d=77.0)
    finish(comparison.cells[3])
    only_gm = plan(comparison.recipe, comparison.overrides, comparison.variants[1:], [1], tmp_path / "out")
    record_cells(path, only_gm, COMMAND)  # the lines of the others stay, and those of a variant stay together
    assert [record["variant"] for record in read_ledger(path)] == ["gm", "gm", "snn_density", "snn_density"]
    record_cells(path, comparison, COMMAND)
    assert [record["M_d"] for record in read_ledger(path)] == [77.0, 50.0, 50.0, 50.0]


def test_a_file_of_another_recipe_is_refused(comparison, tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"recipe": "cub-cpu", "variant": "gm", "seed": 0}\n')
    with pytest.raises(IgcdError, match="cells of the recipe cub-cpu, not of small"):
        record_cells(path, comparison, COMMAND)
    path.write_text("no JSON\n")
    with pytest.raises(IgcdError, match="a line of JSON each"):
        record_cells(path, comparison, COMMAND)


def test_nothing_of_this_machine_is_in_commands_and_configs():
    overrides = ["stream.data=../shared/cub.npz", "encoder.cache=/tmp/x", "encoder.weights=/a/moco.pth", "method.T=0.2"]
    assert portable(overrides) == ["stream.data=cub.npz", "encoder.weights=moco.pth", "method.T=0.2"]
    more = ["ablate", "--over", "method.K=5,6"]
    for out, name in ((Path("/home/me/K"), "K"), (Path(), "my")):
        assert comparison_command("/a/b/my.yaml", overrides[:1], more, out) == (
            f"igcd ablate my.yaml stream.data=cub.npz --over method.K=5,6 --out runs/{name}"
        )
    assert run_command("demo", ["seed=1"]) == "igcd run demo seed=1"
    config = {
        "stream": {"data": "/a/b.npz", "split": None, "options": {"wnids": "/a/list.txt", "n": 3}},
        "encoder": {"weights": "hub", "cache": "/a", "image_cache": None},
        "seed": 0,
    }
    cleaned = without_local_paths(config)
    assert cleaned["stream"] == {"data": "b.npz", "split": None, "options": {"wnids": "list.txt", "n": 3}}
    assert cleaned["encoder"] == {"weights": "hub", "cache": None, "image_cache": None} and cleaned["seed"] == 0
    assert config["stream"]["data"] == "/a/b.npz"


@pytest.mark.parametrize("line", ["[" * 5000, "nonsense", "[1]", "{}", '{"variant": "a", "seed": "x"}'])
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path, line):
    (tmp_path / "l.jsonl").write_text(line + "\n")
    with pytest.raises(IgcdError, match=r"l.jsonl.*repair it"):
        read_ledger(tmp_path / "l.jsonl")


@pytest.mark.parametrize("content", ["{}", "[]", '{"config": {}}', '{"config": {"stream": 5, "encoder": {}}}'])
def test_damaged_results_are_one_sentence(comparison, tmp_path, content):
    (comparison.cells[0].folder / "results.json").write_text(content)
    with pytest.raises(IgcdError, match="json does not hold what"):
        record_cells(tmp_path / "l.jsonl", comparison, COMMAND)


@pytest.mark.parametrize("content", ["5", '{"wall_seconds": []}', "{"])
def test_a_damaged_note_is_one_sentence(comparison, content):
    log_path(comparison.cells[0]).with_suffix(".json").write_text(content)
    with pytest.raises(IgcdError, match=r"snn_density-0\.json"):
        read_note(comparison.cells[0])


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"base": 5}'])
def test_a_damaged_record_of_the_comparison_is_one_sentence(comparison, tmp_path, content):
    (tmp_path / "out" / "comparison.json").write_text(content)
    with pytest.raises(IgcdError, match=r"comparison\.json"):
        claim(tmp_path / "out", comparison)


def test_only_a_line_feed_ends_a_record(tmp_path):
    (tmp_path / "l.jsonl").write_text('{"variant": "a\u2028b\x85c", "seed": 0}\n', encoding="utf-8")
    assert read_ledger(tmp_path / "l.jsonl") == [{"variant": "a\u2028b\x85c", "seed": 0}]
