"""Photos into the catalog: found, hashed, and set aside where they cannot be read. The files stay as they are."""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from igcd.data.files import image_paths, looks_like_image
from igcd.data.images import BrokenImageError, digest
from igcd.data.parallel import map_in_order, n_cores
from igcd.errors import IgcdError
from igcd.workspace.catalog import Catalog, next_revision, now
from igcd.workspace.names import parse_name
from igcd.workspace.photo_files import changed_at, content_hash, picture_size
from igcd.workspace.shots import Shot, read_shot

Progress = Callable[[int, int], None]
"""Called with (done, to do)."""

HASHED_AT_ONCE = 4
N_REASONS = 5
"""Reasons that a sentence names."""
UNDECODABLE = "name with undecodable bytes; rename the file"


@dataclass(frozen=True)
class FoundFile:
    """A file that looks like a photo, before anything is known of it."""

    root: str  # registered folder
    path: str  # below it, with /


@dataclass(frozen=True)
class _Known:
    """A file whose photo the catalog knows, as it was when it came in."""

    photo: int
    content_hash: str
    n_bytes: int
    mtime_ns: int


@dataclass(frozen=True)
class _Looked:
    """What a look at a file gave."""

    file: FoundFile
    content_hash: str
    n_bytes: int
    mtime_ns: int
    width: int | None = None
    height: int | None = None
    broken: str | None = None
    shot: Shot = field(default_factory=Shot)


@dataclass(frozen=True)
class Reading:
    """Files as they were found, nothing of it written yet."""

    looked: Mapping[FoundFile, _Looked | _Known]
    nameless: Mapping[str, str] = field(default_factory=dict)  # path -> reason, of files that cannot be written down

    def with_shots(self, shots: Mapping[FoundFile, Shot]) -> "Reading":
        """The same with what a table says about when and where photos were taken."""
        looked = {
            file: replace(look, shot=shots[file]) if file in shots and isinstance(look, _Looked) else look
            for file, look in self.looked.items()
        }
        return replace(self, looked=looked)

    @property
    def content_of(self) -> dict[FoundFile, str]:
        """The content hash of each file: those with the same one are one photo."""
        return {file: look.content_hash for file, look in self.looked.items()}


@dataclass(frozen=True)
class AddReport:
    """What came in."""

    n_files: int
    n_new: int
    n_known: int  # files whose photo was there already, here or before
    n_labeled: int  # photos labeled by this
    n_categories: int  # categories that are labeled now
    broken: Mapping[str, str] = field(default_factory=dict)  # path -> reason, of the new ones
    conflicts: Mapping[str, str | None] = field(default_factory=dict)  # who said what -> the label that was chosen

    def sentence(self) -> str:
        """One line for people.

        >>> AddReport(5, 3, 1, 2, 1, {"a.jpg": "truncated"}).sentence()
        '3 new photos, 2 of them labeled in 1 category; 1 was there already; 1 set aside: truncated 1'
        """
        text = f"{_n(self.n_new, 'new photo')}"
        if self.n_labeled:
            text += f", {self.n_labeled:,} of them labeled in {_n(self.n_categories, 'category', 'categories')}"
        if self.n_known:
            text += f"; {self.n_known:,} {'was' if self.n_known == 1 else 'were'} there already"
        if self.broken:
            counts = Counter(self.broken.values()).most_common()
            reasons = [f"{reason} {n:,}" for reason, n in counts[:N_REASONS]]
            if len(counts) > N_REASONS:
                reasons.append(f"other reasons {sum(n for _, n in counts[N_REASONS:]):,}")
            text += f"; {len(self.broken):,} set aside: {', '.join(reasons)}"
        if self.conflicts:
            text += f"; {len(self.conflicts):,} had several labels"
        return text


