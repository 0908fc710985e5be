"""Half-precision arrays by key, in shards: on disk (memory-mapped, checked, bounded) or in memory.

A shard is a folder of plain NumPy files, written under another name and renamed when complete:

    keys.npy    (n,) 16-byte digests
    rows.npy    (n, ...) float16
    shard.json  checksum of both

The checksum is verified when a process first uses a shard. A shard that is truncated, altered or incomplete is
removed, and its rows count as missing.

Who computes rows claims their keys first, in an unfinished folder with a lock that the system frees when the process
dies. Others leave these rows alone and compute what nobody has claimed.
"""

import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from igcd.array_files import DamagedArrayError, read_npy
from igcd.encoders.row_index import KEY_TYPE, Index, Keys
from igcd.errors import IgcdError
from igcd.records import DISK_FULL, cannot_write, publish
from igcd.types import BoolArray, IntArray

log = logging.getLogger(__name__)

Rows = npt.NDArray[np.float16]

_SHARD = "shard-"
_UNFINISHED = "unfinished-"
_LOCK = "lock"
_CLAIM = "claim.npy"
_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True)
class Location:
    """Where rows are: `shard` is a position in `shards`, or -1 for a row that is not stored. Shaped as the keys."""

    shards: list[Rows]
    shard: IntArray
    row: IntArray

    @property
    def is_missing(self) -> BoolArray:
        """True where a key is not stored."""
        return self.shard < 0


@dataclass(frozen=True)
class Claim:
    """Which of some images this process is to compute: none where others compute all that is missing."""

    is_missing: BoolArray  # (n, columns) rows that are not stored
    idx: IntArray  # positions of images


class RowStore(Protocol):
    """What the cache needs of a store."""

    def claim(self, keys: Keys, limit: int) -> AbstractContextManager[Claim]:
        """While held, no other process claims these rows: those of at most `limit` images. (n, columns)."""
        ...

    def find(self, keys: Keys) -> Location:
        """Where these rows are, verified."""
        ...

    def add(self, keys: Keys, rows: Rows) -> None:
        """Store rows under their keys, all or none."""
        ...


class MemoryStore:
    """Rows in memory, for tests and runs so small that files are not worth it."""

    def __init__(self) -> None:
        self._index = Index()
        self._shards: list[Rows] = []

    @contextmanager
    def claim(self, keys: Keys, limit: int) -> Iterator[Claim]:
        """All that is missing: memory is not shared."""
        is_missing = self.find(keys).is_missing
        yield Claim(is_missing, np.flatnonzero(is_missing.any(axis=1))[:limit])

    def find(self, keys: Keys) -> Location:  # noqa: D102
        shard, row = self._index.find(keys)
        return Location(list(self._shards), shard, row)

    def add(self, keys: Keys, rows: Rows) -> None:  # noqa: D102
        self._index.add(len(self._shards), keys)
        self._shards.append(rows)


