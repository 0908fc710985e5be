import sqlite3
import threading

import pytest
from workspace.painted_photos import paint
from workspace.sample_catalog import sample_workspace

from igcd.errors import IgcdError
from igcd.workspace import catalog as catalog_module
from igcd.workspace import queries
from igcd.workspace.catalog import (
    CATALOG_FILE,
    Catalog,
    ConflictError,
    current_revision,
    holds_workspace,
    new_folder,
    next_revision,
    open_catalog,
)
from igcd.workspace.init import init_workspace
from igcd.workspace.schema import MIGRATIONS, check_version, migrate, schema_version


@pytest.fixture
def workspace(tmp_path):
    sample_workspace(tmp_path, known={"owl": 2}, novel={"hare": 3})
    return tmp_path / "ws"


def test_a_catalog_without_tallies_gets_them_counted():
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db, migrations=MIGRATIONS[:3])
    db.execute("INSERT INTO stages (stage, state, opened) VALUES (0, 'open', 'now'), (1, 'open', 'now')")
    for photo in range(1, 6):
        db.execute(
            "INSERT INTO photos (id, content_hash, n_bytes, stage, broken) VALUES (?, ?, 1, 0, ?)",
            (photo, str(photo), "torn" if photo == 5 else None),
        )
    db.execute("INSERT INTO categories (id, state, found_stage, version) VALUES (1, 'labeled', 0, 1)")
    db.execute("INSERT INTO labels VALUES (1, 1, 0, 'given')")
    for photo, category, is_confirmed in ((1, 1, 1), (2, 1, 1), (3, None, 0)):
        db.execute("INSERT INTO assignments VALUES (?, 0, ?, 1.0, 1.0, 0, ?)", (photo, category, is_confirmed))
    migrate(db)
    assert db.execute("SELECT * FROM tallies").fetchall() == [(0, 5, 1, 0, 3, 2, 1, 1, 1), (1, *[0] * 8)]


def test_a_catalog_of_an_older_version_is_brought_forward(tmp_path):
    """The mechanism, from version 1 to 2: data stays, the new column is there, and nothing is done twice."""
    newer = (*MIGRATIONS, "ALTER TABLE photos ADD COLUMN note TEXT; -- why;\nUPDATE photos SET note = 'old; one';\n")
    db = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    db.execute("BEGIN")
    migrate(db)
    db.execute("INSERT INTO stages (stage, state, opened) VALUES (0, 'open', 'x')")
    db.execute("INSERT INTO photos (content_hash, n_bytes, stage) VALUES ('a', 1, 0)")
    db.execute("COMMIT")
    assert schema_version(db) == len(MIGRATIONS)
    for _ in range(2):
        db.execute("BEGIN")
        migrate(db, migrations=newer)
        db.execute("COMMIT")
        assert schema_version(db) == len(newer)
        assert db.execute("SELECT content_hash, note FROM photos").fetchall() == [("a", "old; one")]


def test_a_migration_that_fails_changes_nothing(tmp_path):
    db = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    db.execute("BEGIN")
    migrate(db)
    db.execute("COMMIT")
    broken = (*MIGRATIONS, "ALTER TABLE photos ADD COLUMN note TEXT; INSERT INTO nowhere VALUES (1);")
    db.execute("BEGIN")
    with pytest.raises(IgcdError, match=r"must be those of its version, \d, but no such table: nowhere; it is damaged"):
        migrate(db, migrations=broken)
    db.execute("ROLLBACK")
    assert check_version(db) == len(MIGRATIONS)
    assert "note" not in [row[1] for row in db.execute("PRAGMA table_info(photos)")]


