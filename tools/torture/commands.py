"""The command line in this process: what it printed, how it ended, and whether that is how a command may end."""

import contextlib
import io
import sys
import traceback
from dataclasses import dataclass
from unittest import mock

from tools.torture.judging import Verdict, wrong_with_sentence


@dataclass(frozen=True)
class Said:
    """How a command ended: its exit code, its output, and what it said on standard error."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The sentence it was refused with."""
        lines = [line for line in self.err.splitlines() if line.startswith("igcd: ")]
        return lines[-1].removeprefix("igcd: ") if lines else ""


def call(*arguments: object) -> Said:
    """Runs `igcd …` in this process, through its own `main`."""
    import igcd.cli

    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", ["igcd", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            igcd.cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception:
            traceback.print_exc()
            code = 70
    return Said(code, out.getvalue(), err.getvalue())


def judge_command(said: Said) -> Verdict:
    """Ended well, or was refused in one sentence; anything else is a fault."""
    if said.code == 0:
        return Verdict("accepted")
    if said.code == 70 or "Traceback (most recent call last)" in said.err:
        return Verdict("fault", f"traceback: {_last_line(said.err)}")
    wrong = wrong_with_sentence(said.sentence)
    return Verdict("fault", f"{wrong}: {said.err[-300:]}") if wrong else Verdict("refused", said.sentence)


def _last_line(text: str) -> str:
    """Where the error arose and what it was."""
    lines = [line.strip() for line in text.strip().splitlines()]
    ours = [line for line in lines if line.startswith("File") and "/igcd/" in line]
    place = ours[-1].partition("/igcd/")[2].replace('"', "") if ours else ""
    return f"{lines[-1][:200] if lines else 'nothing was said'} at {place}"