class Library:
    """Stores below one folder that together keep to `max_bytes`: the least recently used shards go first.

    A shard that another running process still maps keeps working there; the system frees its space when that process
    lets go of it.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self.opened: dict[Path, Rows] = {}  # verified and mapped by this process
        _make_folder(folder)

    def touch(self, shard: Path) -> None:
        """Note that a shard is in use now."""
        now = time.time_ns()  # finer than the clock that file systems use by themselves
        try:
            os.utime(shard / "shard.json", ns=(now, now))
        except OSError:  # removed by another process, or a read-only folder: a hint is lost, nothing else
            log.debug("could not note the use of %s", shard)

    def n_bytes(self) -> int:
        """The size of all shards."""
        return sum(size for _, size, _ in self._shards())

    def remove_beyond_bound(self, keep: set[Path]) -> None:
        """Remove least recently used shards until the rest fits, but none of `keep`."""
        with FileLock(self.folder / "lock"):
            shards = sorted(self._shards())
            excess = sum(size for _, size, _ in shards) - self.max_bytes
            for _, size, shard in shards:
                if excess <= 0:
                    break
                if shard not in keep:
                    _remove_shard(shard)
                    self.opened.pop(shard, None)
                    excess -= size

    def _shards(self) -> Iterator[tuple[int, int, Path]]:
        """(time of last use, size, folder) of every shard."""
        for shard in self.folder.glob(f"*/{_SHARD}*"):
            try:
                size = sum(file.stat().st_size for file in shard.iterdir())
                yield (shard / "shard.json").stat().st_mtime_ns, size, shard
            except OSError:  # just removed by another process
                continue


class DiskStore:
    """Rows in the shards of one folder of a library. Shards that this object found or wrote are not removed by it."""

    def __init__(self, library: Library, name: str) -> None:
        self._folder = library.folder / name
        self._library = library
        self._shards: list[Path] = []  # numbered for the index; those removed meanwhile keep their number
        self._present: set[Path] = set()
        self._index = Index()
        self._in_use: set[Path] = set()
        _make_folder(self._folder)

    @contextmanager
    def claim(self, keys: Keys, limit: int) -> Iterator[Claim]:
        """While held, no other process claims these rows. The system frees the claim of a process that dies."""
        self.find(keys)  # verifies what is there, which takes its time, while nobody waits
        with ExitStack() as held:
            with self._complaints(), FileLock(self._folder / "lock"):
                # Claims first: one that is gone by now has its rows stored, and those are found after it.
                is_elsewhere = np.isin(keys, self._claimed_keys()).any(axis=1)
                is_missing = self.find(keys).is_missing
                claim = Claim(is_missing, np.flatnonzero(is_missing.any(axis=1) & ~is_elsewhere)[:limit])
                if len(claim.idx):
                    folder = held.enter_context(self._unfinished())
                    np.save(folder / _CLAIM, keys[claim.idx][is_missing[claim.idx]])
            yield claim

    def _claimed_keys(self) -> Keys:
        """What others are computing now. What is left of those that were killed is removed."""
        claimed = [np.empty(0, dtype=KEY_TYPE)]
        for folder in self._folder.glob(f"{_UNFINISHED}*"):
            try:
                with _held_lock(folder / _LOCK, os.O_RDWR):
                    shutil.rmtree(folder, ignore_errors=True)
            except BlockingIOError:  # its process lives
                with suppress(OSError, DamagedArrayError):  # it writes a shard, or has just finished
                    claimed.append(read_npy(folder / _CLAIM).astype(KEY_TYPE))
            except FileNotFoundError:  # a shard by now, or left before it had a lock
                shutil.rmtree(folder, ignore_errors=True)
        return np.concatenate(claimed)

    @contextmanager
    def _unfinished(self) -> Iterator[Path]:
        """A folder that is this process's as long as it lives. Made while the lock of the store is held."""
        folder = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._folder))
        try:
            with _held_lock(folder / _LOCK, os.O_RDWR | os.O_CREAT):
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        """A disk that is full, or may not be written to, is one sentence."""
        try:
            yield
        except OSError as error:
            if error.errno in DISK_FULL:
                raise IgcdError(
                    f"no space left for the trunk cache in {self._library.folder}; free some, choose another folder, "
                    "or use fewer views"
                ) from None
            raise cannot_write(self._library.folder, error) from None

    def find(self, keys: Keys) -> Location:
        """Where these rows are. Shards they lie in are verified, once per process; bad ones are removed."""
        self._refresh()
        while True:
            shard, row = self._index.find(keys)
            used = np.unique(shard[shard >= 0])
            bad = [self._shards[number] for number in used if not self._is_usable(self._shards[number])]
            if not bad:
                break
            for path in bad:
                log.warning("cached shard %s is damaged or gone; its images are computed again", path)
                _remove_shard(path)
            self._forget(set(bad))
        for number in used:
            self._in_use.add(self._shards[number])
            self._library.touch(self._shards[number])
        return Location([self._library.opened[self._shards[number]] for number in used], _renumber(shard, used), row)

    def add(self, keys: Keys, rows: Rows) -> None:
        """Write one shard, then let the library remove the least recently used ones beyond its bound."""
        shard = self._folder / (_SHARD + uuid.uuid4().hex)
        with self._complaints(), ExitStack() as held:
            with FileLock(self._folder / "lock"):
                partial = held.enter_context(self._unfinished())
            np.save(partial / "keys.npy", np.ascontiguousarray(keys))
            np.save(partial / "rows.npy", np.ascontiguousarray(rows))
            (partial / "shard.json").write_text(json.dumps({"checksum": _checksum(partial)}))
            publish(partial, shard)
            (shard / _LOCK).unlink()
        self._library.opened[shard] = _read_rows(shard)
        self._library.touch(shard)
        self._in_use.add(shard)
        self._include(shard, keys)
        self._library.remove_beyond_bound(keep=self._in_use)

    def _refresh(self) -> None:
        """Notice shards that other processes added or removed."""
        present = {Path(entry.path) for entry in os.scandir(self._folder) if entry.name.startswith(_SHARD)}
        self._forget(self._present - present)
        for path in sorted(present - self._present):
            keys = _read_keys(path / "keys.npy")
            if keys is None:
                log.warning("cached shard %s is damaged; its images are computed again", path)
                _remove_shard(path)
            else:
                self._include(path, keys)

    def _include(self, path: Path, keys: Keys) -> None:
        self._index.add(len(self._shards), keys)
        self._shards.append(path)
        self._present.add(path)

    def _forget(self, paths: set[Path]) -> None:
        if paths:
            self._index.remove(np.array([number for number, path in enumerate(self._shards) if path in paths]))
        for path in paths:
            self._present.discard(path)
            self._in_use.discard(path)
            self._library.opened.pop(path, None)

    def _is_usable(self, shard: Path) -> bool:
        """Map a shard after its checksum was verified; False if it is not as it was written."""
        if shard in self._library.opened:
            return True
        try:
            noted = json.loads((shard / "shard.json").read_text())
            if noted != {"checksum": _checksum(shard)}:
                return False
            self._library.opened[shard] = _read_rows(shard)
        except (OSError, ValueError, RecursionError):  # a damaged array is a ValueError
            return False
        return True


