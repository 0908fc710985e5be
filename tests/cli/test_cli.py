"""The command line as a person meets it. Most commands run in this process, which saves the start of another."""

import contextlib
import errno
import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from igcd import cli
from igcd.streams.split import read_split


def igcd(*arguments, cwd="."):
    """What a command prints and its exit code; an error that `main` lets through is one of the test."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["igcd", *map(str, arguments)])
        patch.chdir(cwd)
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def in_a_process(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "igcd", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=120
    )


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder per category, ten categories of eight photos, two of the 80 broken."""
    root = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for category in range(10):
        (root / f"bird {category}").mkdir()
        for number in range(8):
            pixels = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / f"bird {category}" / f"{number}.png")
    (root / "bird 3" / "0.png").write_bytes(b"")
    (root / "bird 4" / "1.png").write_bytes(b"hello")
    return root


def test_a_process_of_its_own(tmp_path):
    done = in_a_process("build", "digits", "--stages", "4,6", "--out", tmp_path / "out")
    assert done.returncode == 0 and done.stderr.strip() == "" and "digits-igcd" in done.stdout
    failed = in_a_process("build", "digits", "--stages", "40,40", "--out", tmp_path / "none")
    assert failed.returncode == 1 and failed.stdout == ""
    assert failed.stderr.strip().startswith("igcd: ") and len(failed.stderr.strip().splitlines()) == 1


def test_help_and_version():
    shown = igcd("--help")
    assert shown.returncode == 0
    for verb in ("build", "score", "ls"):
        assert verb in shown.stdout
    assert igcd("--version").stdout.startswith("igcd 0.")
    assert igcd("build", "--help").returncode == 0
    assert "--protocol" in igcd("build", "cifar100", "--help").stdout


def loads_torch(*arguments):
    code = "import sys; from igcd.cli import main; sys.argv = ['igcd', *sys.argv[1:]]\n"
    code += "try: main()\nexcept SystemExit: pass\nprint('torch' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr.strip() == "True"


@pytest.mark.parametrize("arguments", [["--help"], ["ls"], ["build", "digits", "--help"]])
def test_help_does_not_load_torch(arguments):
    assert not loads_torch(*arguments)


def test_ls_names_data_and_streams():
    lists = json.loads(igcd("ls", "--json").stdout)
    assert {"cifar100", "cub", "folder", "fieldguide"} <= set(lists["data"])
    assert set(lists["streams"]) == {"igcd-l", "igcd-u", "mi", "cgcd", "static"}
    assert {"snn_density"} <= set(lists["methods"]) and {"demo"} <= set(lists["recipes"])
    assert set(json.loads(igcd("ls", "streams", "--json").stdout)) == {"streams"}
    failed = igcd("ls", "nothing")
    assert failed.returncode == 1 and "ask for one of" in failed.stderr


def test_build_writes_a_split_and_shows_the_stages(tmp_path):
    done = igcd("build", "digits", "--protocol", "mi", "--out", tmp_path / "a")
    assert done.returncode == 0, done.stderr
    assert "digits-mi" in done.stdout and "unlabeled" in done.stdout
    split = read_split(tmp_path / "a" / "split.tsv")
    assert len(split.stages) == 4
    record = json.loads(igcd("build", "digits", "--protocol", "mi", "--out", tmp_path / "b", "--json").stdout)
    assert (tmp_path / "a" / "split.tsv").read_bytes() == (tmp_path / "b" / "split.tsv").read_bytes()
    stage = record["stages"][1]
    assert stage["unlabeled"] == len(split.stages[1].unlabeled.image_ids)
    assert stage["categories"] == stage["old"] + stage["new"]


def test_build_shows_the_built_in_stream_by_year_and_continent(tmp_path):
    done = igcd("build", "fieldguide", "--species", "20", "--images", "400", "--out", tmp_path / "a")
    assert done.returncode == 0, done.stderr
    assert re.search(r"│\s+1 │.*│ 2017\s+│ Oceania", done.stdout)
    assert "most common families of stage 3: " in done.stdout
    assert "paper" not in done.stdout  # its counts are those of another data set
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"split.tsv", "places.csv", "taxonomy.csv"}
    arguments = ["--species", "10", "--images", "100", "--size", "32", "--pictures", "--json"]
    record = json.loads(igcd("build", "fieldguide", *arguments, "--out", tmp_path / "b").stdout)
    assert [stage["stage"] for stage in record["stages"]] == [0, 1, 2, 3] and record["missing_images"] == 0
    assert (tmp_path / "b" / "train.json").is_file() and len(list((tmp_path / "b" / "train").rglob("*.jpg"))) == 100


