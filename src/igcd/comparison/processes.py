"""Cells in processes of their own: a crash and the peak of memory belong to the cell."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from igcd.comparison.folder import Note, is_complete, log_path, read_note, write_note
from igcd.comparison.plan import Cell
from igcd.data.parallel import n_cores
from igcd.errors import IgcdError
from igcd.report.run_records import Results, read_record

POLL_SECONDS = 0.2
JOBS_PER_CORE = 4
"""More cells than that at a time only wait for each other, and may take all of the memory."""
GRACE_SECONDS = 10
"""How long a cell may take to stop after it was asked to."""


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: a sentence where it failed, None where it is complete."""

    cell: Cell
    failure: str | None
    seconds: float
    is_new: bool
    """Whether it was run now, not skipped."""


@dataclass
class _Running:
    cell: Cell
    process: subprocess.Popen[bytes]
    started: float


@dataclass(frozen=True)
class Watch:
    """Progress callbacks."""

    on_start: Callable[[Cell], object] = field(default=lambda _cell: None)
    on_end: Callable[[Outcome], object] = field(default=lambda _outcome: None)
    on_wait: Callable[[], object] = field(default=lambda: None)


def run_cells(
    recipe: str,
    cells: Sequence[Cell],
    *,
    n_jobs: int,
    lock: int,
    commit: str | None,
    watch: Watch = Watch(),  # noqa: B008 - frozen
) -> list[Outcome]:
    """Runs the cells that are not complete, at most `n_jobs` at a time; the others go on when one fails.

    Whatever ends this process early, Ctrl-C for one, ends the cells at work. They resume when they are run again.
    """
    n_most = JOBS_PER_CORE * n_cores()
    if not 1 <= n_jobs <= n_most:
        raise IgcdError(
            f"--jobs must be from 1 to {n_most}, {JOBS_PER_CORE} for each core here, got {n_jobs}; change it"
        )
    outcomes = []
    for cell in (cell for cell in cells if is_complete(cell)):
        outcomes.append(Outcome(cell, None, _past_seconds(cell), is_new=False))
        watch.on_end(outcomes[-1])
    waiting = [cell for cell in cells if not is_complete(cell)]
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                cell = waiting.pop(0)
                watch.on_start(cell)
                running.append(_Running(cell, _start(recipe, cell, n_jobs, lock), time.monotonic()))
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                outcomes.append(_end(one, commit))
                watch.on_end(outcomes[-1])
            watch.on_wait()
            if running:
                time.sleep(POLL_SECONDS)
    finally:
        _stop([one.process for one in running])
    return outcomes


def cell_command(recipe: str, cell: Cell) -> list[str]:
    """The arguments of `igcd` that run a cell; what was stopped goes on."""
    return ["run", recipe, *cell.overrides, "--out", str(cell.folder), "--resume"]


def threads_per_cell(n_jobs: int) -> int:
    """The cores of this process shared among the cells at work, at least one each."""
    return max(1, n_cores() // n_jobs)


def _start(recipe: str, cell: Cell, n_jobs: int, lock: int) -> subprocess.Popen[bytes]:
    log = log_path(cell)
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {"OMP_NUM_THREADS": str(threads_per_cell(n_jobs))} | os.environ  # what the user has set counts
    with log.open("wb") as file:
        return subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-m", "igcd", *cell_command(recipe, cell)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
            env=environment,
            pass_fds=(lock,),
        )


def _end(one: _Running, commit: str | None) -> Outcome:
    seconds = time.monotonic() - one.started
    code = one.process.returncode
    if code == 0 and is_complete(one.cell):
        write_note(one.cell, replace(Note(), wall_seconds=seconds, commit=commit))
        return Outcome(one.cell, None, seconds, is_new=True)
    return Outcome(one.cell, _failure(log_path(one.cell), code), seconds, is_new=True)


def _failure(log: Path, code: int) -> str:
    """The sentence a cell ended with, or its last words."""
    if code < 0:
        hint = "; perhaps memory ran out: lower --jobs" if code == -9 else ""
        return f"its process was ended by signal {-code}{hint}"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    last = lines[-1] if lines else f"it ended with exit code {code} and said nothing"
    return last.removeprefix("igcd: ") if last.startswith("igcd: ") else f"{last} (see {log})"


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _past_seconds(cell: Cell) -> float:
    """How long a complete cell took."""
    noted = read_note(cell).wall_seconds
    if noted is not None:
        return noted
    seconds = read_record(cell.folder / "results.json", Results).seconds
    return seconds.learn + seconds.predict
