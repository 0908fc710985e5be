"""The verbs on the command line, with a small random network."""

import json
import shutil
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner
from workspace.painted_photos import paint_categories
from workspace.sample_catalog import sample_workspace

from igcd.cli.workspace import add_workspace_commands, predict_with_workspace
from igcd.errors import IgcdError
from igcd.workspace import decisions, queries
from igcd.workspace.catalog import CATALOG_FILE, open_catalog
from igcd.workspace.features import change_encoder

TINY = ["--backbone", "resnet10t", "--weights", "random", "--size", "32"]


@pytest.fixture
def run():
    app = typer.Typer()
    add_workspace_commands(app)

    def call(*arguments, fails=False, input=None):  # noqa: A002 - as CliRunner calls it
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
        if fails:
            assert isinstance(result.exception, IgcdError), result.output
            return str(result.exception)
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.stdout

    return call


@pytest.fixture
def images(tmp_path):
    kinds = {"ash": (0, range(8)), "beech": (1, range(8)), "unlabeled": (7, range(10))}
    paint_categories(tmp_path / "photos", kinds)
    return tmp_path / "photos"


def test_photos_are_seen_at_224_pixels_or_fast(run, images, tmp_path):
    looks = (
        ([], 224, "gem", True),
        (["--fast"], 112, "mean", False),
        (["--size", "64"], 64, "mean", True),
        (["--size", "256", "--pool", "mean"], 256, "mean", True),
        (["--size", "240", "--no-middle"], 240, "gem", False),
    )
    for options, size, pool, middle in looks:
        run("init", tmp_path / str(size), "--images", images, *options)
        with open_catalog(tmp_path / str(size)) as catalog, catalog.snapshot() as db:
            assert queries.setting(db, "encoder") == {"size": size, "pool": pool, "middle": middle}
    run("init", tmp_path / "lite2", "--images", images, "--backbone", "tf_efficientnet_lite2")
    with open_catalog(tmp_path / "lite2") as catalog, catalog.snapshot() as db:
        assert queries.setting(db, "encoder") == {
            "size": 260,
            "pool": "gem",
            "middle": True,
            "backbone": "tf_efficientnet_lite2",
        }
    said = run("init", tmp_path / "both", "--images", images, "--fast", "--size", "64", fails=True)
    assert said == "--fast means --size 112, got --size 64 as well; give one of the two"
    said = run("init", tmp_path / "none", "--images", images, "--pool", "max", fails=True)
    assert said == "--pool must be one of mean, gem, got 'max'; choose one of them"


def test_another_size_is_pooled_like_a_new_workspace(run, images, tmp_path):
    run("init", tmp_path / "ws", "--images", images, "--fast")
    with open_catalog(tmp_path / "ws") as catalog:
        change_encoder(catalog, {"size": 224})
        with catalog.snapshot() as db:
            assert queries.setting(db, "encoder") == {"size": 224, "pool": "gem", "middle": True}
        change_encoder(catalog, {"pool": "mean", "middle": False})
        change_encoder(catalog, {"size": 224})  # as it was: nothing else changes
        with catalog.snapshot() as db:
            assert queries.setting(db, "encoder") == {"size": 224, "pool": "mean", "middle": False}


