"""Where tables go, and what stands beside a bar."""

from rich.console import Console
from rich.markup import escape
from rich.progress import ProgressColumn, Task
from rich.text import Text

from igcd.errors import excerpt

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


def plain(text: str) -> str:
    r"""A name or a path for a table: no markup, and nothing that a terminal would act on.

    >>> plain("[/][red]\x1b")
    '\\[/]\\[red]\\x1b'
    """
    return escape(excerpt(text))


class Speed(ProgressColumn):
    """How many are done per second, as soon as that can be told: "58.3/s"."""

    def render(self, task: Task) -> Text:
        """The speed of the last half minute, or of all of it at the end."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f}/s", style="progress.data.speed")


class Waiting:
    """Says that another process computes the views that are needed: once, each time this begins."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_waiting = False

    def tell(self, n_elsewhere: int) -> None:
        """The number of images whose views another process computes; 0 when there is nothing to wait for."""
        if n_elsewhere and not self._is_waiting:
            sentence = f"waiting for another process, which computes views of {n_elsewhere:,} images"
            self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)
        self._is_waiting = n_elsewhere > 0
