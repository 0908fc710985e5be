import json
import os
import signal
import subprocess
import sys
import time

import pytest

from igcd.comparison.folder import at_work, claim, log_path, read_note
from igcd.comparison.plan import method_variants, option_variants, plan
from igcd.comparison.processes import run_cells, threads_per_cell
from igcd.data.parallel import n_cores
from igcd.errors import IgcdError


@pytest.fixture
def comparison(recipe, tmp_path):
    return plan(recipe, [], method_variants(["snn_density", "gm"], None), [0, 1], tmp_path / "out")


def run(comparison, out, n_jobs=1):
    with at_work(out) as lock:
        claim(out, comparison)
        cells = comparison.distinct_cells
        return run_cells(comparison.recipe, cells, n_jobs=n_jobs, lock=lock, commit="abc")


def test_every_cell_is_run_once(comparison, tmp_path, fake_igcd):
    outcomes = run(comparison, tmp_path / "out")
    assert [outcome.failure for outcome in outcomes] == [None] * 4 and all(one.is_new for one in outcomes)
    starts = [line.split()[:3] for line in fake_igcd.read_text().splitlines()]
    threads = str(threads_per_cell(1))
    assert starts[:2] == [["snn_density-0", threads, "True"], ["gm-0", threads, "True"]]
    note = read_note(comparison.cells[0])
    assert note.commit == "abc" and note.wall_seconds > 0
    assert not any(outcome.is_new for outcome in run(comparison, tmp_path / "out"))
    assert len(fake_igcd.read_text().splitlines()) == 4


def test_the_others_go_on_when_one_fails(comparison, tmp_path, fake_igcd, monkeypatch):
    plan = {"fails": ["snn_density-0"], "crashes": ["gm-0"], "dies": ["gm-1"]}
    monkeypatch.setenv("FAKE_IGCD", json.dumps(plan))
    failures = {one.cell.name: one.failure for one in run(comparison, tmp_path / "out", n_jobs=2)}
    assert failures["snn_density-0"] == "the method keeps too many images; it must forget some"
    assert failures["gm-0"].startswith("RuntimeError: nobody expected this (see ")
    assert "ended by signal 9" in failures["gm-1"] and "lower --jobs" in failures["gm-1"]
    assert failures["snn_density-1"] is None
    assert "Traceback" in log_path(comparison.cells[1]).read_text()
    monkeypatch.setenv("FAKE_IGCD", "{}")
    assert {one.failure for one in run(comparison, tmp_path / "out")} == {None}
    assert len(fake_igcd.read_text().splitlines()) == 4 + 3  # the one that was complete was left alone


def test_cells_share_the_cores(comparison, tmp_path, fake_igcd, monkeypatch):
    run(comparison, tmp_path / "out", n_jobs=4 * n_cores())
    assert {line.split()[1] for line in fake_igcd.read_text().splitlines()} == {"1"}
    monkeypatch.setenv("OMP_NUM_THREADS", "3")  # what somebody has set counts
    (tmp_path / "out" / "cells" / "gm-0" / "results.json").unlink()
    run(comparison, tmp_path / "out")
    assert fake_igcd.read_text().splitlines()[-1].startswith("gm-0 3 True")
    for n_jobs in (0, 4 * n_cores() + 1):
        with pytest.raises(IgcdError, match=f"--jobs must be from 1 to {4 * n_cores()}, .* got {n_jobs}; change it"):
            run(comparison, tmp_path / "out", n_jobs=n_jobs)


PROGRAM = """
import os, signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background has it ignored
from igcd.comparison.folder import at_work, claim
from igcd.comparison.plan import method_variants, plan
from igcd.comparison.processes import run_cells
os.environ["PYTHONPATH"] = sys.argv[3]
out = Path(sys.argv[2])
comparison = plan(sys.argv[1], [], method_variants(["snn_density", "gm"], None), [0, 1], out)
with at_work(out) as lock:
    claim(out, comparison)
    run_cells(sys.argv[1], comparison.cells, n_jobs=2, lock=lock, commit=None)
"""


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


@pytest.fixture
def slow_parent(recipe, tmp_path, fake_igcd, monkeypatch):
    """A comparison in a process of its own, in the middle of its first two cells."""
    path = os.environ["PYTHONPATH"]
    monkeypatch.delenv("PYTHONPATH")
    environment = os.environ | {"FAKE_IGCD": '{"seconds": 60}'}
    command = [sys.executable, "-c", PROGRAM, recipe, str(tmp_path / "out"), path]
    parent = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    wait_for(lambda: fake_igcd.is_file() and len(fake_igcd.read_text().splitlines()) == 2)
    yield parent
    parent.kill()
    parent.wait()


def test_ctrl_c_stops_the_cells_at_work(slow_parent, tmp_path):
    slow_parent.send_signal(signal.SIGINT)
    assert slow_parent.wait(30) != 0
    with at_work(tmp_path / "out"):  # nobody holds the folder any more: the children are gone, too
        pass


def test_the_cells_of_a_killed_comparison_hold_its_folder(slow_parent, tmp_path, fake_igcd):
    with pytest.raises(IgcdError, match="at work in"), at_work(tmp_path / "out"):
        pass
    children = [line.split()[3] for line in fake_igcd.read_text().splitlines()]
    slow_parent.kill()
    slow_parent.wait()
    try:
        with pytest.raises(IgcdError, match="a cell of one that was killed"), at_work(tmp_path / "out"):
            pass
    finally:
        for child in children:
            os.kill(int(child), signal.SIGKILL)


@pytest.mark.usefixtures("fake_igcd")
def test_a_folder_of_another_comparison_is_refused(recipe, comparison, tmp_path):
    out = tmp_path / "out"
    run(comparison, out)
    more = plan(recipe, [], method_variants(["gm", "orca"], None), [1, 2], out)
    assert sum(one.is_new for one in run(more, out)) == 3  # more methods and seeds are welcome, gm-1 was there
    other = plan(recipe, ["training.first_stage.epochs=3"], method_variants(["gm"], None), [5], out)
    with pytest.raises(IgcdError, match="comparison with other settings"):
        run(other, out)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(IgcdError, match="not empty and not the output of a comparison"):
        run(comparison, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


@pytest.mark.usefixtures("fake_igcd")
def test_a_cell_with_other_settings_is_refused_and_an_older_config_is_not(recipe, tmp_path):
    out = tmp_path / "out"
    comparison = plan(recipe, [], option_variants("method.K=5"), [0], out)
    (cell,) = comparison.cells
    cell.folder.mkdir(parents=True)
    config = cell.config
    del config["n_novel"]  # a version that did not know it
    (cell.folder / "config.json").write_text(json.dumps(config))
    (out / "comparison.json").write_text(json.dumps({"base": comparison.base.model_dump(mode="json")}))
    assert [one.failure for one in run(comparison, out)] == [None]
    config["method"]["K"] = 7
    (cell.folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(IgcdError, match=r"method.K=5-0 holds a run with other settings"):
        run(comparison, out)
