"""Commands as children of a process that has loaded everything: to start one takes milliseconds."""

import codecs
import contextlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from tools.torture.commands import Said

CRASHED = 70
"""Exit code of a command that ended with a traceback."""


def load_everything() -> None:
    """Imports what the commands import, so that children find it loaded."""
    import torch
    import uvicorn
    from PIL import Image

    import igcd.cli
    import igcd.cli.comparison_progress
    import igcd.cli.predict
    import igcd.cli.run
    import igcd.comparison.processes
    import igcd.encoders.backbone
    import igcd.methods.snn_density
    import igcd.review.app
    import igcd.workspace.accept
    import igcd.workspace.adapt
    import igcd.workspace.discover
    import igcd.workspace.export
    from igcd.encoders.torchvision_guard import import_timm

    torch.set_num_threads(1)
    Image.init()
    import_timm()
    for encoding in ("utf-8-sig", "utf-16", "utf-32", "latin-1", "idna"):  # a child may lose the right to read them
        codecs.lookup(encoding)
    assert uvicorn and igcd  # loaded for the children


@dataclass
class Child:
    """A command at work in a process group of its own."""

    pid: int
    log: Path
    started: float = field(default_factory=time.monotonic)
    status: int | None = None

    def poll(self) -> int | None:
        """The exit code, or the negative signal, once it has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def wait(self, seconds: float) -> int | None:
        """The exit code; None where it is still at work after so many seconds."""
        end = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < end:
            time.sleep(0.003)
        return self.status

    def kill(self, *, group: bool = True) -> bool:
        """SIGKILL, for it alone or with all it started; whether it was still at work."""
        if self.poll() is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL) if group else os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status == -signal.SIGKILL

    def said(self) -> Said:
        """What it printed and how it ended."""
        text = self.log.read_text(errors="replace")
        return Said(self.status if self.status is not None else -1, text, text)


def start(arguments: Sequence[object], log: Path, prepare: Callable[[], object] = lambda: None) -> Child:
    """Starts `igcd …` in a fork of this process; `prepare` runs there first (limits, another clock)."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")  # what an earlier command said is not what this one says
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        os.setsid()
        _become([str(argument) for argument in arguments], log, prepare)
    return Child(pid, log)


def _become(arguments: list[str], log: Path, prepare: Callable[[], object]) -> NoReturn:
    """The child: the command line and nothing else."""
    code = CRASHED
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        sys.argv = ["igcd", *arguments]
        import igcd.cli
        from igcd.comparison import processes

        prepare()
        with mock.patch.object(processes, "subprocess", _ForkingSubprocess):
            igcd.cli.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)


class _ForkingSubprocess:
    """Stands in for `subprocess` where a comparison starts its cells: they are forked, too."""

    DEVNULL = subprocess.DEVNULL
    TimeoutExpired = subprocess.TimeoutExpired

    class Popen:
        """A cell in a fork of the comparison, in its process group."""

        def __init__(self, arguments: Sequence[str], *, stderr: Any, **_: object) -> None:  # noqa: ANN401 - a file
            log = Path(stderr.name)
            pid = os.fork()
            if not pid:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                _become(list(arguments[3:]), log, lambda: None)
            self._child = Child(pid, log)
            self.returncode: int | None = None

        def poll(self) -> int | None:
            self.returncode = self._child.poll()
            return self.returncode

        def wait(self, timeout: float = 600) -> int | None:
            self.returncode = self._child.wait(timeout)
            if self.returncode is None:
                raise subprocess.TimeoutExpired("igcd", timeout)
            return self.returncode

        def terminate(self) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGTERM)

        def kill(self) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGKILL)
