"""Values that programs trip over: what a mutation puts in the place of a good one."""

import random
from typing import Any

ODD_TEXTS = (
    "",
    " ",
    "\0",
    "\n",
    "\r\n",
    "\t",
    "\u2028",
    "\u200b\u200b",
    "\u202e\u0065vil",
    "\ufeff",
    "\x85",
    "é",
    "e\u0301",
    "\U0001f98b",
    "-",
    "-1",
    "0",
    "00",
    "1.0",
    "1e5",
    "1e999",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "null",
    "None",
    "true",
    "9" * 19,
    "9" * 40,
    "9" * 5000,
    "1_000",
    "٣",
    "½",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../b",
    "C:\\x",
    "~",
    "*",
    "%s%n",
    "{0}",
    "{x!r}",
    "${HOME}",
    "<script>alert(1)</script>",
    "'; DROP TABLE photos; --",
    '"',
    '"""',
    "'",
    ",",
    ";",
    "=",
    "#",
    "\\",
    "\\u0000",
    "[bold]x[/bold]",
    "A" * 300,
    "B" * 70_000,
    "x" + "\u0301" * 2000,
)
ODD_NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    1,
    2,
    127,
    255,
    256,
    -(2**31),
    2**31 - 1,
    2**31,
    2**32,
    2**53 + 1,
    2**62,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**30,
    0.5,
    -0.0,
    1e-320,
    1e-18,
    1e19,
    1e38,
    1e39,
    1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
)
DEEP = "deep nesting of 3,000 lists"
"""Stands for a value that only the text of a file can hold; the writers of JSON and YAML put the brackets there."""


def odd_text(rng: random.Random) -> str:
    """A text that somebody did not think of."""
    if rng.random() < 0.1:
        return "".join(
            chr(rng.choice((rng.randrange(32), rng.randrange(0x20, 0x250)))) for _ in range(rng.randint(1, 9))
        )
    return rng.choice(ODD_TEXTS)


def odd_value(rng: random.Random) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Any value that JSON or YAML can hold."""
    kind = rng.randrange(10)
    if kind < 4:
        return rng.choice(ODD_NUMBERS)
    if kind < 7:
        return odd_text(rng)
    return rng.choice((None, True, False, [], {}, [None], {"": 0}, [[]], DEEP, [0] * 2000))
