"""benchmarks/budget.py and benchmarks/rivals.py on rehearsals of a few digits with a small random network."""

import json
import sys

import budget
import numpy as np
import pytest
import rivals
import torch

pytestmark = pytest.mark.usefixtures("quick_learning")
RECIPE = """
stream:
  source: digits
  by_category:
    {protocol: mi, categories_per_stage: [8, 2], images_labeled: 20, images_new: 20, images_old: 4}
encoder: {backbone: resnet10t, weights: random, size: 32, tail: adapter, n_views: 2, cache: null}
training:
  first_stage: {epochs: 1, batch_size: 32}
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(RECIPE)
    return str(path)


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["budget.py", *map(str, arguments)])
    budget.main()
    return capsys.readouterr().out


def test_a_search_that_was_stopped_goes_on(monkeypatch, capsys, tmp_path, recipe):
    out = tmp_path / "runs" / "budget.jsonl"
    run(monkeypatch, capsys, recipe, "--sizes", 32, "--epochs", 1, "--out", out)
    before = out.read_text()
    table = run(monkeypatch, capsys, recipe, "--sizes", 32, "--epochs", 1, 2, "--out", out)
    assert out.read_text().startswith(before)  # what is there is not run again
    first, second = (json.loads(line) for line in out.read_text().splitlines())
    assert (first["epochs"], second["epochs"]) == (1, 2)
    assert first["frozen"] == second["frozen"] and first["steps"] * 2 == second["steps"]
    assert all(line["gain"] == line["bound"] - line["frozen"] for line in (first, second))
    assert table.count("\n") == 4 and f"| {first['gain']:.1f} |" in table
    assert run(monkeypatch, capsys, "--show", "--out", out) == table


def test_runs_with_other_overrides_are_other_rows(monkeypatch, capsys, tmp_path, recipe):
    out = tmp_path / "budget.jsonl"
    for override in ("encoder.middle=false", "encoder.middle=true"):
        table = run(monkeypatch, capsys, recipe, override, "--sizes", 32, "--epochs", 1, "--out", out)
    _, _, once, twice, _ = table.split("\n")
    assert "| encoder.middle=false |" in once and "| encoder.middle=true |" in twice


def test_epochs_of_a_setting_that_was_stopped_are_not_run_again(monkeypatch, tmp_path, recipe):
    setting = budget.Setting(recipe, (), size=32, images=20, epochs=3, learning_rate=0.1, seed=0)
    whole = budget.measure(setting, tmp_path / "whole")
    save, saved = budget.EpochCheckpoint.save, []

    def stop_after_two(checkpoint, n_epochs_done, state):
        save(checkpoint, n_epochs_done, state)
        saved.append(n_epochs_done)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(budget.EpochCheckpoint, "save", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        budget.measure(setting, tmp_path / "stopped")
    again = budget.measure(setting, tmp_path / "stopped")
    assert saved == [1, 2, 3] and again["bound"] == whole["bound"]
    assert not list((tmp_path / "stopped").iterdir())


def test_the_bound_has_all_labels_and_is_scored_on_images_it_has_not_seen(recipe):
    setting = budget.Setting(recipe, (), size=32, images=20, epochs=1, learning_rate=0.1, seed=0)
    stage, truth = budget.last_stage(setting, setting.read())
    assert set(truth.test.categories) == set(stage.category_names) and len(stage.category_names) == 8
    assert not set(stage.labeled.ids) & set(truth.test_images.ids)
    assert len(stage.labels) == len(stage.labeled)


def test_folders_of_data_are_no_part_of_a_setting():
    one, other = (
        budget.Setting("cub-cpu", (f"stream.data={folder}", "devices=1"), 112, 20, 6, 0.1, 0) for folder in "ab"
    )
    assert one.key == other.key


def test_perfect_centers_score_100_and_cover_all():
    """Law: with every category at a corner of its own, centers there get everything right."""
    corners = torch.eye(6)
    categories = np.arange(6).repeat(3)
    rows = corners[categories]
    scene = rivals.Scene(
        rows[:9], torch.arange(3).repeat_interleave(3), rows, categories, rows, categories, corners[:3], 3, 0
    )
    found = rivals.scores(scene, corners)
    assert (found["All"], found["New"], found["covered"]) == (100, 100, 3)
    assert rivals.scores(scene, corners[[0, 1, 2, 3, 3, 3]])["covered"] == 1
    pairs = rivals.ranks(scene)["pairs by known, 1"]
    assert pairs["percent found"] == 100
    assert {name: figures["New"] for name, figures in rivals.starts(scene).items()}["prototypes, split"] == 100


@pytest.mark.parametrize("tuned", [False, True])
def test_a_scene_is_the_second_stage_of_a_rehearsal(recipe, tuned):
    scene = rivals.scene_of(recipe, [], 0, tuned=tuned)
    assert scene.n_novel == 1 and len(scene.known) == 7
    assert set(scene.labels.tolist()) == set(range(7)) and set(scene.categories.tolist()) == set(range(8))
    torch.testing.assert_close(scene.known.norm(dim=1), torch.ones(7))
