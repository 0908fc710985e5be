import resource
import subprocess
import sys

import numpy as np
import pytest
import torch

from igcd.allocation import keep_freed_memory, memory_in_a_sentence
from igcd.errors import IgcdError

# As in a command: a process that has imported less finds a place for such blocks by itself after some steps.
CHURN = """
import resource, torch
import igcd.cli
from igcd.allocation import keep_freed_memory
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
@pytest.mark.slow  # two processes that import PyTorch
def test_memory_that_was_freed_is_used_again():
    n_pages = 5 * 4 * 2**24 // resource.getpagesize()  # of the five later steps, if all came again
    assert faults(keep=True) < n_pages / 4


def test_nothing_happens_where_it_cannot(monkeypatch):
    monkeypatch.setattr("sys.platform", "win32")
    assert keep_freed_memory() is False


@pytest.mark.parametrize(
    "allocate",
    [lambda: np.empty(2**58), lambda: torch.empty(2**50), lambda: torch.empty(2**40, 2**40)],
    ids=["numpy", "torch", "no number for it"],
)
def test_what_cannot_be_allocated_is_one_sentence(allocate):
    with (
        pytest.raises(IgcdError, match=r"needs more memory than there is \(.*\); lower encoder.size"),
        memory_in_a_sentence(),
    ):
        allocate()


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="the moon"), memory_in_a_sentence():
        raise RuntimeError("the moon")
