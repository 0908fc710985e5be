"""Where tables go."""

from rich.console import Console

PIPE_WIDTH = 200
"""Columns of text where no terminal says how wide it is, so that no number is cut off."""


def console() -> Console:
    """Standard output, as wide as the terminal or wide enough for any table."""
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=PIPE_WIDTH)
