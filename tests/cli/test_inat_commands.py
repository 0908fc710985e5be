"""The options of `igcd build inat2021` and `igcd build observations`."""

import json
import sys
from pathlib import Path
from subprocess import run

import pytest
import typer
from inat2021_annotations import TRAIN, VAL, annotations
from typer.testing import CliRunner

from igcd.cli.build_commands import add_build_commands
from igcd.errors import IgcdError


@pytest.fixture
def app() -> typer.Typer:
    build_app = typer.Typer()
    add_build_commands(build_app)
    return build_app


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "train_mini.json", tmp_path / "val.json"]
    for path, rows in zip(paths, (TRAIN, VAL), strict=True):
        path.write_text(json.dumps(annotations(rows, path.stem)), encoding="utf-8")
    return [str(path) for path in paths]


def test_both_files_follow_one_option(app: typer.Typer, files: list[str], tmp_path: Path):
    arguments = ["inat2021", "--annotations", *files, "--out", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["name"] == "inat2021-mini-igcd-l"
    assert [stage["images"] for stage in record["stages"]] == [5, 2, 3, 2]
    twice = ["inat2021", "--annotations", files[0], "--annotations", files[1], *arguments[4:]]
    assert json.loads(CliRunner().invoke(app, twice).stdout) == record


def test_options_reach_the_rule(app: typer.Typer, files: list[str], tmp_path: Path):
    arguments = ["inat2021", "--annotations", *files, "--out", str(tmp_path / "out"), "--json", "--reading", "year"]
    record = json.loads(CliRunner().invoke(app, [*arguments, "--protocol", "igcd-u", "--min-images", "2"]).stdout)
    assert record["name"] == "inat2021-mini-igcd-u"
    assert "training image of a category with fewer than 2 in its stage" in record["skipped"]
    too_many = CliRunner().invoke(app, [*arguments, files[0]])
    assert isinstance(too_many.exception, IgcdError)


def test_help_is_light():
    code = "import sys, igcd.cli.build_commands; assert not {'numpy', 'pydantic', 'torch'} & set(sys.modules)"
    assert run([sys.executable, "-c", code], check=False).returncode == 0
