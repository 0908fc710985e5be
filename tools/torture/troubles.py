"""Part d: a full disk, a read-only one, no permission, writes that fail, and a clock that runs backwards.

Under each trouble a command ends well or with one sentence. Once the trouble is over the command is repeated, and comes
to the same end as a twin that had none.
"""

import contextlib
import ctypes
import errno
import json
import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

from tools.torture.catalog_invariants import check_whole
from tools.torture.commands import judge_command
from tools.torture.forks import start
from tools.torture.images import fingerprints
from tools.torture.judging import BrokenInvariantError, Verdict, describe, require
from tools.torture.kills import N_ALL, N_FIRST, PATIENCE, catalog_outcome, difference, run_outcome
from tools.torture.tiny_world import BACKBONE, SIZE, more_photos, photos, write_recipe

from igcd.workspace.catalog import open_catalog

COMMANDS = ("run", "init", "discover", "accept", "add", "export csv", "export folders", "predict", "status")
"""In the order of a life of a workspace."""
NOBODY = 65534
LASTING = ("fsync", "replace", "rename", "link", "mkdir")
"""Functions of `os` that make something last."""
DONE = ("is a workspace already", "is accepted already", "exists already")
Prepare = Callable[[], object]


class TroubleTrials:
    """A command and a trouble by number."""

    def __init__(self, scratch: Path, seed: int, commands: Sequence[str] = COMMANDS) -> None:
        self._scratch, self._seed, self._commands = scratch, seed, commands
        self._first, self._second = photos(scratch / "photos"), more_photos(scratch / "more")
        self._before = fingerprints(self._first)
        self._has_twins = False
        self._states: dict[str, Path] = {}  # what stands before each command of a workspace
        self._twins: dict[str, object] = {}
        self._calls: dict[str, dict[str, int]] = {}  # how often each command calls each of LASTING
        self._can_mount = _can_mount(scratch / "mounted")
        for folder in (scratch, *scratch.rglob("*")):
            folder.chmod(0o755 if folder.is_dir() else 0o644)
        scratch.parent.chmod(0o755)

    def __call__(self, number: int) -> Iterator[tuple[str, Verdict]]:
        """One command under one trouble, and again without it."""
        rng = random.Random(f"{self._seed} troubles {number}")
        command = rng.choice(self._commands)
        trouble = rng.choice(list(TROUBLES))
        place = self._scratch / "place"
        try:
            if not self._has_twins:
                self._make_twins()
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            outcome = TROUBLES[trouble](self, command, place, rng)
            require(fingerprints(self._first) == self._before, "no original was changed")
        except BrokenInvariantError as error:
            outcome = Verdict("fault", f"{command}: {error}")
        except Exception as error:
            outcome = Verdict("fault", f"{command}: {describe(error)}")
        yield trouble, outcome

    def arguments(self, command: str, place: Path) -> tuple[object, ...]:
        """The command line of a command in a place."""
        folder = place / "ws"
        encoder = ("--backbone", BACKBONE, "--weights", "random", "--size", SIZE)
        return {
            "run": ("run", place / "r.yaml", "--out", place / "out", "--resume"),
            "init": ("init", folder, "--images", self._first, "--labels-from-folders", *encoder),
            "add": ("add", folder, self._second),
            "discover": ("discover", folder),
            "accept": ("accept", folder, "--author", "ann"),
            "export csv": ("export", folder, "--out", place / "x.csv"),
            "export folders": ("export", folder, "--format", "folders", "--out", place / "x"),
            "predict": ("predict", folder, self._first, "--json"),
            "status": ("status", folder, "--json"),
        }[command]

    def lay_out(self, command: str, place: Path) -> None:
        """What stands before a command."""
        write_recipe(place / "r.yaml", cache=place / "cache", epochs=1)
        state = self._states.get(command)
        if state is not None:
            shutil.copytree(state, place / "ws")

    def outcome(self, command: str, place: Path) -> object:
        """What a command comes to."""
        if command == "run":
            return run_outcome(place / "out")
        if command == "export csv":
            return (place / "x.csv").read_text().replace(str(place), "")
        if command == "export folders":
            return sorted(path.name for path in (place / "x").rglob("*") if path.is_file())
        with open_catalog(place / "ws") as catalog:
            check_whole(catalog, (N_FIRST, N_ALL))
            return catalog_outcome(catalog)

    def suffer(self, command: str, place: Path, prepare: Prepare) -> Verdict:
        """The command in trouble: it ends well or with one sentence."""
        child = start(self.arguments(command, place), self._scratch / "trouble.log", prepare)
        if child.wait(PATIENCE) is None:
            child.kill()
            raise BrokenInvariantError(f"still at work after {PATIENCE:.0f} s")
        verdict = judge_command(child.said())
        require(verdict.outcome != "fault", verdict.words)
        return verdict

    def recover(self, command: str, place: Path) -> None:
        """The command again, without trouble, comes to the end of the twin."""
        child = start(self.arguments(command, place), self._scratch / "again.log")
        child.wait(PATIENCE)
        verdict = judge_command(child.said())
        is_done = verdict.outcome == "refused" and any(words in verdict.words for words in DONE)
        require(verdict.outcome == "accepted" or is_done, f"afterwards: {verdict.words}")
        end = self.outcome(command, place)
        require(end == self._twins[command], f"the end is that of the twin ({difference(end, self._twins[command])})")

    def _make_twins(self) -> None:
        """Every command once without trouble; what stood before it is kept."""
        self._has_twins = True
        place = self._scratch / "twin"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        write_recipe(place / "r.yaml", cache=place / "cache", epochs=1)
        counted = self._scratch / "calls.json"
        for command in (command for command in COMMANDS if command in self._commands):
            if (place / "ws").is_dir():
                kept = self._scratch / "states" / command.replace(" ", "-")
                shutil.copytree(place / "ws", kept)
                self._states[command] = kept
            counted.write_text("{}")
            child = start(self.arguments(command, place), self._scratch / "twin.log", lambda: _count(counted))
            require(child.wait(PATIENCE) == 0, f"the twin does {command}: {child.said().err[-500:]}")
            self._calls[command] = json.loads(counted.read_text())
            self._twins[command] = self.outcome(command, place)

    def full_disk(self, command: str, place: Path, rng: random.Random) -> Verdict:
        """A small file system that fills up; then there is room again."""
        if not self._can_mount:
            return _skipped("mounting needs root")
        self.lay_out(command, self._scratch / "laid")
        n_bytes = sum(path.stat().st_size for path in (self._scratch / "laid").rglob("*") if path.is_file())
        limit = n_bytes + rng.choice((0, 4, 16, 40, 100, 400, 1500, 6000)) * 1024 + 128 * 1024
        with _mounted(place, f"size={limit}"):
            shutil.copytree(self._scratch / "laid", place, dirs_exist_ok=True)
            shutil.rmtree(self._scratch / "laid")
            _rewrite(place)
            fill = place / "fill"
            with contextlib.suppress(OSError), fill.open("wb") as file:
                file.write(bytes(rng.choice((0, 64, 100, 127)) * 1024))
            verdict = self.suffer(command, place, lambda: None)
            fill.unlink()
            _mount("-o", "remount,size=400m", str(place))
            self.recover(command, place)
        return verdict

    def large_files_refused(self, command: str, place: Path, rng: random.Random) -> Verdict:
        """No file may grow beyond a limit (RLIMIT_FSIZE): writes fail in the middle of a file."""
        self.lay_out(command, place)
        limit = rng.choice((8192, 16_384, 30_000, 70_000, 100_000, 500_000, 2_000_000))
        verdict = self.suffer(command, place, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.recover(command, place)
        return verdict

    def failing_calls(self, command: str, place: Path, rng: random.Random) -> Verdict:
        """The n-th call that makes something last (fsync, rename, link, mkdir) fails with a full disk or a bad one."""
        if not self._calls[command]:  # SQLite calls the system itself
            command = rng.choice([name for name, calls in self._calls.items() if calls])
        self.lay_out(command, place)
        name, n_calls = rng.choice(sorted(self._calls[command].items()))
        code, n = rng.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT)), rng.randint(1, n_calls)
        verdict = self.suffer(command, place, lambda: _fail(name, code, n))
        self.recover(command, place)
        return verdict

    def read_only_disk(self, command: str, place: Path, rng: random.Random) -> Verdict:  # noqa: ARG002
        """A file system that can only be read; then it can be written to again."""
        if not self._can_mount:
            return _skipped("mounting needs root")
        with _mounted(place, "size=400m"):
            self.lay_out(command, place)
            _mount("-o", "remount,ro", str(place))
            verdict = self.suffer(command, place, lambda: None)
            if command in ("predict", "status"):
                require(verdict.outcome == "accepted", f"looking needs no writing: {verdict.words}")
            _mount("-o", "remount,rw", str(place))
            self.recover(command, place)
        return verdict

    def no_permission(self, command: str, place: Path, rng: random.Random) -> Verdict:
        """Somebody who may not write, or not even read, what is there; then they may."""
        self.lay_out(command, place)
        if command == "run":
            (place / "out").mkdir()
        mode = rng.choice((0o555, 0o555, 0o000))
        changed = [path for path in (place, *place.rglob("*")) if path.is_dir() or mode == 0]
        if mode == 0 and rng.random() < 0.5:
            changed = [path for path in place.rglob("*") if path.is_file()] or changed
        former = {path: path.stat().st_mode for path in changed}
        for path in changed:
            path.chmod(mode if path.is_dir() else mode & 0o444)
        try:
            verdict = self.suffer(command, place, _become_nobody)
        finally:
            for path, old in former.items():
                path.chmod(old)
        self.recover(command, place)
        return verdict

    def clock_backwards(self, command: str, place: Path, rng: random.Random) -> Verdict:
        """A clock that was years ahead when the state was made, and jumps back while the command runs."""
        self.lay_out(command, place)
        for path in (*place.rglob("*"), *self._first.rglob("*"), *self._second.rglob("*")):
            moment = rng.choice((0, 1, 4_102_444_800, 2**40, -(2**34), time.time()))
            with contextlib.suppress(OSError):  # not every file system has every year
                os.utime(path, (moment, moment))
        years = rng.choice((-30, -3, 40))
        verdict = self.suffer(command, place, lambda: _move_clock(years))
        require(verdict.outcome == "accepted", f"a wrong clock stops nothing: {verdict.words}")
        self.recover(command, place)
        return verdict


