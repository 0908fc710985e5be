"""A copy of the catalog, made whenever a stage is accepted, and how a damaged catalog is replaced by it."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from igcd.errors import IgcdError
from igcd.records import publish, sync, unfinished_name
from igcd.workspace.catalog import (
    BACKUP_FILE,
    CATALOG_FILE,
    Catalog,
    DamagedError,
    damaged,
    file_fault,
    holds_workspace,
    open_catalog,
    time_of,
)


@dataclass(frozen=True)
class Restored:
    """What a damaged catalog was replaced with."""

    made: str  # when the copy was made
    stage: int  # the last one that is accepted in it
    kept_as: Path | None  # where the damaged catalog is now; None where there was none


def write_backup(catalog: Catalog) -> Path:
    """Copies the catalog as it is now. The former copy stays until the new one is whole, checked and on disk."""
    target = catalog.folder / BACKUP_FILE
    unfinished = unfinished_name(target)
    for leftover in catalog.folder.glob(f".{BACKUP_FILE}.*"):  # of a process that was killed
        leftover.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(unfinished)) as copy:
            copy.execute("PRAGMA journal_mode = OFF")  # whatever goes wrong, this file is thrown away
            catalog.copy_to(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        if fault := file_fault(unfinished):
            raise damaged(catalog.folder, fault)
        publish(unfinished, target)
    except (OSError, sqlite3.Error) as error:
        raise IgcdError(
            f"the copy {target} of the catalog could not be written ({error}); free some space, the catalog itself is "
            "complete"
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def restore(folder: Path) -> Restored:
    """Puts the copy of the last `igcd accept` in the place of a catalog that is damaged, which is kept, or gone."""
    backup, catalog = folder / BACKUP_FILE, folder / CATALOG_FILE
    if not backup.is_file():
        raise IgcdError(f"there is no {BACKUP_FILE} in {folder}, which `igcd accept` makes; take a backup of your own")
    if fault := file_fault(backup):
        raise IgcdError(f"{backup} is damaged as well ({fault}); take a backup of your own, the photos are untouched")
    if holds_workspace(folder) and not _is_damaged(folder):
        raise IgcdError(f"{catalog} is not damaged, nothing was restored; `igcd undo` takes back decisions")
    unfinished = unfinished_name(catalog)
    try:
        shutil.copyfile(backup, unfinished)
        sync(unfinished)
        kept_as = _put_aside(catalog)
        publish(unfinished, catalog)
    finally:
        unfinished.unlink(missing_ok=True)
    with open_catalog(folder) as restored, restored.snapshot() as db:
        stage = db.execute("SELECT MAX(stage) FROM stages WHERE state = 'accepted'").fetchone()[0]
    return Restored(time_of(backup), int(stage), kept_as)


def _put_aside(catalog: Path) -> Path | None:
    """Renames a catalog and the log beside it, which must not be read into another catalog."""
    time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    aside = catalog.with_name(f"{catalog.stem}.damaged-{time}{catalog.suffix}")
    had_one = catalog.exists()
    for suffix in ("", "-wal", "-shm"):
        part = catalog.with_name(catalog.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside if had_one else None


def _is_damaged(folder: Path) -> bool:
    try:
        open_catalog(folder, read_only=True).close()
    except DamagedError:
        return True
    return False