def find_photos(paths: Sequence[Path], *, workspace: Path, registered: Iterable[str] = ()) -> list[FoundFile]:
    """The files that look like photos in folders, or the given files; what lies in the workspace itself is left out.

    Below a folder that is registered already, files are named from there, so that they are known again.
    """
    own, roots = Path(os.path.realpath(workspace)), sorted(registered, key=len)
    found: dict[FoundFile, None] = {}
    for path in paths:
        real = Path(os.path.realpath(path))
        if not real.exists():
            raise IgcdError(f"{path} does not exist; give a folder of photos")
        if real.is_dir():
            folder, names = real, [path.removeprefix("./") for path in image_paths(real, ".")]
        else:
            folder, names = real.parent, [real.name] if looks_like_image(real.name) else []
        if not _is_text(str(folder)):
            raise IgcdError(f"the name of the folder {str(path)!r} has undecodable bytes; rename it")
        root = next((Path(path) for path in roots if folder.is_relative_to(path)), folder)
        prefix = folder.relative_to(root).as_posix()
        in_folder = [name if prefix == "." else f"{prefix}/{name}" for name in names]
        files = [FoundFile(str(root), name) for name in in_folder if not Path(root, name).is_relative_to(own)]
        if not files:
            raise IgcdError(
                f"there are no photos in {path}; give a folder that holds some (jpg, png, webp, tif, heic …)"
            )
        found |= dict.fromkeys(files)
    return list(found)


def add_photos(catalog: Catalog, paths: Sequence[Path], *, progress: Progress | None = None) -> AddReport:
    """Adds photos to the open stage, or opens the next one for them: all of them in one transaction.

    Reading comes first and writes nothing, so stopping it loses nothing.
    """
    found = find_photos(paths, workspace=catalog.folder, registered=registered_folders(catalog))
    return write_photos(catalog, read_photos(found, known=_known_files(catalog), progress=progress))


def read_photos(
    found: Sequence[FoundFile],
    *,
    known: Mapping[FoundFile, _Known] | None = None,
    set_aside: Mapping[FoundFile, str] | None = None,
    progress: Progress | None = None,
) -> Reading:
    """Looks at every file. Those in `set_aside` are taken for broken, for the reason given there."""
    files = [file for file in found if _is_text(file.path)]
    looked = dict(zip(files, _look_at_all(files, known or {}, progress), strict=True))
    for file, reason in (set_aside or {}).items():
        look = looked.get(file)
        if isinstance(look, _Looked):
            looked[file] = replace(look, broken=look.broken or reason)
    nameless = {str(Path(file.root, file.path)): UNDECODABLE for file in found if not _is_text(file.path)}
    return Reading(looked, nameless)


def write_photos(
    catalog: Catalog,
    reading: Reading,
    *,
    labels: Mapping[FoundFile, str] | None = None,
    setup: Callable[[sqlite3.Connection], None] = lambda _db: None,
) -> AddReport:
    """Writes down what was read, in one transaction.

    `labels` says what some of the files are, the same for all files of a photo; `setup` runs at the start of the
    transaction (a new workspace makes its tables there).
    """
    looked = reading.looked
    with catalog.transaction() as db:
        setup(db)
        stage = _open_stage(db, may_open=any(isinstance(look, _Looked) for look in looked.values()))
        photo_of, broken, n_new = _insert(db, looked, stage)
        n_labeled = _label(db, {photo_of[file]: (file, name) for file, name in (labels or {}).items()}, stage)
        _assign_labeled(db)
        n_categories = db.execute("SELECT COUNT(*) FROM categories WHERE state = 'labeled'").fetchone()[0]
        next_revision(db)
    return AddReport(
        n_files=len(looked) + len(reading.nameless),
        n_new=n_new,
        n_known=len(looked) - n_new - len(broken),
        n_labeled=n_labeled,
        n_categories=n_categories,
        broken={**broken, **reading.nameless},
    )


def registered_folders(catalog: Catalog) -> list[str]:
    """The folders whose photos the catalog knows."""
    with catalog.snapshot() as db:
        if not db.execute("PRAGMA user_version").fetchone()[0]:
            return []
        return [row["path"] for row in db.execute("SELECT path FROM folders")]


