"""`--pool` and `--middle`, of commands that look at photos."""

from typing import Annotated

import typer

from igcd.errors import IgcdError

POOLS = ("mean", "gem")

Pooling = Annotated[
    str | None,
    typer.Option(
        help="How places of a photo become one feature: mean, or gem (a generalized mean). Unset: gem for Lite0 and "
        "Lite2 from 224 px on, else mean.",
        show_default=False,
    ),
]
Middle = Annotated[
    bool | None,
    typer.Option(
        "--middle/--no-middle",
        help="See each photo twice, as a whole and its middle enlarged: finds more, takes twice as long. Unset: for "
        "Lite0 and Lite2.",
        show_default=False,
    ),
]


def chosen_look(pool: str | None, middle: bool | None) -> dict[str, str | bool]:
    """The values for `igcd.config.EncoderConfig` that are given.

    >>> chosen_look("gem", None), chosen_look(None, False)
    ({'pool': 'gem'}, {'middle': False})
    """
    if pool is not None and pool not in POOLS:
        raise IgcdError(f"--pool must be one of {', '.join(POOLS)}, got {pool!r}; choose one of them")
    given = {"pool": pool, "middle": middle}
    return {name: value for name, value in given.items() if value is not None}