def test_the_whole_loop(run, images, tmp_path, capsys):
    workspace = tmp_path / "ws"
    said = run("init", workspace, "--images", images, "--labels-from-folders", *TINY)
    assert said.startswith("26 new photos, 16 of them labeled in 2 categories\n") and "igcd discover" in said
    report = json.loads(run("discover", workspace, "--json"))
    assert report["n_new"] == 10 and report["sentence"].startswith("10 new photos: ")
    status = json.loads(run("status", workspace, "--json"))
    assert status["n_photos"] == 26 and [c["title"] for c in status["categories"]][:2] == ["ash", "beech"]
    assert "stage 0 accepted: 0 new known categories, 0 photos labeled." in run("accept", workspace, "--author", "ann")
    assert "is accepted already" in run("accept", workspace, fails=True)
    assert "decision 1 (close) undone; redo with `igcd accept" in run("undo", workspace)
    assert "no decision to undo" in run("undo", workspace, fails=True)
    assert "0 new photos; 26 were there already" in run("add", workspace, images)
    assert "26 photos written" in run("export", workspace, "--out", tmp_path / "all.csv")
    assert "no export format" in run("export", workspace, "--format", "xml", "--out", tmp_path / "x", fails=True)
    text = run("status", workspace)
    assert "26 photos in 26 files, 16 labeled" in text and "decision 1 (undone): close by ann" in text
    predict_with_workspace(workspace, [images / "ash"], as_json=True)
    answers = json.loads(capsys.readouterr().out)
    assert len(answers) == 8 and answers[0]["image"] == str(images / "ash" / "00-000.jpg")
    predict_with_workspace(workspace, [images / "ash"], as_json=False)
    assert "probability" in capsys.readouterr().out


def test_another_size_later_loses_nothing(run, images, tmp_path):
    workspace = tmp_path / "ws"
    run("init", workspace, "--images", images, "--labels-from-folders", *TINY)
    run("discover", workspace)
    assert "add some first" in run("discover", workspace)
    report = json.loads(run("discover", workspace, "--size", "48", "--json"))
    assert (report["n_new"], report["n_anew"]) == (0, 10)
    with open_catalog(workspace) as catalog, catalog.snapshot() as db:
        assert queries.setting(db, "encoder")["size"] == 48
        assert len(db.execute("SELECT DISTINCT encoder FROM features").fetchall()) == 2
    assert json.loads(run("status", workspace, "--json"))["n_labels"] == 16
    assert json.loads(run("discover", workspace, "--granularity", "1", "--json"))["n_anew"] == 10


def test_status_tells_labeled_confirmed_and_guessed_apart(run, tmp_path):
    sample_workspace(tmp_path, known={"owl": 3}, novel={"hare": 4})
    with open_catalog(tmp_path / "ws") as catalog:
        decisions.move(catalog, queries.photo_ids_of(catalog, 2)[:2], 1, author="ann")
    status = json.loads(run("status", tmp_path / "ws", "--json"))
    (stage,) = status["stages"]
    counts = {key: stage[f"n_{key}"] for key in ("photos", "labeled", "confirmed", "guessed", "unsure", "waiting")}
    assert counts == {"photos": 10, "labeled": 3, "confirmed": 2, "guessed": 4, "unsure": 1, "waiting": 0}
    assert status["outlook"]["sentence"] == (
        "7 new photos: 2 confirmed, about 1 is very likely of your 1 category, 1 new category with 2 photos, "
        "2 need a look."
    )
    assert status["outlook"]["sentence"] in run("status", tmp_path / "ws")
    said = run("export", tmp_path / "ws", "--out", tmp_path / "sure.csv", "--confirmed-only")
    assert said.startswith("5 photos written")
    assert "6 photos" in run("export", tmp_path / "ws", "--out", tmp_path / "x.csv", "--min-probability", "0.9")


