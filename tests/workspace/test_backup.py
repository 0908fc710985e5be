"""A catalog with flipped bits is noticed, and the copy of the last acceptance is brought back."""

import random
import shutil
import sqlite3

import pytest
from workspace.sample_catalog import sample_workspace

from igcd.errors import IgcdError
from igcd.workspace import decisions, queries
from igcd.workspace.accept import accept_stage
from igcd.workspace.backup import restore, write_backup
from igcd.workspace.catalog import BACKUP_FILE, CATALOG_FILE, DamagedError, file_fault, open_catalog, time_of
from igcd.workspace.schema import MIGRATIONS

OWL, HARE = 1, 2


@pytest.fixture
def workspace(tmp_path):
    """A workspace whose first stage was accepted with a hare, and where more was decided since."""
    sample_workspace(tmp_path, known={"owl": 3}, novel={"hare": 4})
    with open_catalog(tmp_path / "ws") as catalog:
        with catalog.transaction() as db:
            db.execute("UPDATE stages SET encoder = 'none'")
        decisions.name(catalog, HARE, "hare", author="ann")
        accept_stage(catalog, author="ann")
        decisions.name(catalog, HARE, "mountain hare", author="ann")
    return tmp_path / "ws"


def damage(workspace):
    """All pages but the first."""
    with (workspace / CATALOG_FILE).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * ((workspace / CATALOG_FILE).stat().st_size - 4096))


def names(folder):
    with open_catalog(folder) as catalog:
        return [category.name for category in queries.categories(catalog)]


def test_accepting_makes_a_copy_of_one_file_that_is_whole(workspace):
    assert sorted(path.name for path in workspace.iterdir()) == [BACKUP_FILE, CATALOG_FILE]
    assert file_fault(workspace / BACKUP_FILE) is None
    assert sorted(path.name for path in workspace.iterdir()) == [BACKUP_FILE, CATALOG_FILE]


def test_a_damaged_catalog_is_refused_in_a_sentence_that_says_how_to_restore_it(workspace):
    damage(workspace)
    for read_only in (False, True):
        with pytest.raises(DamagedError, match=r"is damaged \(.*\); `igcd restore .*ws` brings back the copy") as said:
            open_catalog(workspace, read_only=read_only)
        assert len(str(said.value)) < 300 and str(said.value).isprintable()
    (workspace / BACKUP_FILE).unlink()
    with pytest.raises(DamagedError, match="put a backup of your own in its place"):
        open_catalog(workspace)


def test_restoring_brings_back_the_copy_and_keeps_the_damaged_catalog(workspace):
    with open_catalog(workspace) as catalog:
        catalog._connection().execute("PRAGMA wal_checkpoint")
        decisions.name(catalog, OWL, "eagle owl", author="ann")  # stays in the log beside the catalog
        shutil.copy(workspace / f"{CATALOG_FILE}-wal", workspace / "log")
    (workspace / "log").replace(workspace / f"{CATALOG_FILE}-wal")
    damage(workspace)
    content = (workspace / CATALOG_FILE).read_bytes()
    restored = restore(workspace)
    assert restored.stage == 0 and restored.kept_as.read_bytes() == content
    assert names(workspace) == ["owl", "hare"]
    assert restored.kept_as.with_name(f"{restored.kept_as.name}-wal").is_file()  # not read into the restored catalog
    with open_catalog(workspace) as catalog:
        decisions.name(catalog, HARE, "brown hare", author="ann")
    assert names(workspace) == ["owl", "brown hare"]


def test_a_copy_of_an_impossible_year_is_restored(workspace, monkeypatch):
    damage(workspace)
    monkeypatch.setattr("igcd.workspace.catalog.time_of", lambda path: time_of(Distant(path)))
    with pytest.raises(DamagedError, match="made at an unknown time"):
        open_catalog(workspace)
    monkeypatch.setattr("igcd.workspace.backup.time_of", lambda path: time_of(Distant(path)))
    assert restore(workspace).made == "an unknown time"


class Distant:
    """A file of the year 36,812, as a tmpfs can hold it."""

    st_mtime = 2.0**40

    def __init__(self, path):
        assert path.is_file()

    def stat(self):
        return self


def test_a_catalog_that_is_gone_is_restored(workspace):
    (workspace / CATALOG_FILE).unlink()
    with pytest.raises(DamagedError, match="it is missing"):
        open_catalog(workspace)
    assert restore(workspace).kept_as is None
    assert names(workspace) == ["owl", "hare"]