@pytest.mark.parametrize("read_only", [False, True])
def test_opening_migrates(workspace, monkeypatch, read_only):
    monkeypatch.setattr(catalog_module, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE extra (x);"))
    monkeypatch.setattr(
        catalog_module, "migrate", lambda db: migrate(db, migrations=(*MIGRATIONS, "CREATE TABLE extra (x);"))
    )
    with open_catalog(workspace, read_only=read_only) as catalog, catalog.snapshot() as db:
        assert schema_version(db) == len(MIGRATIONS) + 1
        assert db.execute("SELECT * FROM extra").fetchall() == []


def test_a_newer_workspace_is_refused_in_a_sentence(workspace):
    db = sqlite3.connect(workspace / CATALOG_FILE)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.commit()
    db.close()
    before = (workspace / CATALOG_FILE).read_bytes()
    with pytest.raises(IgcdError, match=r"has version \d, this igcd reads up to version \d; update igcd"):
        open_catalog(workspace)
    assert (workspace / CATALOG_FILE).read_bytes() == before


def test_what_is_not_a_workspace(tmp_path):
    with pytest.raises(IgcdError, match="not a workspace; make one with `igcd init"):
        open_catalog(tmp_path)
    (tmp_path / CATALOG_FILE).write_bytes(b"no database at all, but long enough to look at" * 20)
    with pytest.raises(IgcdError, match="damaged"):
        open_catalog(tmp_path)
    db = sqlite3.connect(tmp_path / "other.sqlite")
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()
    (tmp_path / "other.sqlite").replace(tmp_path / CATALOG_FILE)
    with pytest.raises(IgcdError, match="another program"):
        open_catalog(tmp_path)


def test_write_ahead_log_and_one_transaction_per_action(workspace):
    with open_catalog(workspace) as catalog:
        with catalog.snapshot() as db:
            assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        with pytest.raises(RuntimeError), catalog.transaction() as db:
            db.execute("DELETE FROM photos")
            raise RuntimeError
        assert queries.status(catalog).n_photos == 8


@pytest.mark.usefixtures("wait_for_the_disk")
def test_an_action_is_on_the_disk_when_it_is_done(workspace):
    with open_catalog(workspace) as catalog, catalog.transaction() as db:
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL, SQLite's number of it


def test_a_snapshot_sees_one_state_while_others_write(workspace):
    with open_catalog(workspace) as reader, open_catalog(workspace) as writer:
        with reader.snapshot() as db:
            before = current_revision(db)
            with writer.transaction() as other:
                next_revision(other)
            assert current_revision(db) == before
        assert queries.revision(reader) == before + 1


def test_one_catalog_serves_many_threads(workspace):
    failures = []
    with open_catalog(workspace) as catalog:

        def work():
            try:
                for _ in range(5):
                    with catalog.transaction() as db:
                        next_revision(db)
                    queries.categories(catalog)
            except Exception as error:
                failures.append(error)

        before = queries.revision(catalog)
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and queries.revision(catalog) == before + 30


def test_a_writer_who_waits_too_long_gets_an_error(workspace, monkeypatch):
    monkeypatch.setattr(catalog_module, "BUSY_SECONDS", 0.05)
    raises = pytest.raises(ConflictError, match="another program is writing")
    with (
        open_catalog(workspace) as one,
        open_catalog(workspace) as other,
        one.transaction(),
        raises,
        other.transaction(),
    ):
        pass


def test_read_only(workspace):
    before = {path.name for path in workspace.iterdir()}
    with open_catalog(workspace, read_only=True) as catalog:
        assert queries.status(catalog).n_photos == 8
        with pytest.raises(IgcdError, match="for reading only"), catalog.transaction():
            pass
        with pytest.raises(IgcdError, match="readonly"), catalog.snapshot() as db:
            db.execute("DELETE FROM photos")
    assert before == {path.name for path in workspace.iterdir()} - {f"{CATALOG_FILE}-wal", f"{CATALOG_FILE}-shm"}


def test_a_read_only_disk_is_said_in_a_sentence(workspace):
    """Root may write anywhere, so the disk's refusal is that of SQLite: a connection that may not write."""
    with open_catalog(workspace) as catalog:
        db = catalog._connection()
        db.execute("PRAGMA query_only = 1")
        said = pytest.raises(IgcdError, match=r"cannot be written to .* move it to a disk you may write to")
        with said, catalog.transaction() as writing:
            next_revision(writing)


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(catalog_module.Path, "mkdir", refuse)
    with pytest.raises(IgcdError, match=r"cannot be made \(Read-only file system\)"):
        make(tmp_path / "ws")


def make(folder):
    with new_folder(folder):
        pass


def test_a_folder_in_use_is_left_alone(tmp_path, workspace):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("x")
    with pytest.raises(IgcdError, match="is not empty; give a new folder"):
        make(tmp_path / "full")
    with pytest.raises(IgcdError, match="workspace already; use `igcd add`"):
        make(workspace)
    with pytest.raises(IgcdError, match="is a file"):
        make(tmp_path / "full" / "thesis.txt")
    assert holds_workspace(workspace) and not holds_workspace(tmp_path / "full")


def test_what_a_killed_init_left_behind_is_taken_over(tmp_path):
    (tmp_path / "ws").mkdir()
    with Catalog(tmp_path / "ws") as catalog, catalog.snapshot():
        pass
    with pytest.raises(IgcdError, match="unfinished"):
        open_catalog(tmp_path / "ws")
    paint(tmp_path / "photos" / "a.jpg", 0, 0)
    init_workspace(tmp_path / "ws", tmp_path / "photos")
    open_catalog(tmp_path / "ws").close()


def test_a_folder_that_comes_to_nothing_is_gone_again(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "a" / "b" / "ws"):
        raise KeyboardInterrupt
    assert not (tmp_path / "a").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "mine"):
        raise KeyboardInterrupt
    assert (tmp_path / "mine").is_dir()