def test_adapting(run, images, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    run("init", tmp_path / "ws", "--images", images, "--labels-from-folders", *TINY)
    report = json.loads(run("discover", tmp_path / "ws", "--adapt", "--epochs", "1", "--json"))
    assert report["n_new"] == 10
    assert list((tmp_path / "ws" / "model").glob("adapted-0-*.safetensors"))


def test_bad_input_is_one_sentence(run, images, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "there are no photos in" in run("init", tmp_path / "ws", "--images", tmp_path / "empty", fails=True)
    assert "is not a workspace" in run("discover", tmp_path / "empty", fails=True)
    assert "is not a workspace" in run("status", tmp_path / "nowhere", fails=True)
    run("init", tmp_path / "ws", "--images", images, *TINY)
    assert "is a workspace already" in run("init", tmp_path / "ws", "--images", images, fails=True)
    assert "does not exist" in run("add", tmp_path / "ws", tmp_path / "nowhere", fails=True)
    assert "needs a name" in run("undo", tmp_path / "ws", "--author", " ", fails=True)
    assert "that were not discovered yet" in run("accept", tmp_path / "ws", fails=True)


def test_photos_with_several_labels_on_the_command_line(run, images, tmp_path):
    shutil.copy(images / "ash" / "00-000.jpg", images / "beech" / "copy.jpg")
    init = ["init", tmp_path / "ws", "--images", images, "--labels-from-folders", *TINY]
    assert "1 photo has several, see below" in run(*init, fails=True)
    assert "--on-conflict must be one of refuse, skip, first, ask, got 'x'" in run(
        *init, "--on-conflict", "x", fails=True
    )
    assert "needs a terminal to ask on; choose skip or first" in run(*init, "--on-conflict", "ask", fails=True)
    assert not (tmp_path / "ws").exists()
    said = run(*init, "--on-conflict", "skip")
    assert "26 new photos, 15 of them labeled in 2 categories; 1 was there already; 1 had several labels" in said
    assert "  ash/00-000.jpg is 'ash', beech/copy.jpg is 'beech': no label" in said


@pytest.mark.parametrize(("answer", "outcome"), [("2", "'beech' was taken"), ("9\n0", "no label")])
def test_asking_for_a_label(run, images, tmp_path, monkeypatch, answer, outcome):
    shutil.copy(images / "ash" / "00-000.jpg", images / "beech" / "copy.jpg")
    monkeypatch.setattr("igcd.cli.workspace._has_terminal", lambda: True)
    said = run(
        *("init", tmp_path / "ws", "--images", images, "--labels-from-folders", "--on-conflict", "ask", *TINY),
        input=answer,
    )
    assert "  1: ash\n  2: beech\n  0: no label\n" in said and outcome in said


def test_restoring_on_the_command_line(run, tmp_path):
    sample_workspace(tmp_path, known={"owl": 3}, novel={"hare": 4})
    workspace = tmp_path / "ws"
    with open_catalog(workspace) as catalog, catalog.transaction() as db:
        db.execute("UPDATE stages SET encoder = 'none'")
    run("accept", workspace)
    (workspace / CATALOG_FILE).write_bytes(b"no catalog" * 1000)
    said = run("status", workspace, fails=True)
    assert "is damaged (file is not a database); `igcd restore " in said and "brings back the copy" in said
    said = run("restore", workspace)
    assert "when stage 0 was accepted" in said and "the damaged catalog is kept as" in said
    assert "1 known categories, 0 accepted in this stage" in run("status", workspace)


def test_broken_photos_are_listed(run, images, tmp_path):
    (images / "empty.jpg").touch()
    said = run("init", tmp_path / "ws", "--images", images, *TINY)
    assert "1 set aside: file is empty 1" in said and "empty.jpg: file is empty" in said
    assert f"{images}/empty.jpg: file is empty" in run("status", tmp_path / "ws", "--broken")


def test_a_name_with_markup_is_shown_as_it_is(run, tmp_path):
    paint_categories(tmp_path / "photos", {"[bold]red[not]": (0, range(3))})
    run("init", tmp_path / "ws", "--images", tmp_path / "photos", "--labels-from-folders", *TINY)
    assert "[bold]red[not]" in run("status", tmp_path / "ws")


def test_help_and_status_load_no_torch(run, images, tmp_path):
    run("init", tmp_path / "ws", "--images", images, *TINY)
    code = (
        "import sys, typer\n"
        "from igcd.cli.workspace import add_workspace_commands\n"
        "app = typer.Typer()\n"
        "add_workspace_commands(app)\n"
        "try:\n"
        f"    app(['status', {str(tmp_path / 'ws')!r}])\n"
        "except SystemExit as end:\n"
        "    assert end.code in (0, None)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "26 photos" in done.stdout
