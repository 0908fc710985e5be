"""The folder of a comparison: whose it is, what it holds already, and that one process at a time works on it.

DIR/comparison.json        the recipe with its overrides
DIR/cells/VARIANT-SEED/    the folder of a run, as `igcd run` leaves it
DIR/logs/VARIANT-SEED.log  what the run said on standard error; .json: how long it took, and by which commit
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from igcd.comparison.plan import Cell, Comparison
from igcd.config import parse_recipe
from igcd.errors import IgcdError
from igcd.records import is_unfinished, named_in_errors, read_json, write_json
from igcd.run_folder import stored_config


@dataclass(frozen=True)
class Note:
    """What only the process that ran a cell knows."""

    wall_seconds: float | None = None
    commit: str | None = None


@contextmanager
def at_work(out: Path) -> Iterator[int]:
    """Holds the folder for this process. Gives the handle of the lock: children that have it hold it, too.

    So a second comparison waits for the cells of one that was killed, which would otherwise write into the same folder.
    """
    out.mkdir(parents=True, exist_ok=True)
    others = [entry for entry in out.iterdir() if entry.name != ".lock" and not is_unfinished(entry)]
    if others and not (out / "comparison.json").is_file():
        raise IgcdError(f"{out} is not empty and not the output of a comparison; give --out a new folder")
    handle = os.open(out / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise IgcdError(
                f"another comparison is at work in {out}, or a cell of one that was killed; wait for it or end it"
            ) from None
        yield handle
    finally:
        os.close(handle)


def claim(out: Path, comparison: Comparison) -> None:
    """Refuses the folder of another comparison, or one with a cell of other settings; marks it as this one's."""
    path = out / "comparison.json"
    base = _settings(comparison.base.model_dump(mode="json"), str(path)) | {"seed": None}
    if path.is_file():
        with named_in_errors(path):
            stored = read_json(path)["base"]
        if _settings(stored, str(path)) | {"seed": None} != base:
            raise IgcdError(f"{out} holds a comparison with other settings (see {path}); give --out a new folder")
    for cell in comparison.distinct_cells:
        _check_cell(cell)
    if not path.is_file():
        write_json(path, {"recipe": comparison.recipe, "overrides": comparison.overrides, "base": base | {"seed": 0}})


def _check_cell(cell: Cell) -> None:
    path = cell.folder / "config.json"
    stored = stored_config(cell.folder)
    if stored is not None and _settings(stored, str(path)) != _settings(cell.config, str(path)):
        raise IgcdError(
            f"{cell.folder} holds a run with other settings (see {path}); remove it, or give --out a new folder"
        )


def _settings(config: dict[str, Any], source: str) -> dict[str, Any]:
    """A config as this version writes it: what an older one did not know has its default. Without other methods."""
    settings = parse_recipe(config, source).model_dump(mode="json")
    return {key: value for key, value in settings.items() if key != "others"}


def is_complete(cell: Cell) -> bool:
    """Whether a cell's run has come to its end."""
    return (cell.folder / "results.json").is_file()


def log_path(cell: Cell) -> Path:
    """What the cell's run said on standard error."""
    return cell.folder.parent.parent / "logs" / f"{cell.name}.log"


def read_note(cell: Cell) -> Note:
    """What was noted of a cell; nothing where it was run by `igcd run`."""
    path = log_path(cell).with_suffix(".json")
    if not path.is_file():
        return Note()
    with named_in_errors(path):
        record = read_json(path)
        seconds, commit = record.get("wall_seconds"), record.get("commit")
        return Note(None if seconds is None else float(seconds), None if commit is None else str(commit))


def write_note(cell: Cell, note: Note) -> None:
    """Notes how a cell was run."""
    write_json(log_path(cell).with_suffix(".json"), {"wall_seconds": note.wall_seconds, "commit": note.commit})