TROUBLES: dict[str, Callable[[TroubleTrials, str, Path, random.Random], Verdict]] = {
    "disk full": TroubleTrials.full_disk,
    "file size limit": TroubleTrials.large_files_refused,
    "failing calls": TroubleTrials.failing_calls,
    "read-only disk": TroubleTrials.read_only_disk,
    "no permission": TroubleTrials.no_permission,
    "clock backwards": TroubleTrials.clock_backwards,
}


def _skipped(why: str) -> Verdict:
    return Verdict("skipped", why)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def _can_mount(folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _mounted(folder, "size=1m"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextlib.contextmanager
def _mounted(folder: Path, options: str) -> Iterator[None]:
    """A file system in memory at a folder, while it is needed."""
    _mount("-t", "tmpfs", "-o", options, "torture", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def _rewrite(place: Path) -> None:
    """The recipe of a place that was laid out elsewhere."""
    write_recipe(place / "r.yaml", cache=place / "cache", epochs=1)


def _become_nobody() -> None:
    """Drops the rights of root, to whom permissions do not apply; anybody else has none to drop."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: /proc/self stays readable


def _count(file: Path) -> None:
    """Notes in a file how often each function of LASTING was called so far."""
    n_calls: dict[str, int] = {}

    def counted(name: str) -> Callable[..., Any]:
        original = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the original
            n_calls[name] = n_calls.get(name, 0) + 1
            file.write_text(json.dumps(n_calls))
            return original(*arguments, **options)

        return call

    for name in LASTING:
        setattr(os, name, counted(name))


def _fail(name: str, code: int, n: int) -> None:
    """From the n-th call on, a function of `os` raises, once in two calls."""
    original, n_calls = getattr(os, name), 0

    def failing(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the original
        nonlocal n_calls
        n_calls += 1
        if n_calls >= n and (n_calls - n) % 2 == 0:
            shown = arguments[0] if arguments and isinstance(arguments[0], str | os.PathLike) else None
            raise OSError(code, os.strerror(code), *([os.fspath(shown)] if shown is not None else []))
        return original(*arguments, **options)

    setattr(os, name, failing)


def _move_clock(years: int) -> None:
    """Another time for everything in Python that asks for it."""
    shift = timedelta(days=365 * years)
    real_time, real_ns = time.time, time.time_ns

    class Moved(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + shift

    time.time = lambda: real_time() + shift.total_seconds()
    time.time_ns = lambda: real_ns() + int(shift.total_seconds()) * 10**9
    import igcd.runner
    import igcd.workspace.catalog

    for module in (igcd.runner, igcd.workspace.catalog):
        if hasattr(module, "datetime"):
            module.datetime = Moved  # type: ignore[attr-defined]
