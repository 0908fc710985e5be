"""Work that takes longer than an answer may: one piece at a time, with progress, and stopped on request."""

import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from igcd.errors import IgcdError
from igcd.workspace.catalog import ConflictError


class CancelledError(Exception):
    """Somebody asked to stop."""


@dataclass(frozen=True)
class Job:
    """A piece of work as the page shows it."""

    id: int
    kind: str  # add, discover, accept or export
    state: str = "running"  # then done, failed or cancelled
    what: str = ""  # what it is doing
    n_done: int = 0
    n_all: int = 0
    seconds_left: float | None = None
    sentence: str = ""  # what came out, or why it failed
    is_cancelling: bool = False


class Reporter:
    """What a piece of work tells; each call is a moment at which it can be stopped."""

    def __init__(self, jobs: "Jobs") -> None:
        self._jobs = jobs
        self._started: dict[int, float] = {}

    def working(self, what: str) -> None:
        """What is being done, where nobody can tell how long it takes."""
        self._jobs.update(what=what, n_done=0, n_all=0, seconds_left=None)

    def progress(self, n_done: int, n_all: int, _n_elsewhere: int = 0) -> None:
        """How far it is."""
        now = time.monotonic()
        first = self._started.setdefault(n_all, now)
        left = (now - first) / n_done * (n_all - n_done) if n_done and now > first else None
        self._jobs.update(n_done=n_done, n_all=n_all, seconds_left=left)


class Jobs:
    """Runs one piece of work at a time in a thread of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="job")
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._stop = threading.Event()

    @property
    def job(self) -> Job | None:
        """The running piece of work, or the last one."""
        with self._lock:
            return self._job

    def as_json(self) -> dict[str, Any] | None:
        """The same for the page."""
        job = self.job
        return None if job is None else asdict(job)

    def start(self, kind: str, work: Callable[[Reporter], str]) -> Job:
        """Begins a piece of work, which returns a sentence; raises while another one runs."""
        with self._lock:
            if self._job is not None and self._job.state == "running":
                raise ConflictError("another job is running; wait until it is done, or cancel it")
            self._job = Job(1 if self._job is None else self._job.id + 1, kind)
            self._stop.clear()
            started = self._job
        self._pool.submit(self._run, work)
        return started

    def cancel(self) -> None:
        """Stops what runs at the next moment it can be stopped at; nothing half done is kept."""
        with self._lock:
            if self._job is not None and self._job.state == "running":
                self._stop.set()
                self._job = replace(self._job, is_cancelling=True)

    def close(self) -> None:
        """Stops what runs, and waits for it."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def update(self, **changes: object) -> None:
        """Notes progress down; raises `CancelledError` where somebody asked to stop."""
        if self._stop.is_set():
            raise CancelledError
        with self._lock:
            if self._job is not None:
                self._job = replace(self._job, **changes)  # type: ignore[arg-type]

    def _run(self, work: Callable[[Reporter], str]) -> None:
        try:
            end = {"state": "done", "sentence": work(Reporter(self))}
        except CancelledError:
            end = {"state": "cancelled", "sentence": "cancelled; nothing was decided, and what was computed is kept"}
        except IgcdError as error:
            end = {"state": "failed", "sentence": str(error)}
        except Exception as error:
            traceback.print_exc()
            end = {"state": "failed", "sentence": f"failed with {type(error).__name__}; the terminal says more"}
        with self._lock:
            if self._job is not None:
                self._job = replace(self._job, is_cancelling=False, seconds_left=None, **end)  # type: ignore[arg-type]