def test_build_sets_broken_photos_aside(photos, tmp_path):
    done = igcd("build", "folder", "--data", photos, "--held-out", "0.25", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 images set aside" in done.stdout
    quarantine = (tmp_path / "quarantine.csv").read_text()
    assert "bird 3/0.png" in quarantine and "bird 4/1.png" in quarantine
    split = read_split(tmp_path / "split.tsv")
    ids = {image_id for stage in split.stages for image_id in stage.labeled.image_ids + stage.test.image_ids}
    assert "bird 3/0.png" not in ids and len(ids) > 20


def test_too_many_broken_photos_stop_the_build(photos, tmp_path):
    done = igcd("build", "folder", "--data", photos, "--max-broken", "0.01", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "cannot be used" in done.stderr and "--max-broken" in done.stderr
    listed = tmp_path / "out" / "quarantine.csv"
    assert done.stderr.strip().endswith(f"all of them are listed in {listed}")
    assert "bird 3/0.png" in listed.read_text() and list((tmp_path / "out").iterdir()) == [listed]


def test_a_warning_says_that_a_split_has_no_test_images(photos, tmp_path):
    done = igcd("build", "folder", "--data", photos, "--no-check", "--out", tmp_path)
    assert re.search("^warning: there are no test images.*--held-out", done.stdout, re.MULTILINE)
    folder = ["build", "folder", "--data", photos, "--no-check", "--out", tmp_path, "--json"]
    assert "--held-out" in json.loads(igcd(*folder).stdout)["warnings"][0]
    assert json.loads(igcd(*folder, "--held-out", "0.25").stdout)["warnings"] == []


def test_options_reach_the_source(photos, tmp_path):
    table = tmp_path / "birds.csv"
    lines = [
        f"{path.relative_to(photos)};{path.parent.name};{'train' if path.stem < '6' else 'test'}"
        for path in sorted(photos.rglob("*.png"))
    ]
    table.write_text("\n".join(["path;kind;split", *lines]))
    options = ["--option", f"images={photos}", "--option", "category_column=kind", "--option", "delimiter=;"]
    done = igcd("build", "table", "--data", table, *options, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert len(read_split(tmp_path / "out" / "split.tsv").stages[-1].test.image_ids) == 20
    done = igcd("build", "table", "--data", table, *options[:4], "--option", "delimiter=ab", "--out", tmp_path / "no")
    assert done.returncode == 1 and "correct the option" in done.stderr and "Traceback" not in done.stderr


def test_a_category_order_from_a_file(tmp_path):
    (tmp_path / "order.txt").write_text("\n".join("9876543210"))
    arguments = ["--stages", "4,2,2,2", "--old-presence", "0", "--category-order", tmp_path / "order.txt"]
    done = igcd("build", "digits", *arguments, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(read_split(tmp_path / "split.tsv").stages[0].labeled.categories) == set("9876")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["build", "cifar100", "--out", "x"], "needs to know where its files are; give root (igcd build: --data"),
        (["build", "imagenet100", "--out", "x"], "--option wnids=FILE"),
        (["build", "digits", "--data", "nowhere", "--out", "x"], "reads no files, got nowhere; leave root out"),
        (["build", "digits", "--option", "labels", "--out", "x"], "--option is written key=value, got 'labels'"),
        (["build", "digits", "--option", "labels=fine", "--out", "x"], "has no option 'labels'; it knows none"),
        (["build", "digits", "--option", "a=1", "--option", "a=2", "--out", "x"], "--option a was given '1' and '2'"),
        (["build", "digits", "--held-out", "0.2", "--out", "x"], "leave --held-out out"),
        (["build", "digits", "--stages", "", "--out", "x"], "--stages"),
        (["build", "digits", "--stages", "-1,5", "--out", "x"], "at least one category each, got [-1, 5]\n"),
        (["build", "fieldguide", "--stages", "", "--out", "x"], "at least two stages"),
        (["build", "fieldguide", "--species", "100000", "--out", "x"], "--species must be at most 10,000"),
        (["build", "fieldguide", "--species", "2", "--out", "x"], "--species must be at least 10"),
        (["build", "cifar100", "--data", "nowhere", "--out", "x"], "does not exist"),
        (["build", "digits", "--protocol", "mii", "--out", "x"], "--protocol"),
        (["build", "digits", "--stages", "a,b", "--out", "x"], "--stages"),
        (["build", "digits", "--stages", "40,40", "--out", "x"], "ask for fewer"),
        (["build", "digits", "--old-presence", "2", "--out", "x"], "--old-presence"),
        (["score", "--predictions", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_an_error_is_one_sentence(arguments, words, tmp_path):
    done = igcd(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fails_while_it_is_read_is_one_sentence(monkeypatch, capsys):
    def read_from_a_bad_disk():
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(cli, "app", read_from_a_bad_disk)
    monkeypatch.setattr(sys, "argv", ["igcd", "ls"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said == "igcd: a disk fails while a file is read or written (Input/output error); check it, and try again\n"


def test_shell_completion_is_there(monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # which shell called us does not matter
    assert "COMPLETE=complete_bash" in in_a_process("--show-completion", "bash").stdout


def test_a_reader_that_has_seen_enough_is_no_error():
    listing = subprocess.Popen([sys.executable, "-m", "igcd", "ls"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert listing.stdout is not None and listing.stderr is not None
    listing.stdout.close()
    assert listing.stderr.read() == b"" and listing.wait() == 0