def test_what_is_not_restored(workspace, tmp_path):
    with pytest.raises(IgcdError, match="is not damaged, nothing was restored; `igcd undo`"):
        restore(workspace)
    assert names(workspace) == ["owl", "mountain hare"]
    with pytest.raises(IgcdError, match=r"there is no catalog\.backup\.sqlite"):
        restore(tmp_path)
    damage(workspace)
    shutil.copy(workspace / CATALOG_FILE, workspace / BACKUP_FILE)
    with pytest.raises(IgcdError, match="is damaged as well"):
        restore(workspace)


def test_a_newer_catalog_is_not_taken_for_a_damaged_one(workspace):
    db = sqlite3.connect(workspace / CATALOG_FILE)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.commit()
    db.close()
    with pytest.raises(IgcdError, match="update igcd"):
        restore(workspace)


def test_a_damaged_catalog_never_takes_the_place_of_a_good_copy(workspace):
    before = (workspace / BACKUP_FILE).read_bytes()
    with open_catalog(workspace) as catalog:
        with catalog.transaction() as db:
            db.execute("UPDATE assignments SET category = 99 WHERE photo = 1")
        with pytest.raises(DamagedError, match=r"assignments.category refers to rows that do not exist"):
            write_backup(catalog)
    assert (workspace / BACKUP_FILE).read_bytes() == before


def test_what_a_killed_copy_left_behind_is_cleared_away(workspace):
    (workspace / f".{BACKUP_FILE}.4711").write_bytes(b"half a copy")
    with open_catalog(workspace) as catalog:
        write_backup(catalog)
    assert sorted(path.name for path in workspace.iterdir()) == [BACKUP_FILE, CATALOG_FILE]
    assert file_fault(workspace / BACKUP_FILE) is None


def test_where_no_copy_can_be_written_the_stage_is_accepted_and_it_is_said(tmp_path, monkeypatch):
    sample_workspace(tmp_path, known={"owl": 3}, novel={"hare": 4})

    def full(_path):
        raise OSError(28, "No space left on device")

    with open_catalog(tmp_path / "ws") as catalog:
        with catalog.transaction() as db:
            db.execute("UPDATE stages SET encoder = 'none'")
        monkeypatch.setattr("igcd.records.sync", full)
        with pytest.raises(IgcdError, match=r"stage 0 is accepted, but the copy .* could not be written \(.*No space"):
            accept_stage(catalog, author="ann")
        assert queries.status(catalog).stages[0].state == "accepted"
    assert [path.name for path in (tmp_path / "ws").iterdir()] == [CATALOG_FILE]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE photos SET n_bytes = 'many'",
        "UPDATE photos SET n_bytes = -1",
        "UPDATE assignments SET is_confirmed = 9223372036854775807",
        "UPDATE assignments SET probability = 1e308",
        "UPDATE assignments SET typicality = 9e999",
        "UPDATE decisions SET before = '{'",
        "UPDATE labels SET category = 99",
        "UPDATE settings SET value = 'x' WHERE key = 'revision'",
        "UPDATE settings SET value = '9223372036854775807' WHERE key = 'revision'",
        "DELETE FROM stages",
        "ALTER TABLE photos RENAME COLUMN width TO widtg",
        "DROP INDEX live_names",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 16777217",
        "PRAGMA application_id = 1",
        "UPDATE categories SET name = CAST(x'ff' AS TEXT) WHERE id = 1",
    ],
)
def test_content_that_is_not_what_was_written_is_damage(workspace, damage):
    db = sqlite3.connect(workspace / CATALOG_FILE)
    db.execute(damage)
    db.commit()
    db.close()
    with pytest.raises(DamagedError, match="igcd restore"), open_catalog(workspace) as catalog:
        queries.categories(catalog)


def test_flipped_bits_end_in_a_sentence_or_do_no_harm(workspace):
    good, rng, n_refused = (workspace / CATALOG_FILE).read_bytes(), random.Random(0), 0
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(8):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        (workspace / CATALOG_FILE).write_bytes(bad)
        try:
            with open_catalog(workspace, read_only=True) as catalog:
                queries.status(catalog)
                for category in queries.categories(catalog):
                    queries.photos_of(catalog, category.id)
                queries.history(catalog)
        except IgcdError:
            n_refused += 1
    assert 0 < n_refused < 60
