"""Many small trials in forked children: one that hangs, fills the memory or crashes is one fault, no more."""

import json
import mmap
import os
import resource
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tools.torture.judging import TookTooLongError, Verdict

BATCH = 250
SECONDS_PER_TRIAL = 60.0
MEMORY = 4 << 30
"""Bytes a child may take beyond what it starts with."""


@dataclass(frozen=True)
class Trial:
    """What a trial led to. `case` says what was tried; a verdict is per input, of which a trial may have several."""

    number: int
    case: str
    verdict: Verdict


def run_batch(
    first: int,
    n: int,
    trial: Callable[[int], Iterator[tuple[str, Verdict]]],
    *,
    seconds: float = SECONDS_PER_TRIAL,
) -> tuple[list[Trial], int]:
    """Runs trials `first` to `first + n - 1` in a child; the outcomes, and the number to go on with.

    A trial may take so many seconds. One that ends its process is a fault, and the next batch begins behind it.
    """
    at = mmap.mmap(-1, 8)  # the number at work, seen by both
    at[:] = struct.pack("<q", first)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _work(first, n, trial, at, writing, seconds)
    os.close(writing)
    done, is_late = _outcomes(reading, child, at, seconds)
    _, status = os.waitpid(child, 0)
    number = struct.unpack("<q", at[:])[0]
    if status == 0:
        return done, first + n
    code = os.waitstatus_to_exitcode(status)
    words = "still at work after its time" if is_late else f"the process ended with code {code}"
    done = [one for one in done if one.number < number]
    return [*done, Trial(number, "process", Verdict("fault", words))], number + 1


def _work(
    first: int,
    n: int,
    trial: Callable[[int], Iterator[tuple[str, Verdict]]],
    at: mmap.mmap,
    writing: int,
    seconds: float,
) -> NoReturn:
    """The child: tries one number after the other and writes a line for each outcome."""
    code = 1
    try:
        _limit_memory()
        signal.signal(signal.SIGALRM, _stop)
        with os.fdopen(writing, "w") as out:
            for number in range(first, first + n):
                at[:] = struct.pack("<q", number)
                signal.setitimer(signal.ITIMER_REAL, seconds)
                for case, verdict in trial(number):
                    out.write(json.dumps([number, case, verdict.outcome, verdict.words]) + "\n")
                signal.setitimer(signal.ITIMER_REAL, 0)
                out.flush()
        code = 0
    except BaseException:  # the child must not go on with its parent's work
        traceback.print_exc()
    finally:
        os._exit(code)


def _outcomes(reading: int, child: int, at: mmap.mmap, seconds: float) -> tuple[list[Trial], bool]:
    """What a child writes until it ends; one that stays at a number for too long is killed."""
    os.set_blocking(reading, False)
    text, number, since = b"", -1, time.monotonic()
    is_late = False
    while True:
        try:
            block = os.read(reading, 1 << 16)
            if not block:
                break
            text += block
        except BlockingIOError:
            time.sleep(0.01)
        now = struct.unpack("<q", at[:])[0]
        if now != number:
            number, since = now, time.monotonic()
        elif time.monotonic() - since > 1.5 * seconds and not is_late:
            is_late = True
            os.kill(child, signal.SIGKILL)
    os.close(reading)
    lines = text.decode().split("\n")[:-1]
    return [_trial(*json.loads(line)) for line in lines], is_late


def _trial(number: int, case: str, outcome: Any, words: str) -> Trial:  # noqa: ANN401 - an outcome
    return Trial(number, case, Verdict(outcome, words))


def _limit_memory() -> None:
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, resource.RLIM_INFINITY))


def _stop(*_: object) -> None:
    raise TookTooLongError
