import resource
import subprocess
import sys

import pytest

from igcd.cli.allocation import keep_freed_memory

CHURN = """
import resource, torch
from igcd.cli.allocation import keep_freed_memory
if {keep}: assert keep_freed_memory()
for step in range(6):
    if step == 1: before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    parts = [torch.ones(2**22) for _ in range(4)]
    del parts
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, keep):
    done = subprocess.run([sys.executable, "-c", CHURN.format(keep=keep)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not keep_freed_memory(), reason="only glibc can be asked to keep freed memory")
def test_memory_that_was_freed_is_used_again():
    n_pages = 5 * 4 * 2**24 // resource.getpagesize()  # of the five later steps, if all came anew
    assert faults(keep=True) < n_pages / 4


def test_nothing_happens_where_it_cannot(monkeypatch):
    monkeypatch.setattr("sys.platform", "win32")
    assert keep_freed_memory() is False
