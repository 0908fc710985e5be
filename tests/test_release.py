"""What is released: the version, and a wheel and an sdist that work in an empty environment, far from the checkout."""

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import igcd

ROOT = Path(__file__).parents[1]
PREDICTIONS = "stage,split,image_id,category,cluster,group\n0,test,a,fox,1,Old\n0,test,b,owl,2,Old\n"
DISCOVER = """
import numpy as np
from igcd import CategoryDiscoverer
rows = np.repeat(np.eye(3), 20, axis=0) + np.random.default_rng(0).normal(0, 0.02, (60, 3))
labels = np.repeat(["a", "b", ""], 20)
print(CategoryDiscoverer(n_novel=1).fit(rows, labels).predict(rows[[0, 30, 59]]).tolist())
"""


def test_the_version_is_in_one_place():
    assert version("igcd") == igcd.__version__ or "+" in version("igcd")
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", igcd.__version__)
    assert f"version: {igcd.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## [{igcd.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert not re.search(r'^version = "', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), flags=re.MULTILINE)


def start(*command, cwd):
    """Runs a command that knows nothing of this checkout and its environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_", "VIRTUAL"))}
    return subprocess.run([*map(str, command)], cwd=cwd, env=clean, capture_output=True, text=True)


def run(*command, cwd, expect=0):
    done = start(*command, cwd=cwd)
    assert done.returncode == expect, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist, built from a copy of what is under version control."""
    pytest.importorskip("build", reason="the release is built with `build`, of the extra `dev`")
    checkout, out = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("dist")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout.split("\0")
    if not any(files):
        pytest.skip("the release is built from a git checkout, this is not one")
    for name in filter(None, files):
        if name.startswith(("src/", "README", "LICENSE", "pyproject")):
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            (checkout / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ".", cwd=checkout)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def environment(folder, *requirements):
    """The programs of a new virtual environment with what `requirements` bring, in the versions of constraints.txt."""
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", *requirements]
    done = start(*pip, cwd=folder)
    if done.returncode and re.search(r"No matching distribution|Connection|resolve host|index", done.stderr):
        pytest.skip(f"no package index can be reached: {done.stderr.strip().splitlines()[-1][:200]}")
    assert done.returncode == 0, done.stderr
    return python, folder / "venv" / "bin" / "igcd"


@pytest.mark.slow
def test_wheel_and_sdist_hold_the_same_package(built):
    wheel, sdist = built
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("igcd/")}
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert in_wheel == {name.removeprefix("src/") for name in names if name.startswith("src/igcd/") and "." in name}
    tracked = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "igcd").rglob("*.*") if path.is_file()}
    assert in_wheel == {name for name in tracked if "__pycache__" not in name}
    assert {"README.md", "LICENSE", "pyproject.toml"} <= names


@pytest.mark.slow
def test_the_sdist_alone_builds_streams_and_scores(built, tmp_path):
    python, igcd_command = environment(tmp_path, built[1])
    (tmp_path / "predictions.csv").write_text(PREDICTIONS)
    assert run(igcd_command, "--version", cwd=tmp_path) == f"igcd {igcd.__version__}\n"
    scores = json.loads(run(igcd_command, "score", "--predictions", "predictions.csv", "--json", cwd=tmp_path))
    assert scores["M_d"] == 100
    run(igcd_command, "build", "digits", "--protocol", "mi", "--out", "digits", cwd=tmp_path)
    assert (tmp_path / "digits" / "split.tsv").is_file()
    assert "demo" in run(igcd_command, "ls", "recipes", cwd=tmp_path)
    run(python, "-c", "import torch", cwd=tmp_path, expect=1)  # the core does not need it


@pytest.mark.slow
def test_the_wheel_learns_discovers_and_reports(built, tmp_path):
    python, igcd_command = environment(tmp_path, f"{built[0]}[learn,review]")
    assert run(python, "-c", DISCOVER, cwd=tmp_path) == "['a', 'b', 'novel 1']\n"
    small = {"n_species": 12, "n_images": 240, "n_test_per_species": 4, "size": 32}
    settings = [f"stream.options.{name}={value}" for name, value in small.items()]
    settings += ["encoder.size=32", "encoder.backbone=resnet10t", "encoder.weights=random", "encoder.cache=null"]
    settings += ["training.first_stage.epochs=1", "training.later_stages.epochs=1"]
    run(igcd_command, "run", "demo", *settings, "--out", "run", cwd=tmp_path)
    assert "<html" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert len(json.loads((tmp_path / "run" / "results.json").read_text())["stages"]) == 4
    page = "from igcd.review import app; import igcd.workspace.catalog; print(app.__file__)"
    assert str(tmp_path) in run(python, "-c", page, cwd=tmp_path)
