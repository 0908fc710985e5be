"""What the workspace knows, for other programs: a table, COCO, Label Studio, or a folder per category."""

import csv
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import quote

from igcd.errors import IgcdError
from igcd.records import publish, write_bytes
from igcd.workspace.catalog import Catalog

FORMATS = ("csv", "coco", "labelstudio", "folders")
UNCONFIRMED = "unconfirmed"
"""Folder of the guesses in an export as folders."""
MAX_NAME_BYTES = 255
"""Bytes in the name of a file, on the common file systems."""
COLUMNS = (
    *("photo_id", "path", "content_hash", "stage", "category_id", "category", "parent", "category_state"),
    *("probability", "confirmed", "near_duplicate_of"),
)


@dataclass(frozen=True)
class ExportedPhoto:
    """A photo, where it lies and the category it is assigned to."""

    id: int
    content_hash: str
    folder: str
    path: str
    stage: int
    width: int | None
    height: int | None
    near_duplicate_of: int | None
    category_id: int | None
    name: str | None
    parent: str | None
    state: str | None
    probability: float
    is_confirmed: bool

    @property
    def file(self) -> Path:
        """Where it lies."""
        return Path(self.folder, self.path)

    def is_guess_of(self, probability: float) -> bool:
        """Whether it was assigned to a category with at least this probability."""
        return self.category_id is not None and self.probability >= probability

    @property
    def category(self) -> str:
        """The name, or what stands for it; empty where unsure."""
        return "" if self.category_id is None else self.name or f"new {self.category_id}"


def export(
    catalog: Catalog,
    kind: str,
    out: Path,
    *,
    link: bool = False,
    confirmed_only: bool = False,
    min_probability: float = 0.0,
) -> int:
    """Writes all photos that were looked at; how many. What is at `out` already is never overwritten.

    `confirmed_only` leaves out what no person has confirmed, `min_probability` guesses that are less probable. `link`
    puts hard links instead of copies into folders: they take no space, but a program that edits one in place edits the
    photo itself.
    """
    if kind not in FORMATS:
        raise IgcdError(f"there is no export format {kind!r}; choose one of {', '.join(FORMATS)}")
    if not 0 <= min_probability <= 1:
        raise IgcdError(f"--min-probability must be from 0 to 1, got {min_probability}; choose one like 0.8")
    if os.path.lexists(out):
        raise IgcdError(f"{out} exists already; give --out a new name, nothing is overwritten")
    with catalog.snapshot() as db:
        n_waiting = db.execute(
            "SELECT COUNT(*) FROM photos p WHERE p.broken IS NULL AND p.stage = (SELECT MAX(stage) FROM stages) "
            "AND NOT EXISTS (SELECT 1 FROM assignments a WHERE a.photo = p.id)"
        ).fetchone()[0]
        if n_waiting and not confirmed_only:
            raise IgcdError(
                f"an export needs photos that were discovered, {n_waiting:,} of them were not yet; run "
                f"`igcd discover {catalog.folder}` first, or give --confirmed-only for what you labeled and confirmed"
            )
        rows = db.execute(
            """
            SELECT p.id, p.content_hash, f.path AS folder, pp.path, p.stage, p.width, p.height, p.near_duplicate_of,
                a.category AS category_id, c.name, c.parent, c.state, a.probability, a.is_confirmed
            FROM assignments a JOIN photos p ON p.id = a.photo LEFT JOIN categories c ON c.id = a.category
            JOIN photo_paths pp ON pp.photo = p.id JOIN folders f ON f.id = pp.folder
            GROUP BY p.id HAVING pp.path = MIN(pp.path) ORDER BY p.id
            """
        )
        photos = [ExportedPhoto(**{**dict(row), "is_confirmed": bool(row["is_confirmed"])}) for row in rows]
    if confirmed_only:
        photos = [photo for photo in photos if photo.is_confirmed and photo.category_id is not None]
    elif min_probability:
        photos = [photo for photo in photos if photo.is_confirmed or photo.is_guess_of(min_probability)]
    if not photos:
        raise IgcdError(
            "there are no photos to export: none is confirmed or as probable as asked for; review some, or lower "
            "--min-probability"
        )
    if kind == "csv":
        write_bytes(out, as_csv(photos).encode("utf-8", errors="surrogateescape"))
    elif kind == "coco":
        write_bytes(out, _as_json(as_coco(photos)))
    elif kind == "labelstudio":
        write_bytes(out, _as_json(list(as_label_studio(photos))))
    else:
        return write_folders(photos, out, link=link)
    return len(photos)


def as_csv(photos: Iterable[ExportedPhoto]) -> str:
    """A line per photo."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for photo in photos:
        table.writerow(
            [
                *(photo.id, photo.file, photo.content_hash, photo.stage, photo.category_id, photo.category),
                *(photo.parent, photo.state, f"{photo.probability:.4f}"),
                *(int(photo.is_confirmed), photo.near_duplicate_of),
            ]
        )
    return text.getvalue()


def as_coco(photos: Iterable[ExportedPhoto]) -> dict[str, list[dict[str, object]]]:
    """COCO: a photo's category is an annotation whose box is the whole photo; unsure photos have none."""
    photos = list(photos)
    categories = {photo.category_id: photo for photo in photos if photo.category_id is not None}
    return {
        "images": [
            {"id": photo.id, "file_name": str(photo.file), "width": photo.width, "height": photo.height}
            for photo in photos
        ],
        "categories": [
            {"id": category_id, "name": photo.category, "supercategory": photo.parent or ""}
            for category_id, photo in sorted(categories.items())
        ],
        "annotations": [
            {
                "id": photo.id,
                "image_id": photo.id,
                "category_id": photo.category_id,
                "bbox": [0, 0, photo.width or 0, photo.height or 0],
                "area": (photo.width or 0) * (photo.height or 0),
                "iscrowd": 0,
                "score": round(photo.probability, 4),
                "confirmed": photo.is_confirmed,
            }
            for photo in photos
            if photo.category_id is not None
        ],
    }


