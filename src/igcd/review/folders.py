"""Folders of this machine by the beginning of their path: how a person chooses photos to add."""

import os
from itertools import islice
from pathlib import Path

from igcd.data.files import looks_like_image

MAX_OFFERED = 20
MAX_COUNTED = 2_000
"""Entries of a folder that are looked at."""


def complete(text: str) -> list[tuple[str, int]]:
    """Folders whose path begins with a text, and how many photos lie right in each; none where it cannot be read.

    Hidden folders are offered once the dot is typed; letters count whether large or small.
    """
    typed = os.path.expanduser(text) or f"{Path.home()}{os.sep}"  # noqa: PTH111 - keeps the slash at the end
    if not os.path.isabs(typed):  # noqa: PTH117
        return []
    parent, _, beginning = typed.rpartition(os.sep)
    folder = Path(parent or os.sep)
    try:
        names = sorted(
            entry.name
            for entry in islice(os.scandir(folder), MAX_COUNTED)
            if entry.name.lower().startswith(beginning.lower())
            and (beginning.startswith(".") or not entry.name.startswith("."))
            and entry.is_dir()
        )
    except OSError:
        return []
    return [(f"{folder / name}{os.sep}", n_photos(folder / name)) for name in names[:MAX_OFFERED]]


def n_photos(folder: Path) -> int:
    """Photos right in a folder, of its first entries."""
    try:
        with os.scandir(folder) as entries:
            return sum(looks_like_image(entry.name) for entry in islice(entries, MAX_COUNTED))
    except OSError:
        return 0
