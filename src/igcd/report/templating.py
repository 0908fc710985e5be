"""Templates, the words of numbers, and scripts: what every page of the report is made with."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@dataclass(frozen=True)
class Script:
    """The one script of a page, and the source that a content security policy names it by: no other can run."""

    text: Markup
    source: str


def make_environment() -> Environment:
    """Templates that escape what they are given and fail on what they are not given."""
    environment = Environment(
        loader=PackageLoader("igcd.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"score": score, "share": share, "size": file_size, "duration": duration, "number": number}
    return environment


def read_script(names: Sequence[str]) -> Script:
    """Files of `static`, one after the other, in a scope of their own."""
    folder = resources.files("igcd.report") / "static"
    parts = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    text = f'(() => {{\n"use strict";\n{parts}}})();\n'
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), f"'sha256-{digest}'")  # noqa: S704 - our own files


def script_json(record: Mapping[str, Any]) -> str:
    r"""JSON to stand in an element of the page, which it cannot end.

    >>> script_json({"name": "</script>"})
    '{"name":"\\u003c/script>"}'
    """
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def score(value: float | None) -> str:
    """A percentage as tables print it.

    >>> score(71.25), score(None)
    ('71.2', '–')
    """
    return "–" if value is None else f"{value:.1f}"


def share(part: int, whole: int) -> float:
    """The part in percent of the whole; 0 of nothing.

    >>> share(1, 8), share(0, 0)
    (12.5, 0.0)
    """
    return 100 * part / whole if whole else 0.0


def number(value: int) -> str:
    """A whole number with its thousands set apart."""
    return f"{value:,}"


def file_size(n_bytes: int) -> str:
    """A size for people.

    >>> file_size(999), file_size(12_345), file_size(3_200_000_000)
    ('999 B', '12 kB', '3.2 GB')
    """
    if n_bytes < 1_000:
        return f"{n_bytes} B"
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes / 1_000:.0f} kB"


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(4.21), duration(83), duration(7_260)
    ('4.2 s', '1 min 23 s', '2 h 1 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
