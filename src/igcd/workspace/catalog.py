"""The catalog of a workspace: one SQLite file, every action one transaction."""

import errno
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from igcd.errors import IgcdError, excerpt
from igcd.workspace.schema import MIGRATIONS, check_version, migrate, schema_version
from igcd.workspace.soundness import content_fault, has_plausible_header, looks_like_catalog, structural_fault

CATALOG_FILE = "catalog.sqlite"
BACKUP_FILE = "catalog.backup.sqlite"
"""The copy that is made whenever a stage is accepted."""
BUSY_SECONDS = 10.0
"""How long to wait for another process that writes."""
SYNCHRONOUS = "FULL"
"""SQLite waits for the disk at the end of every action: a decision survives a power cut, too."""


class ConflictError(IgcdError):
    """Somebody else changed the same thing meanwhile: nothing was done, look again and decide again."""


class DamagedError(IgcdError):
    """A catalog that cannot be trusted any more; the sentence says how to get the last copy back."""


def damaged(folder: Path, fault: str) -> DamagedError:
    """The sentence about a damaged catalog, with what was found and what to do."""
    backup = folder / BACKUP_FILE
    if backup.is_file():
        remedy = f"`igcd restore {folder}` brings back the copy that `igcd accept` made at {time_of(backup)}"
    else:
        remedy = "put a backup of your own in its place, or make the workspace again with `igcd init`"
    return DamagedError(f"{folder / CATALOG_FILE} is damaged ({excerpt(fault, limit=60)}); {remedy}")


def time_of(path: Path) -> str:
    """When a file was written, in UTC; unknown where its file system gives an impossible year."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError):
        return "an unknown time"


class Catalog:
    """An open catalog. Every thread that uses it gets a connection of its own.

    `snapshot` is for reading: all queries inside see one state. `transaction` is for writing: all of it is kept or
    nothing, also when the process is killed.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.folder = folder
        self.read_only = read_only
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._lock = threading.Lock()

    def __enter__(self) -> "Catalog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections of all threads; SQLite then folds its log into the file."""
        with self._lock:
            for connection in self._opened:
                connection.close()
            self._opened.clear()
        self._local = threading.local()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection to read from, one state throughout; inside a transaction of this thread it sees that one."""
        db = self._connection()
        if db.in_transaction:
            yield db
            return
        with _in_plain_words(self.folder):
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection to write to: committed at the end, rolled back on any error."""
        if self.read_only:
            raise IgcdError(f"the workspace {self.folder} is open for reading only; nothing was changed")
        db = self._connection()
        with _in_plain_words(self.folder):
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                if db.in_transaction:  # a full disk ends the transaction by itself
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def copy_to(self, copy: sqlite3.Connection) -> None:
        """Copies the whole catalog, as it is at one moment, into another database."""
        db = self._connection()
        with _in_plain_words(self.folder):
            db.backup(copy)

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            with _in_plain_words(self.folder):
                connection = _connect(self.folder / CATALOG_FILE, read_only=self.read_only)
            self._local.connection = connection
            with self._lock:
                self._opened.append(connection)
        return connection


