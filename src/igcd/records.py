"""Files that are there whole or not at all, also after a power cut: what a run writes down."""

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from igcd.errors import IgcdError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
DISK_FAILS = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE)
"""What a disk, or a share on the network, says that cannot be reached or read any more."""
_UNFINISHED = re.compile(r"\..+\.\d+")


def publish(unfinished: Path, path: Path) -> None:
    """Gives a finished file or folder its name: all of it is on the disk before, and the name is after."""
    for folder, _, names in os.walk(unfinished):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))
    if not unfinished.is_dir():
        sync(unfinished)
    unfinished.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Waits until a file, or the list of names in a folder, is on the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows opens no folder
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot sync folders
            raise OSError(error.errno, error.strerror, str(path)) from None  # fsync itself knows no name
    finally:
        os.close(handle)


def unfinished_name(path: Path) -> Path:
    """Where this process writes a file before it is whole."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def is_unfinished(path: Path) -> bool:
    """Whether a name is one of a file that a killed process did not finish.

    >>> is_unfinished(Path("run/.config.json.4711")), is_unfinished(Path("run/config.json"))
    (True, False)
    """
    return _UNFINISHED.fullmatch(path.name) is not None


def cannot_write(path: Path, error: OSError) -> IgcdError:
    """The error message for a file that cannot be written."""
    remedy = "free some space" if error.errno in DISK_FULL else "check that you may write there"
    return IgcdError(f"{path} cannot be written ({error.strerror or error}); {remedy}, or write elsewhere")


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file under another name first, so that it appears with all of its content or not at all."""
    unfinished = unfinished_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)
        publish(unfinished, path)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        with suppress(OSError):  # a parent that is a file, or whatever failed above
            unfinished.unlink(missing_ok=True)


def write_json(path: Path, record: Any) -> None:  # noqa: ANN401 - whatever JSON holds
    """Writes a JSON file, whole or not at all."""
    write_bytes(path, (json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Reads a JSON file."""
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise IgcdError(f"{path} is missing; is {path.parent} the output of `igcd run`?") from None
    except (OSError, ValueError) as error:
        raise IgcdError(f"{path} cannot be read ({error}); run again into another folder") from None


def parse_json(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """The content of a JSON text. Raises `ValueError` for any other text, also one that nests too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Around what takes in the content of a file: where it does not fit, a sentence that names the file."""
    try:
        yield
    except IgcdError as error:
        if str(path) in str(error):
            raise
        raise IgcdError(f"{path}: {error}") from None
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise IgcdError(
            f"{path} does not hold what this version of igcd writes there ({reason}); run again into another folder"
        ) from None
