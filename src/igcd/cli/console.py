"""Where tables go."""

from rich.console import Console

PIPE_WIDTH = 200
"""Columns of text where no terminal says how wide it is, so that no number is cut off."""


class _PatientConsole(Console):
    """Leaves it to `main` what happens when the reader of our output, `head` for one, has seen enough."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output, as wide as the terminal or wide enough for any table."""
    screen = _PatientConsole(highlight=False)
    return screen if screen.is_terminal else _PatientConsole(highlight=False, width=PIPE_WIDTH)
