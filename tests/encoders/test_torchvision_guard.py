"""timm can be imported wherever torch can."""

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

from igcd.encoders import torchvision_guard


@pytest.mark.slow  # a process that imports PyTorch
def test_timm_is_importable_in_a_fresh_process():
    code = "from igcd.encoders.torchvision_guard import import_timm; print(import_timm().__name__)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "timm"


def test_nothing_is_declared_where_the_import_works(monkeypatch):
    monkeypatch.setattr(torchvision_guard, "_kept_libraries", [])
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    torchvision_guard.import_torchvision()
    assert torchvision_guard._kept_libraries == []


def test_another_failure_of_the_import_is_not_hidden(monkeypatch):
    def fail(_name):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(torchvision_guard, "_kept_libraries", [])
    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        torchvision_guard.import_torchvision()
