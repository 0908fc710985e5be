"""A comparison on the screen: a line per run, an estimate for the whole, and the table at its end."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from igcd.cli.console import plain
from igcd.comparison.plan import Cell
from igcd.comparison.processes import Outcome, Watch
from igcd.report.comparison_table import ComparisonTable
from igcd.report.comparison_text import cost, spread_text
from igcd.report.run_records import Results, read_record
from igcd.report.templating import duration

EVENTS_TAIL = 8192
REFRESH_SECONDS = 1.0


class ComparisonProgress:
    """What is being run, what is done, and how long the rest may take."""

    def __init__(self, cells: Sequence[Cell], n_jobs: int) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=self._console, transient=True
        )
        self._cells = cells
        self._n_jobs = n_jobs
        self._seconds: dict[str, list[float]] = {}
        self._tasks: dict[Path, TaskID] = {}
        self._started: dict[Path, float] = {}
        self._n_done = 0
        self._refreshed = 0.0

    def __enter__(self) -> "ComparisonProgress":
        self._bars.start()
        self._whole = self._bars.add_task("runs", total=len(self._cells))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()
        if kind is not None:
            self._console.print(
                f"stopped with {self._n_done} of {len(self._cells)} runs complete; the same command goes on",
                markup=False,
            )

    def watch(self, outcomes: list[Outcome]) -> Watch:
        """The watch of `run_cells`, which also gathers the outcomes, so that those before an interruption are known."""

        def on_end(outcome: Outcome) -> None:
            outcomes.append(outcome)
            self._on_end(outcome)

        return Watch(self._on_start, on_end, self._on_wait)

    def _on_start(self, cell: Cell) -> None:
        self._started[cell.folder] = time.monotonic()
        self._tasks[cell.folder] = self._bars.add_task(f"  {cell.name}", total=None)

    def _on_end(self, outcome: Outcome) -> None:
        cell = outcome.cell
        self._started.pop(cell.folder, None)
        if cell.folder in self._tasks:
            self._bars.remove_task(self._tasks.pop(cell.folder))
        self._n_done += outcome.failure is None
        self._bars.advance(self._whole)
        if outcome.failure is None:
            self._seconds.setdefault(cell.variant.name, []).append(outcome.seconds)
        place = f"{self._n_done}/{len(self._cells)}"
        words = f"failed: {outcome.failure}" if outcome.failure else _scores(cell.folder)
        took = duration(outcome.seconds) if outcome.is_new else "there already"
        self._console.print(
            f"{place:>7}  {cell.variant.name}, seed {cell.seed}: {words}  ({took}{self._left()})",
            markup=False,
            soft_wrap=True,
        )

    def _left(self) -> str:
        left = self.estimate()
        return f"; about {duration(left)} left" if left else ""

    def estimate(self) -> float | None:
        """Seconds left: each run that is not done as long as those of its variant, or as the mean of all; or None."""
        times = [seconds for several in self._seconds.values() for seconds in several]
        n_ended = self._bars.tasks[0].completed
        if not times or n_ended >= len(self._cells):
            return None
        usual = fmean(times)
        waiting = [cell for cell in self._cells if not (cell.folder / "results.json").is_file()]
        total = sum(fmean(self._seconds.get(cell.variant.name, [usual])) for cell in waiting)
        spent = sum(time.monotonic() - started for started in self._started.values())
        return max(total - spent, 0.0) / self._n_jobs

    def _on_wait(self) -> None:
        if time.monotonic() - self._refreshed < REFRESH_SECONDS or not self._console.is_terminal:
            return
        self._refreshed = time.monotonic()
        self._bars.update(self._whole, description=f"runs{self._left().replace(';', ',')}")
        for cell in self._cells:
            if cell.folder in self._tasks:
                self._bars.update(self._tasks[cell.folder], description=f"  {cell.name}: {_last_event(cell.folder)}")


def _scores(folder: Path) -> str:
    results = read_record(folder / "results.json", Results)
    scores = {"M_d": results.M_d, "M_f": results.M_f}
    if results.M_f is None:
        scores = results.stages[-1].scores
    return "  ".join(f"{name} {score:.1f}" for name, score in scores.items() if score is not None)


def _last_event(folder: Path) -> str:
    """Where a run is, from the end of its log."""
    try:
        with (folder / "events.jsonl").open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - EVENTS_TAIL))
            lines = file.read().decode(errors="replace").splitlines()
        event = json.loads(lines[-1])
        if event["event"] == "epoch":
            return f"stage {event['stage']}, epoch {event['epoch'] + 1} of {event['n_epochs']}"
        return f"stage {event['stage']}"
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return "starting"


def summary_table(table: ComparisonTable, what: str) -> Table:
    """The last stage and the overall scores; the files have all stages."""
    last = table.stages[-1][1] if table.stages else []
    columns = [*last, *table.overall]
    shown = Table(
        title=plain(f"{table.stream}; encoder: {table.encoder}"), title_justify="left", box=None, padding=(0, 2, 0, 0)
    )
    shown.add_column(what)
    for column in columns:
        place = "" if column.stage is None else f"{column.stage} "
        shown.add_column(f"{place}{column.group} {column.arrow}", justify="right")
    for head in ("seeds", "time", "memory"):
        shown.add_column(head, justify="right")
    styles = {1: "bold", 2: "underline", None: ""}
    for row in table.rows:
        cells = []
        for column in columns:
            text, style = spread_text(row.scores.get(column.key)), styles[row.ranks.get(column.key)]
            cells.append(f"[{style}]{text}[/]" if style else text)
        shown.add_row(plain(row.name), *cells, row.seeds_note, *cost(row))
    return shown
