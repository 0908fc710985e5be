"""`--pool`, of commands that look at photos."""

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


def chosen_pool(pool: str | None) -> dict[str, str]:
    """The value for `igcd.config.EncoderConfig`, if one is given.

    >>> chosen_pool("gem"), chosen_pool(None)
    ({'pool': 'gem'}, {})
    """
    if pool is not None and pool not in POOLS:
        raise IgcdError(f"--pool must be one of {', '.join(POOLS)}, got {pool!r}; choose one of them")
    return {} if pool is None else {"pool": pool}
