"""Raw results kept with the project: a line of JSON for each complete cell, without the paths of this machine."""

import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from igcd.comparison.folder import is_complete, read_note
from igcd.comparison.plan import Cell, Comparison
from igcd.errors import IgcdError
from igcd.records import named_in_errors, parse_json, read_json, write_bytes

FOLDERS_OF_THIS_MACHINE = ("encoder.cache=", "encoder.image_cache=")


def commit_of_code() -> str | None:
    """The commit of the checkout this code runs from, marked where files differ from it; None outside of one."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"],  # noqa: S607 - whichever git there is
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None


def cell_record(comparison: Comparison, cell: Cell, command: str) -> dict[str, Any]:
    """What is kept of a cell: its `results.json` without the variants of the scores, which `predictions.csv` gives."""
    path = cell.folder / "results.json"
    results = read_json(path)
    with named_in_errors(path):
        results.pop("variants", None)
        results["config"] = without_local_paths(results["config"])
    return {
        "recipe": Path(comparison.recipe).stem,
        "command": command,
        "variant": cell.variant.name,
        "run": run_command(comparison.recipe, cell.overrides),
        "paper": cell.variant.paper,
        "paper_row": cell.variant.paper_row,
        "commit": read_note(cell).commit,
        **results,
    }


def record_cells(path: Path, comparison: Comparison, command: str) -> int:
    """Writes a line for every complete cell, in place of an earlier line of the same variant and seed.

    Lines of other variants and seeds stay. Returns how many cells of this comparison are in the file.
    """
    records = {(record["variant"], record["seed"]): record for record in read_ledger(path)}
    label = Path(comparison.recipe).stem
    strangers = {str(record.get("recipe")) for record in records.values()} - {label}
    if strangers:
        raise IgcdError(
            f"{path} holds cells of the recipe {strangers.pop()}, not of {label}; give --record another file"
        )
    complete = [cell for cell in comparison.cells if is_complete(cell)]
    for cell in complete:
        records[cell.variant.name, cell.seed] = cell_record(comparison, cell, command)
    names = [*(variant.name for variant in comparison.variants), *(name for name, _ in records)]
    order = {name: at for at, name in reversed(list(enumerate(names)))}
    kept = sorted(records.values(), key=lambda record: (order[record["variant"]], record["seed"]))
    lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in kept]
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode())
    return len(complete)


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """The records of a file, none where there is no file."""
    if not path.is_file():
        return []
    try:
        # Only the line feed ends a line: names in a record may hold what Unicode counts as line breaks.
        records = [parse_json(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except ValueError as error:
        raise IgcdError(f"{path} is not a file of records, a line of JSON each ({error}); repair it") from None
    for line, record in enumerate(records, 1):
        known = record if isinstance(record, dict) else {}
        if not isinstance(known.get("variant"), str) or not isinstance(known.get("seed"), int):
            raise IgcdError(f"{path}, record {line} must have a variant and a seed; repair it or remove the line")
    return records


def comparison_command(recipe: str, overrides: Sequence[str], more: Sequence[str], out: Path) -> str:
    """The command line that repeats a comparison, without the folders of this machine.

    Of its own folder the name stays: comparisons with other overrides need another one.
    """
    name = out.name or Path(recipe).stem
    return shlex.join(["igcd", *more[:1], Path(recipe).name, *portable(overrides), *more[1:], "--out", f"runs/{name}"])


def run_command(recipe: str, overrides: Sequence[str]) -> str:
    """The command line that repeats a cell."""
    return shlex.join(["igcd", "run", Path(recipe).name, *portable(overrides)])


def portable(overrides: Sequence[str]) -> list[str]:
    """Overrides without the folders of this machine.

    >>> portable(["stream.data=/home/me/cifar100.npz", "encoder.cache=/tmp/c", "seed=1"])
    ['stream.data=cifar100.npz', 'seed=1']
    """
    kept = []
    for override in overrides:
        key, _, value = override.partition("=")
        if not override.startswith(FOLDERS_OF_THIS_MACHINE):
            kept.append(f"{key}={_file_name(value)}" if _may_be_path(key, value) else override)
    return kept


def without_local_paths(config: dict[str, Any]) -> dict[str, Any]:
    """A config whose files have lost their folders."""
    stream, encoder = dict(config["stream"]), dict(config["encoder"])
    for key in ("data", "split"):
        stream[key] = stream.get(key) and _file_name(stream[key])
    stream["options"] = {key: _shortened(f"stream.{key}", value) for key, value in stream.get("options", {}).items()}
    encoder |= {"cache": None, "image_cache": None}
    encoder["weights"] = _shortened("encoder.weights", encoder.get("weights"))
    return config | {"stream": stream, "encoder": encoder}


def _shortened(key: str, value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    return _file_name(value) if isinstance(value, str) and _may_be_path(key, value) else value


def _may_be_path(key: str, value: str) -> bool:
    if not key.startswith("stream.") and key != "encoder.weights":
        return False
    return "/" in value and not value.startswith("{")


def _file_name(path: str) -> str:
    return PurePath(path).name