def as_label_studio(photos: Iterable[ExportedPhoto]) -> Iterator[dict[str, object]]:
    """Label Studio tasks for `<Choices name="category" toName="image">`: confirmed photos annotated, others predicted.

    Photos are named as Label Studio's local files with the root of the file system as its document root.
    """
    for photo in photos:
        path = photo.file.as_posix().lstrip("/")
        task: dict[str, object] = {
            "data": {"image": f"/data/local-files/?d={quote(path)}"},
            "meta": {"photo_id": photo.id, "category_id": photo.category_id, "stage": photo.stage},
        }
        if photo.category_id is not None:
            choice = {
                "from_name": "category",
                "to_name": "image",
                "type": "choices",
                "value": {"choices": [photo.category]},
            }
            if photo.is_confirmed:
                task["annotations"] = [{"result": [choice]}]
            else:
                task["predictions"] = [{"result": [choice], "score": round(photo.probability, 4)}]
        yield task


def write_folders(photos: Iterable[ExportedPhoto], out: Path, *, link: bool) -> int:
    """A folder per category with copies of (or hard links to) its photos, all of it or nothing; how many were written.

    Guesses that nobody has confirmed go into the same folders below `unconfirmed`: none is taken for a fact. What is
    of no category is in `unsure`.

    A file is only ever created under a free name: nothing that is there already is written to, least of all a link.
    """
    photos = list(photos)
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name[:100]}."))
    try:
        names = category_folders(photos)
        guessed = unfinished / (UNCONFIRMED if Path(UNCONFIRMED) not in names.values() else f"{UNCONFIRMED}-guesses")
        folders = [
            (guessed if photo.is_guess_of(0.0) and not photo.is_confirmed else unfinished) / names[photo.category_id]
            for photo in photos
        ]
        for folder in dict.fromkeys(folders):  # all of them first: a photo may be called like a folder beside it
            folder.mkdir(parents=True, exist_ok=True)
        for photo, folder in zip(photos, folders, strict=True):
            _put(photo, folder, link=link)
        unfinished.chmod(0o755)
        publish(unfinished, out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return len(photos)


def category_folders(photos: Iterable[ExportedPhoto]) -> dict[int | None, Path]:
    """A folder for each category, also where names differ only in what no folder can be called."""
    folder_of: dict[int | None, Path] = {}
    taken: set[str] = set()
    for photo in photos:
        if photo.category_id in folder_of:
            continue
        parts = [safe_name(part) for part in photo.category.split("/")] if photo.category else ["unsure"]
        for name in free_names(parts[-1], photo.category_id):
            folder = Path(*parts[:-1], name)
            if str(folder).casefold() not in taken:  # some systems do not tell Owl from owl
                break
        taken.add(str(folder).casefold())
        folder_of[photo.category_id] = folder
    return folder_of


def free_names(name: str, number: int | None) -> Iterator[str]:
    """A name, then others like it without end, for where it is taken.

    >>> from itertools import islice
    >>> [*islice(free_names("p.jpg", 3), 3)]
    ['p.jpg', 'p-3.jpg', 'p-3-2.jpg']
    """
    yield name
    stem, suffix = Path(name).stem, Path(name).suffix
    if number is not None:
        stem = f"{_at_most(stem, MAX_NAME_BYTES - len(os.fsencode(suffix)) - 30)}-{number}"
        yield f"{stem}{suffix}"
    yield from (f"{stem}-{again}{suffix}" for again in count(2))


def safe_name(part: str) -> str:
    """A part of a category's name as the name of a folder, on every system.

    >>> safe_name("a:b?"), safe_name(".."), safe_name("con")
    ('a_b_', '__', 'con_')
    """
    name = _at_most(re.sub(r'[<>:"\\|?*\x00-\x1f]', "_", part), MAX_NAME_BYTES - 30)
    stripped = name.rstrip(". ")
    name = stripped + "_" * (len(name) - len(stripped))
    return f"{name}_" if re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name) else name


def _put(photo: ExportedPhoto, folder: Path, *, link: bool) -> None:
    """A copy of a photo, or a hard link to it, in a folder under the first of its names that is free."""
    source = Path(os.path.realpath(photo.file))
    if not source.is_relative_to(os.path.realpath(photo.folder)) or not source.is_file():
        raise IgcdError(f"{photo.file} is missing; put it back, or export another format, which needs no files")
    for name in free_names(photo.file.name, photo.id):
        target = folder / name
        try:
            if not (link and _linked(source, target)):
                with source.open("rb") as original, target.open("xb") as copy:
                    shutil.copyfileobj(original, copy)
                shutil.copystat(source, target)
            return
        except FileExistsError:
            continue


def _linked(source: Path, target: Path) -> bool:
    """Makes a hard link; False where the disk is another one or has none. Raises where there is such a file."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def _at_most(text: str, n_bytes: int) -> str:
    """The beginning of a text that takes so many bytes on disk."""
    return os.fsencode(text)[:n_bytes].decode("utf-8", errors="ignore")


def _as_json(record: object) -> bytes:
    return (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode("utf-8", errors="backslashreplace")