def _known_files(catalog: Catalog) -> dict[FoundFile, _Known]:
    """The files that are known and sound: they need not be read again."""
    with catalog.snapshot() as db:
        if not db.execute("PRAGMA user_version").fetchone()[0]:
            return {}
        rows = db.execute(
            "SELECT f.path AS root, pp.path, pp.photo, p.content_hash, pp.n_bytes, pp.mtime_ns FROM photo_paths pp "
            "JOIN folders f ON f.id = pp.folder JOIN photos p ON p.id = pp.photo WHERE p.broken IS NULL"
        )
        return {
            FoundFile(row["root"], row["path"]): _Known(
                row["photo"], row["content_hash"], row["n_bytes"], row["mtime_ns"]
            )
            for row in rows
        }


def _look_at_all(
    files: Sequence[FoundFile], known: Mapping[FoundFile, _Known], progress: Progress | None
) -> list[_Looked | _Known]:
    """A look at each file, or the photo it is known as."""
    looked: list[_Looked | _Known] = []
    parts = [files[start : start + HASHED_AT_ONCE] for start in range(0, len(files), HASHED_AT_ONCE)]
    look = map_in_order(
        lambda part: [_look_at(file, known.get(file)) for file in part], parts, n_workers=None, n_ahead=2 * n_cores()
    )
    for part in look:
        looked += part
        if progress is not None:
            progress(len(looked), len(files))
    return looked


def _look_at(file: FoundFile, known: _Known | None) -> _Looked | _Known:
    path = Path(file.root, file.path)
    # A file that cannot be read has no content; its name stands for it until it can.
    nameless = f"unreadable-{digest(os.fsencode(path))}"
    try:
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(os.path.realpath(file.root)):
            return _Looked(file, nameless, 0, 0, broken="link leads out of the image folder")
        status = real.stat()
        if known is not None and (known.n_bytes, known.mtime_ns) == (status.st_size, changed_at(status)):
            return known
        if not real.is_file():
            return _Looked(file, nameless, 0, 0, broken="not a regular file")
        own_hash = content_hash(real)
    except OSError as error:
        return _Looked(file, nameless, 0, 0, broken=f"file cannot be read ({error.strerror})")
    if not status.st_size:
        return _Looked(file, nameless, 0, changed_at(status), broken="file is empty")
    try:
        width, height = picture_size(file.root, file.path)
    except BrokenImageError as error:
        return _Looked(file, own_hash, status.st_size, changed_at(status), broken=str(error))
    return _Looked(file, own_hash, status.st_size, changed_at(status), width, height, shot=read_shot(real))


def _open_stage(db: sqlite3.Connection, *, may_open: bool) -> int:
    """The stage that takes photos in: the last one, or where that is accepted the next."""
    row = db.execute("SELECT stage, state FROM stages ORDER BY stage DESC LIMIT 1").fetchone()
    if row is not None and (row["state"] != "accepted" or not may_open):
        return int(row["stage"])
    stage = 0 if row is None else int(row["stage"]) + 1
    db.execute("INSERT INTO stages (stage, state, opened) VALUES (?, 'open', ?)", (stage, now()))
    return stage