def holds_workspace(folder: Path) -> bool:
    """Whether a folder is a workspace, as opposed to the output of a run or anything else."""
    return (folder / CATALOG_FILE).is_file()


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Makes the folder of a new workspace, which may be there when it is empty; on an error it is gone again.

    What a killed `init` left behind is an empty catalog, and taken over.
    """
    leftovers = {CATALOG_FILE, f"{CATALOG_FILE}-wal", f"{CATALOG_FILE}-shm"}
    if folder.exists() and not folder.is_dir():
        raise IgcdError(f"a workspace is a folder, {folder} is a file; give another name")
    is_workspace = holds_workspace(folder) and _is_finished(folder)
    if is_workspace or (folder.is_dir() and {path.name for path in folder.iterdir()} - leftovers):
        remedy = "use `igcd add` to add photos to it" if is_workspace else "give a new folder"
        raise IgcdError(f"{folder} {'is a workspace already' if is_workspace else 'is not empty'}; {remedy}")
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise IgcdError(
            f"the workspace {folder} cannot be made ({error.strerror}); choose a folder you may write to"
        ) from None
    try:
        yield
    except BaseException:
        for path in made:
            with suppress(OSError):  # not empty: something is in it by now
                path.rmdir()
        raise


def open_catalog(folder: Path, *, read_only: bool = False) -> Catalog:
    """The catalog of a workspace, brought to the newest version where it is older."""
    if not holds_workspace(folder):
        if (folder / BACKUP_FILE).is_file():
            raise damaged(folder, "it is missing")
        raise IgcdError(f"{folder} is not a workspace; make one with `igcd init {folder} --images FOLDER`")
    catalog = Catalog(folder, read_only=read_only)
    try:
        with catalog.snapshot() as db:
            version = _checked_version(db, folder)
        if version == 0:
            raise IgcdError(f"{folder} is an unfinished workspace; make it again with `igcd init`")
        if version < len(MIGRATIONS):
            with Catalog(folder) as writable, writable.transaction() as db:
                migrate(db)
    except BaseException:
        catalog.close()
        raise
    return catalog


def file_fault(path: Path) -> str | None:
    """What is wrong with a file that should be a finished catalog."""
    try:
        with closing(_connect(path, read_only=True)) as db:
            return structural_fault(db) or content_fault(db, check_version(db))
    except (sqlite3.DatabaseError, IgcdError, UnicodeDecodeError) as error:
        return str(error)


def _checked_version(db: sqlite3.Connection, folder: Path) -> int:
    """The version of a catalog that is whole; raises where it is damaged, newer or of another program."""
    fault = structural_fault(db)
    if fault is None and looks_like_catalog(db) and not has_plausible_header(db):
        fault = "its header is wrong"
    version = 0 if fault else check_version(db)
    if version:
        fault = content_fault(db, version)
    if fault:
        raise damaged(folder, fault)
    return version


def _is_finished(folder: Path) -> bool:
    """Whether `init` got as far as making tables."""
    with Catalog(folder, read_only=True) as catalog, catalog.snapshot() as db:
        return schema_version(db) > 0


def next_revision(db: sqlite3.Connection) -> int:
    """A number above all before it; whatever an action changes gets it as its version."""
    row = db.execute(
        "UPDATE settings SET value = CAST(value AS INTEGER) + 1 WHERE key = 'revision' RETURNING value"
    ).fetchone()
    return int(row[0])


def current_revision(db: sqlite3.Connection) -> int:
    """The number of the last action: the same number, the same catalog."""
    return int(db.execute("SELECT value FROM settings WHERE key = 'revision'").fetchone()[0])


def now() -> str:
    """The time as it is noted down: UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def table_of(
    db: sqlite3.Connection, query: str, types: str, parameters: tuple[str | int, ...] = ()
) -> npt.NDArray[np.void]:
    """The rows of a query as an array with the columns f0, f1 and so on."""
    cursor = db.cursor()
    cursor.row_factory = None  # plain tuples
    return np.fromiter(cursor.execute(query, parameters), dtype=np.dtype(types))


def id_list(ids: Iterable[int]) -> str:
    """Ids as one parameter of `IN (SELECT value FROM json_each(?))`, however many there are.

    >>> id_list([3, 1])
    '[3,1]'
    """
    return f"[{','.join(str(int(i)) for i in ids)}]"


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    if not read_only:
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        db.execute("PRAGMA journal_mode = WAL")
    else:
        address = f"file:{quote(str(path.absolute()))}"
        try:
            db = sqlite3.connect(
                f"{address}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            db.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:  # on a read-only disk SQLite can make no lock files, and needs none
            db = sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None, check_same_thread=False)
    db.row_factory = sqlite3.Row
    return db


@contextmanager
def _in_plain_words(folder: Path) -> Iterator[None]:
    """What SQLite complains about, as one sentence with a remedy."""
    try:
        yield
    except sqlite3.OperationalError as error:
        reason = str(error)
        if "locked" in reason or "busy" in reason:
            raise ConflictError(
                f"another program is writing to the workspace {folder}; wait until it is done and try again"
            ) from None
        if "readonly" in reason or "unable to open" in reason:
            raise IgcdError(
                f"the workspace {folder} cannot be written to ({reason}); move it to a disk you may write to"
            ) from None
        if "full" in reason:
            raise IgcdError(f"the disk of {folder} is full; free some space, nothing was lost") from None
        if "disk I/O" in reason:
            raise IgcdError(f"the disk of {folder} failed ({reason}); check it, and try again") from None
        _raise_if_damaged(folder, reason)
        raise
    except sqlite3.DatabaseError as error:
        _raise_if_damaged(folder, str(error))
        raise
    except UnicodeDecodeError:  # SQLite repeats a damaged name in its complaint, and Python cannot read that
        _raise_if_damaged(folder, "names that are not text")
        raise


def _raise_if_damaged(folder: Path, reason: str) -> None:
    """Tells a damaged catalog from a mistake of ours, which is to have its traceback."""
    if any(word in reason for word in ("not a database", "malformed", "Could not decode")):
        raise damaged(folder, reason) from None
    if fault := file_fault(folder / CATALOG_FILE):
        raise damaged(folder, fault) from None
