"""Files that are there whole or not at all: what a run writes down."""

import json
import os
from pathlib import Path
from typing import Any

from igcd.errors import IgcdError


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file under another name first, so that it appears with all of its content or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_json(path: Path, record: Any) -> None:  # noqa: ANN401 - whatever JSON holds
    """Writes a JSON file, whole or not at all."""
    write_bytes(path, (json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Reads a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise IgcdError(f"{path} is missing; is {path.parent} the output of `igcd run`?") from None
    except (OSError, ValueError, RecursionError) as error:
        raise IgcdError(f"{path} cannot be read ({error}); run again into another folder") from None
