"""`igcd run` and `igcd demo`: a recipe from beginning to end, with progress on the screen."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from igcd.allocation import keep_freed_memory, memory_in_a_sentence
from igcd.assembly import (
    build_encoder,
    build_fabric,
    build_stream,
    count_novel_categories,
    left_together,
    method_maker,
    resize_with,
    stream_of,
)
from igcd.cli.console import Waiting, plain
from igcd.cli.console import console as make_console
from igcd.cli.tensorboard import TensorBoardWriter
from igcd.config import Recipe, read_recipe
from igcd.data.quarantine import Quarantine
from igcd.errors import IgcdError
from igcd.hidden import Handle
from igcd.records import write_bytes, write_json
from igcd.report.page import write_report
from igcd.report.run_records import Results, read_raw_record
from igcd.run_folder import check_folder, secret_of, write_secret
from igcd.run_pictures import PictureRecorder, frozen_features
from igcd.runner import Watch, follow, run
from igcd.streams.split import write_split
from igcd.training import EpochReport


def run_recipe(
    name: str, overrides: Sequence[str], out: Path, *, resume: bool, as_json: bool, tensorboard: bool = False
) -> None:
    """Runs a recipe into a folder, or goes on with a run that was stopped."""
    with memory_in_a_sentence(), left_together():
        _run_recipe(read_recipe(name, overrides), out, resume, as_json, tensorboard)


def _run_recipe(recipe: Recipe, out: Path, resume: bool, as_json: bool, tensorboard: bool) -> None:
    config = recipe.model_dump(mode="json")
    keep_freed_memory()
    fabric = build_fabric(recipe)  # first of all: with several devices it starts this very command once for each
    if not fabric.is_global_zero:
        secret = fabric.broadcast(None)
        if secret is not None:
            _follow(recipe, secret, fabric, out)
        return
    secret = None
    try:
        if not check_folder(out, config, resume=resume):
            secret = secret_of(out)
    finally:
        fabric.broadcast(secret)  # None: there is nothing to learn together
    if secret is None:
        results = read_raw_record(out / "results.json", Results)
    else:
        results = _run(recipe, config, secret, fabric, out, tensorboard)
    if as_json:
        print(json.dumps(results, indent=2))
        return
    console = make_console()
    console.print(stage_table(results))
    if results["set_aside"]:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in results["set_aside"].items())
        console.print(f"images set aside: {reasons}; see {out / 'quarantine.csv'}", markup=False, soft_wrap=True)
    console.print(f"results in {out}, report in {write_report(out)}", markup=False, soft_wrap=True)


def _run(
    recipe: Recipe, config: dict[str, Any], secret: bytes, fabric: Fabric, out: Path, tensorboard: bool
) -> dict[str, Any]:
    built = build_stream(recipe.stream, recipe.seed, resize_with(recipe.encoder), secret=secret)
    quarantine = Quarantine(limit=recipe.max_broken)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        bars = _Bars(progress)
        watchers: list[_Bars | TensorBoardWriter] = (
            [bars, TensorBoardWriter(out / "tensorboard")] if tensorboard else [bars]
        )
        encoder = build_encoder(recipe.encoder, quarantine=quarantine, progress=bars.on_cache)
        write_json(out / "config.json", config)
        write_secret(out, secret)
        write_split(built.split, out / "split.tsv")
        for name, text in built.tables.items():
            write_bytes(out / name, text.encode())
        return run(
            stream_of(recipe, built),
            method_maker(recipe, encoder, fabric, count_novel_categories(built.split)),
            out,
            config=config,
            quarantine=quarantine,
            budget=recipe.method.budget,
            pictures=PictureRecorder(Handle(out), frozen_features(encoder), recipe.seed),
            watch=Watch(
                on_epoch=lambda report: [watcher.on_epoch(report) for watcher in watchers],
                on_stage_start=bars.on_stage_start,
                on_stage_end=lambda record: [watcher.on_stage_end(record) for watcher in watchers],
            ),
            meet=fabric.barrier,
        )


def _follow(recipe: Recipe, secret: bytes, fabric: Fabric, out: Path) -> None:
    """Learns together with the process that writes. What is wrong with the folder or the images, that one says."""
    built = build_stream(recipe.stream, recipe.seed, resize_with(recipe.encoder), secret=secret)
    encoder = build_encoder(recipe.encoder, quarantine=Quarantine(limit=recipe.max_broken))
    make_method = method_maker(recipe, encoder, fabric, count_novel_categories(built.split))
    try:
        follow(stream_of(recipe, built), make_method, out, meet=fabric.barrier)
    except RuntimeError as error:  # so a lost connection shows
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise IgcdError(f"another process of this run has stopped, or this one failed: {reason}") from error


class _Bars:
    """What is going on: the stage, the views being cached, the epoch."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._stage = 0
        self._waiting = Waiting(progress.console)

    def _show(self, title: str, done: int, total: int) -> None:
        if title not in self._tasks:
            self._tasks[title] = self._progress.add_task(title, total=total)
        self._progress.update(self._tasks[title], completed=done, total=total)
        if done >= total:
            self._progress.remove_task(self._tasks.pop(title))

    def on_cache(self, n_done: int, n_images: int, n_elsewhere: int = 0, /) -> None:
        self._show("  views", n_done, n_images)
        self._waiting.tell(n_elsewhere)

    def on_epoch(self, report: EpochReport) -> None:
        self._show("  epochs", report.epoch + 1, report.n_epochs)

    def on_stage_start(self, stage: int, n_stages: int) -> None:
        self._stage = stage
        self._show("stages", stage, n_stages)

    def on_stage_end(self, record: dict[str, Any]) -> None:
        scores = "  ".join(f"{group} {value:.1f}" for group, value in record["scores"].items() if value is not None)
        won = record["count"]["won"]
        self._progress.console.print(
            f"stage {record['stage']}: {scores}  opened {len(record['discoveries'])} new, "
            f"{won['found']} won of {won['true']}  {record['seconds']['learn']:.0f} s",
            markup=False,
            highlight=False,
        )


def stage_table(results: dict[str, Any]) -> Table:
    """The layout of the paper's table 1: a column per stage and group, then M_f and M_d."""
    title = plain(f"{results['stream']}, {results['method']}, seed {results['seed']}")
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))  # fits into 80 columns
    cells = []
    for stage in results["stages"]:
        groups = [group for group, value in stage["scores"].items() if value is not None]
        if stage["stage"] == 0 or len(groups) == 1:
            groups = ["All"]  # all of it is Old
        for group in groups:
            table.add_column(f"{'Stage-' + str(stage['stage']) if group == 'All' else ''}\n{group}", justify="right")
            cells.append(f"{stage['scores'][group]:.1f}")
    for name in ("M_f", "M_d"):
        table.add_column(f"{'Overall' if name == 'M_f' else ''}\n{name}", justify="right")
        cells.append("–" if results[name] is None else f"{results[name]:.1f}")
    table.add_row(*cells)
    return table
