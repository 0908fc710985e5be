"""A small recipe, and cells that are not really run."""

import os
import shutil
from pathlib import Path

import pytest

RECIPE = """
stream: {source: digits, by_category: {protocol: mi}}
method: {K: 6}
others: {simgcd: {epsilon: 4}}
paper: mi.cifar100
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(RECIPE)
    return str(path)


@pytest.fixture
def fake_igcd(tmp_path, monkeypatch):
    """Cells run the stand-in for `igcd`; gives the path of its log, a line per start."""
    package = tmp_path / "fake" / "igcd"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    here = Path(__file__).parent
    shutil.copy(here / "fake_igcd.py", package / "__main__.py")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent), str(here.parent)]))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "starts.txt"))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    return tmp_path / "starts.txt"
