"""Mutants: what is changed, that the sample is fixed, and that a trial sees the change."""

import ast
import os

import pytest
from tools import mutants
from tools.mutants import ROOT, fails, mutate, sample

SOURCE = '''
"""Text -1."""
_ROWS_AT_A_TIME = 4

def f(x: int = 2, *, strict: bool = True) -> "int":
    """Of 1."""
    if x < 3 and not strict:
        raise ValueError(f"at most {x + 1}")
    return min(x * 2, -x, *zip(strict=True))
'''


def test_every_place_is_changed_once_and_nothing_else():
    changes = [change for _, change, _ in mutate(SOURCE)]
    assert sorted(changes) == sorted(
        [
            "2  ->  3",  # the default
            "True  ->  False",
            "if x < 3 and (not strict):  ->  if not (x < 3 and (not strict)):",
            "x < 3 and (not strict)  ->  x < 3 or not strict",
            "x < 3  ->  x <= 3",
            "3  ->  4",
            "not strict  ->  +strict",
            "min  ->  max",
            "x * 2  ->  x / 2",
            "2  ->  3",
            "-x  ->  +x",
        ]
    )


def test_a_mutant_differs_in_one_line_and_is_valid():
    original = ast.unparse(ast.parse(SOURCE)).splitlines()
    for _, change, source in mutate(SOURCE):
        lines = source.splitlines()
        assert sum(mine != theirs for mine, theirs in zip(lines, original, strict=True)) == 1, change


def test_the_sample_is_the_same_for_the_same_seed():
    first, again, other = (sample("metrics/forgetting", n=4, seed=seed) for seed in (0, 0, 1))
    assert first == again and len(first) == 4 and first != other


def test_every_file_has_tests():
    for folder in ("functional", "metrics", "memory"):
        for path in (ROOT / "src" / "igcd" / folder).glob("[a-z]*.py"):
            assert all(test.is_file() for test in mutants.tests_of(f"{folder}/{path.stem}")), path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutants are tried in forked processes")
@pytest.mark.parametrize(("change", "outcome"), [(" > 0", "survived"), (" < 0", "killed")])
def test_a_trial_runs_the_tests_with_the_changed_source(change, outcome):
    path = ROOT / "src" / "igcd" / "metrics" / "forgetting.py"
    assert (
        fails("metrics/forgetting", path.read_text(encoding="utf-8") + f"\nassert len(__doc__){change}\n", seconds=60)
        == outcome
    )