def _insert(
    db: sqlite3.Connection, looked: Mapping[FoundFile, _Looked | _Known], stage: int
) -> tuple[dict[FoundFile, int], dict[str, str], int]:
    """Writes photos and paths; returns the photo of each file, the broken files, and how many photos are new."""
    folder_of: dict[str, int] = {}
    for root in dict.fromkeys(file.root for file in looked):
        db.execute("INSERT OR IGNORE INTO folders (path) VALUES (?)", (root,))
        folder_of[root] = db.execute("SELECT id FROM folders WHERE path = ?", (root,)).fetchone()["id"]
    photo_of: dict[FoundFile, int] = {}
    broken: dict[str, str] = {}
    n_new = 0
    for file, look in looked.items():
        if isinstance(look, _Known):
            photo_of[file] = look.photo
            continue
        row = db.execute("SELECT id, broken FROM photos WHERE content_hash = ?", (look.content_hash,)).fetchone()
        if row is None:
            cursor = db.execute(
                "INSERT INTO photos (content_hash, n_bytes, width, height, stage, broken) VALUES (?, ?, ?, ?, ?, ?)",
                (look.content_hash, look.n_bytes, look.width, look.height, stage, look.broken),
            )
            photo_of[file] = int(cursor.lastrowid or 0)
            n_new += look.broken is None
        else:
            photo_of[file] = row["id"]
            if row["broken"] is not None and look.broken is None:  # an extra was installed since
                db.execute(
                    "UPDATE photos SET broken = NULL, width = ?, height = ?, stage = ? WHERE id = ?",
                    (look.width, look.height, stage, row["id"]),
                )
                n_new += 1
        if look.broken is not None:
            broken[str(Path(file.root, file.path))] = look.broken
        if look.shot:
            db.execute(
                "INSERT OR REPLACE INTO shots VALUES (?, ?, ?, ?)",
                (photo_of[file], look.shot.taken, look.shot.latitude, look.shot.longitude),
            )
        db.execute(
            "INSERT OR REPLACE INTO photo_paths (folder, path, photo, n_bytes, mtime_ns) VALUES (?, ?, ?, ?, ?)",
            (folder_of[file.root], file.path, photo_of[file], look.n_bytes, look.mtime_ns),
        )
    # What was unreadable and now has a content of its own leaves nothing behind.
    db.execute(
        "DELETE FROM photos WHERE broken IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM photo_paths WHERE photo = photos.id) "
        "AND NOT EXISTS (SELECT 1 FROM labels WHERE photo = photos.id)"
    )
    return photo_of, broken, n_new


def _label(db: sqlite3.Connection, label_of: Mapping[int, tuple[FoundFile, str]], stage: int) -> int:
    """Writes given labels down; how many there were. A photo that has another label already is an error."""
    id_of = {
        row["name"]: row["id"]
        for row in db.execute(
            "SELECT id, name FROM categories WHERE name IS NOT NULL AND state IN ('labeled', 'accepted')"
        )
    }
    revision = next_revision(db)
    n_labeled, conflicts = 0, []
    for photo, (file, text) in label_of.items():
        name = parse_name(text)
        if name.full not in id_of:
            cursor = db.execute(
                "INSERT INTO categories (name, parent, state, found_stage, version) VALUES (?, ?, 'labeled', ?, ?)",
                (name.full, name.parent, stage, revision),
            )
            id_of[name.full] = int(cursor.lastrowid or 0)
        former = db.execute(
            "SELECT l.category, c.name FROM labels l JOIN categories c ON c.id = l.category WHERE l.photo = ?", (photo,)
        ).fetchone()
        if former is not None and former["category"] != id_of[name.full]:
            conflicts.append(f"{file.path} is {text!r}, the workspace has it as {former['name']!r}")
        elif former is None:
            db.execute("INSERT INTO labels VALUES (?, ?, ?, 'given')", (photo, id_of[name.full], stage))
            n_labeled += 1
    if conflicts:
        raise IgcdError(
            f"{len(conflicts):,} photos have another label in the workspace, see below; leave them out, or move "
            "them on the review page",
            details=conflicts,
        )
    return n_labeled


def _assign_labeled(db: sqlite3.Connection) -> None:
    """A labeled photo is what its label says, from the start."""
    db.execute(
        "INSERT INTO assignments (photo, stage, category, probability, typicality, is_confirmed) "
        "SELECT l.photo, l.stage, l.category, 1.0, 0.0, 1 FROM labels l JOIN photos p ON p.id = l.photo "
        "WHERE p.broken IS NULL ON CONFLICT (photo) DO UPDATE SET category = excluded.category, is_confirmed = 1, "
        "probability = 1.0 WHERE category IS NOT excluded.category"
    )


def _is_text(path: str) -> bool:
    """Whether a file name is UTF-8; others cannot be written down."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _n(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
