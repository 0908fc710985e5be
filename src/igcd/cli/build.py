"""`igcd build`: from a data source to a split file, with the stages shown as a table."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from igcd.cli.console import console as make_console
from igcd.data.dataset import Dataset
from igcd.data.quarantine import Quarantine, inspect
from igcd.data.sources import SOURCES, load_source
from igcd.errors import IgcdError
from igcd.streams.build import split_by_category
from igcd.streams.protocols import StreamSpec
from igcd.streams.split import Split, count_stages, format_split, write_split


def build_by_category(
    source: str,
    data: Path | None,
    out: Path,
    *,
    spec: Mapping[str, Any],
    category_order: Path | None,
    seed: int,
    max_broken: float,
    check: bool,
    as_json: bool,
) -> None:
    """Builds, writes and shows the split of a data source that is staged by its categories."""
    order = read_category_order(category_order) if category_order else None
    sizes = spec.get("categories_per_stage") or default_stages(source, spec["protocol"])
    stream_spec = parse_spec(StreamSpec, {**spec, "categories_per_stage": sizes, "category_order": order})
    dataset = load_source(source, data)
    quarantine = Quarantine(limit=max_broken)
    if check:
        dataset = set_broken_aside(dataset, quarantine)
    split = split_by_category(dataset, stream_spec, seed)
    write_split(split, out / "split.tsv")
    if len(quarantine):
        quarantine.write(out / "quarantine.csv")
    show(split, out, quarantine, as_json)


Spec = TypeVar("Spec", bound=BaseModel)


def parse_spec(kind: type[Spec], values: Mapping[str, Any]) -> Spec:
    """A checked spec; what is wrong with it is said in one sentence."""
    try:
        return kind(**{key: value for key, value in values.items() if value is not None})
    except ValidationError as error:
        fault = error.errors()[0]
        name = "--" + str(fault["loc"][0]).replace("categories_per_stage", "stages").replace("_", "-")
        raise IgcdError(f"{name}: {fault['msg'].removeprefix('Value error, ')}, got {fault['input']!r}") from None


def default_stages(source: str, protocol: str) -> tuple[int, ...] | None:
    """The usual number of categories per stage of a source, for the protocols that have four stages."""
    return SOURCES[source].split_sizes if protocol in ("igcd-l", "igcd-u", "mi") else None


def read_category_order(path: Path) -> tuple[str, ...]:
    """The categories listed in a text file, one per line; empty lines do not count."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise IgcdError(f"{path} is not UTF-8 text; save it as UTF-8, one category per line") from None
    return tuple(line.strip() for line in lines if line.strip())


def set_broken_aside(dataset: Dataset, quarantine: Quarantine) -> Dataset:
    """The data set without the images that cannot be decoded; those are in the quarantine with their reasons."""
    with progress_bar("checking images", len(dataset)) as advance_to:
        usable_idx = inspect(dataset.images, quarantine, on_progress=advance_to)
    quarantine.check(len(dataset))
    return dataset.take(usable_idx)


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with the time left on standard error; yields a function that takes the number done so far."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda n_done: progress.update(task, completed=n_done)


def show(split: Split, out: Path, quarantine: Quarantine, as_json: bool) -> None:
    """Prints the stages in numbers."""
    counts = count_stages(split)
    path = out / "split.tsv"
    if as_json:
        record = {
            "name": split.name,
            "split": str(path),
            "sha256": hashlib.sha256(format_split(split)).hexdigest(),
            "stages": [asdict(stage) for stage in counts],
            "skipped": quarantine.counts(),
        }
        print(json.dumps(record, indent=2))
        return
    table = Table(title=f"{split.name}, seed {split.seed}", title_justify="left")
    for column in ("stage", "labeled", "unlabeled", "test", "categories", "old", "new", "absent"):
        table.add_column(column, justify="right")
    for stage in counts:
        table.add_row(*(f"{number:,}" for number in asdict(stage).values()))
    console = make_console()
    console.print(table)
    if len(quarantine):
        console.print(f"{quarantine.summary()}; see {out / 'quarantine.csv'}", markup=False)
    console.print(f"written to {path}", markup=False)
