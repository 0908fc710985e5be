"""A short share of `make torture` with a fixed seed: each part once, and that it finds what is wrong."""

import random

import pytest
from tools.torture.batches import run_batch
from tools.torture.forks import load_everything
from tools.torture.formats import mutate_json, mutate_split
from tools.torture.images import ImageTrials
from tools.torture.inputs import InputTrials, all_readers
from tools.torture.judging import Verdict, judge
from tools.torture.kills import KillTrials
from tools.torture.load import LoadTrials
from tools.torture.readers_of_data import sample_split
from tools.torture.tally import Tally, read_tally, table
from tools.torture.troubles import TroubleTrials

from igcd.errors import IgcdError
from igcd.streams.split import format_split, read_split

SEED = 12


def refuse(sentence):
    error = IgcdError("")
    error.args = (sentence,)  # past the class, which shortens and escapes
    raise error


@pytest.mark.parametrize(
    ("work", "outcome", "words"),
    [
        (lambda: 1, "accepted", ""),
        (lambda: refuse("expected a folder, got a file; give a folder"), "refused", "expected a folder"),
        (lambda: refuse("a" * 300), "fault", "sentence too long"),
        (lambda: refuse("a\0"), "fault", "sentence not printable"),
        (lambda: refuse(" "), "fault", "sentence empty"),
        (lambda: {}["x"], "fault", "KeyError"),
    ],
)
def test_what_counts_as_a_fault(work, outcome, words):
    verdict = judge(work)
    assert verdict.outcome == outcome and verdict.words.startswith(words)


def test_a_mutation_is_of_its_format_and_the_same_for_the_same_seed(tmp_path):
    content = b'{"a": [1, 2, {"b": "c"}], "d": null}'
    changed = {mutate_json(content, random.Random(seed)) for seed in range(40)}
    assert len(changed) > 30 and changed == {mutate_json(content, random.Random(seed)) for seed in range(40)}
    fits = 0
    for seed in range(40):
        (tmp_path / "split.tsv").write_bytes(mutate_split(format_split(sample_split()), random.Random(seed)))
        verdict = judge(lambda: read_split(tmp_path / "split.tsv"))
        fits += "checksum" not in verdict.words
    assert fits > 30


def test_a_process_that_dies_is_one_fault():
    def trial(number):
        if number == 3:
            import os

            os._exit(9)
        yield "case", Verdict("accepted")

    done, following = run_batch(0, 10, trial)
    assert [one.verdict.outcome for one in done] == ["accepted"] * 3 + ["fault"] and following == 4
    assert "code 9" in done[-1].verdict.words
    assert run_batch(4, 6, trial)[1] == 10


def test_counts_are_kept_and_shown(tmp_path):
    tally = Tally(7)
    tally.add("inputs", "recipe", "refused", 3)
    tally.add_fault("inputs", "recipe", 4711, "KeyError: somewhere")
    tally.add_fault("inputs", "recipe", 4712, "KeyError: somewhere")
    tally.write(tmp_path / "torture.json")
    again = read_tally(tmp_path / "torture.json", 7)
    assert again == tally and again.total("inputs") == 5 and again.n_faults == 2
    assert "FAULT ×2 inputs recipe: KeyError: somewhere (number 4711)" in table(again)


def faults(trials, numbers):
    outcomes = [(number, case, verdict) for number in numbers for case, verdict in trials(number)]
    assert outcomes
    return [one for one in outcomes if one[2].outcome == "fault"]


def test_mutated_inputs(tmp_path):
    trials = InputTrials(all_readers(tmp_path / "samples", with_models=False), tmp_path / "x", SEED)
    assert not faults(trials, range(400))


def test_mutated_images(tmp_path):
    assert not faults(ImageTrials(tmp_path / "x", SEED, n_images=24), range(1))


@pytest.fixture(scope="module")
def loaded():
    load_everything()


@pytest.mark.usefixtures("loaded")
def test_kills(tmp_path):
    trials = KillTrials(tmp_path, SEED, scenarios=("review",))
    assert not faults(trials, range(1))


@pytest.mark.usefixtures("loaded")
def test_troubles(tmp_path):
    assert not faults(TroubleTrials(tmp_path, SEED, ("init", "discover", "export csv")), range(6))


@pytest.mark.usefixtures("loaded")
def test_a_crowd_on_the_page(tmp_path):
    assert not faults(LoadTrials(tmp_path, SEED, n_requests=6), range(1))
