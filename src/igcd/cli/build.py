"""`igcd build`: from a data source to a split file, with the stages shown as a table."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from igcd.cli.console import console as make_console
from igcd.cli.console import plain
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
    options: Sequence[str],
    spec: Mapping[str, Any],
    category_order: Path | None,
    seed: int,
    max_broken: float,
    check: bool,
    as_json: bool,
) -> None:
    """Builds, writes and shows the split of a data source that is staged by its categories.

    `options` are those of the source, written key=value.
    """
    order = read_category_order(category_order) if category_order else None
    stream_spec = parse_spec(StreamSpec, {**spec, "category_order": order})
    quarantine = Quarantine(limit=max_broken)
    dataset = load_with_options(source, data, parse_options(options))
    if stream_spec.categories_per_stage is None:
        sizes = default_stages(source, stream_spec.protocol, len(dataset.category_names))
        stream_spec = stream_spec.model_copy(update={"categories_per_stage": sizes})
    refuse_needless_held_out(stream_spec.held_out, bool(dataset.is_test.any()))
    if check:
        dataset = set_broken_aside(dataset, quarantine, out)
    split = split_by_category(dataset, stream_spec, seed)
    write_split(split, out / "split.tsv")
    if len(quarantine):
        quarantine.write(out / "quarantine.csv")
    remedy = "set a share aside with --held-out 0.2" if stream_spec.held_out is None else "raise --held-out"
    show(split, out, quarantine, warn_of_no_test(split, remedy), as_json)


Spec = TypeVar("Spec", bound=BaseModel)


def parse_spec(kind: type[Spec], values: Mapping[str, Any]) -> Spec:
    """A checked spec; what is wrong with it is said in one sentence."""
    try:
        return kind(**{key: value for key, value in values.items() if value is not None})
    except ValidationError as error:
        fault = error.errors()[0]
        name = "--" + str(fault["loc"][0]).replace("categories_per_stage", "stages").replace("_", "-")
        got = "" if fault["type"] == "value_error" else f", got {fault['input']!r}"  # our own sentences say it
        raise IgcdError(f"{name}: {fault['msg'].removeprefix('Value error, ')}{got}") from None


def parse_options(options: Sequence[str]) -> dict[str, str]:
    """The options of a source from their text.

    >>> parse_options(["wnids=my list.txt", "delimiter=="])
    {'wnids': 'my list.txt', 'delimiter': '='}
    """
    values: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not key or not equals:
            raise IgcdError(f"--option is written key=value, got {option!r}; docs/data.md lists those of each source")
        if key in values:
            raise IgcdError(f"--option {key} was given {values[key]!r} and {value!r}; keep one")
        values[key] = value
    return values


def load_with_options(source: str, data: Path | None, options: Mapping[str, str]) -> Dataset:
    """The data set of a source; a value that its reader cannot use, like a delimiter of two letters, is an error."""
    try:
        return load_source(source, data, **options)
    except (TypeError, ValueError) as error:
        if not options:
            raise
        flags = " ".join(f"--option {key}={value}" for key, value in options.items())
        raise IgcdError(f"the source {source} cannot be read with {flags} ({error}); correct the option") from error


def default_stages(source: str, protocol: str, n_categories: int) -> tuple[int, ...] | None:
    """The usual number of categories per stage of a source, for the protocols that have four stages.

    None where the data has another number of categories than usual, like CIFAR-100 with its coarse labels.
    """
    sizes = SOURCES[source].split_sizes if protocol in ("igcd-l", "igcd-u", "mi") else None
    return sizes if sizes and sum(sizes) == n_categories else None


def refuse_needless_held_out(held_out: float | None, has_test_images: bool) -> None:
    """Raises when a share is to be set aside from data that has test images."""
    if held_out is not None and has_test_images:
        raise IgcdError(f"the data has test images of its own, got --held-out {held_out:g}; leave --held-out out")


def warn_of_no_test(split: Split, remedy: str) -> list[str]:
    """One sentence where no stage has a test image, else none."""
    if any(stage.test.image_ids for stage in split.stages):
        return []
    return [f"there are no test images, so a run on this split cannot be scored on any; {remedy}"]


def read_category_order(path: Path) -> tuple[str, ...]:
    """The categories listed in a text file, one per line; empty lines do not count."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise IgcdError(f"{path} is not UTF-8 text; save it as UTF-8, one category per line") from None
    return tuple(line.strip() for line in lines if line.strip())


def set_broken_aside(dataset: Dataset, quarantine: Quarantine, out: Path) -> Dataset:
    """The data set without the images that cannot be decoded; those are in the quarantine with their reasons.

    Where there are too many, their list is written to `out` before the error is raised.
    """
    with progress_bar("checking images", len(dataset)) as advance_to:
        usable_idx = inspect(dataset.images, quarantine, on_progress=advance_to)
    try:
        quarantine.check(len(dataset))
    except IgcdError as error:
        path = out / "quarantine.csv"
        quarantine.write(path)
        raise IgcdError(str(error), details=[*error.details, f"all of them are listed in {path}"]) from None
    return dataset.take(usable_idx)


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with the time left on standard error; yields a function that takes the number done so far."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda n_done: progress.update(task, completed=n_done)


def show(split: Split, out: Path, quarantine: Quarantine, warnings: Sequence[str], as_json: bool) -> None:
    """Prints the stages in numbers, and what is wrong with them."""
    counts = count_stages(split)
    path = out / "split.tsv"
    if as_json:
        record = {
            "name": split.name,
            "split": str(path),
            "sha256": hashlib.sha256(format_split(split)).hexdigest(),
            "stages": [asdict(stage) for stage in counts],
            "skipped": quarantine.counts(),
            "warnings": list(warnings),
        }
        print(json.dumps(record, indent=2))
        return
    table = Table(title=plain(f"{split.name}, seed {split.seed}"), title_justify="left")
    for column in ("stage", "labeled", "unlabeled", "test", "categories", "old", "new", "absent"):
        table.add_column(column, justify="right")
    for stage in counts:
        table.add_row(*(f"{number:,}" for number in asdict(stage).values()))
    console = make_console()
    console.print(table)
    if len(quarantine):
        console.print(f"{quarantine.summary()}; see {out / 'quarantine.csv'}", markup=False)
    for warning in warnings:
        console.print(f"warning: {warning}", markup=False, soft_wrap=True)
    console.print(f"written to {path}", markup=False)
