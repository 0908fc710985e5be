"""timm can be imported wherever torch can."""

import subprocess
import sys


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_timm_is_importable_in_a_fresh_process():
    assert (
        run_python("from igcd.encoders.torchvision_guard import import_timm; print(import_timm().__name__)") == "timm"
    )


def test_nothing_is_declared_where_the_import_works():
    code = """
import sys, types
sys.modules["torchvision"] = types.ModuleType("torchvision")
from igcd.encoders import torchvision_guard
torchvision_guard.import_torchvision()
print(len(torchvision_guard._kept_libraries))
"""
    assert run_python(code) == "0"


def test_another_failure_of_the_import_is_not_hidden():
    code = """
import importlib
from igcd.encoders import torchvision_guard
def fail(name): raise RuntimeError("out of memory")
importlib.import_module = fail
try:
    torchvision_guard.import_torchvision()
except RuntimeError as error:
    print(error)
"""
    assert run_python(code) == "out of memory"