def _renumber(shard: IntArray, used: IntArray) -> IntArray:
    """Positions in `used` instead of shard numbers; -1 stays."""
    return np.where(shard < 0, -1, np.searchsorted(used, shard))


def _checksum(shard: Path) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for name in ("keys.npy", "rows.npy"):
        with (shard / name).open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                hasher.update(chunk)
    return hasher.hexdigest()


def _read_keys(path: Path) -> Keys | None:
    """The keys of a shard; None where the file is damaged, as far as its header and its length tell."""
    try:
        keys = read_npy(path, mapped=True)
        is_whole = path.stat().st_size == getattr(keys, "offset", 0) + keys.nbytes
    except (OSError, DamagedArrayError):
        return None
    is_ours = keys.dtype == KEY_TYPE and keys.ndim == 1 and len(keys) > 0  # a shard without rows is never written
    return np.array(keys) if is_whole and is_ours else None


def _read_rows(shard: Path) -> Rows:
    return read_npy(shard / "rows.npy", mapped=True)  # type: ignore[return-value]  # the checksum says they are halves


@contextmanager
def _held_lock(path: Path, flags: int) -> Iterator[None]:
    """The lock of a file. Raises `BlockingIOError` where another process, or another part of this one, has it."""
    handle = os.open(path, flags)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _remove_shard(shard: Path) -> None:
    """Out of sight in one step, then deleted."""
    discarded = shard.with_name(_UNFINISHED + uuid.uuid4().hex)
    try:
        shard.rename(discarded)
    except FileNotFoundError:  # another process was faster
        return
    shutil.rmtree(discarded, ignore_errors=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IgcdError(
            f"the cache folder {folder} cannot be made ({error.strerror}); choose one you can write to"
        ) from None
