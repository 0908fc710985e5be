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
from pathlib import Path
from urllib.parse import quote

from igcd.errors import IgcdError
from igcd.records import write_bytes
from igcd.workspace.catalog import Catalog

FORMATS = ("csv", "coco", "labelstudio", "folders")
COLUMNS = (
    *("photo_id", "path", "content_hash", "stage", "category_id", "category", "parent", "category_state"),
    *("probability", "confirmed", "near_duplicate_of"),
)


@dataclass(frozen=True)
class ExportedPhoto:
    """A photo, where it lies and what it is held to be."""

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

    @property
    def category(self) -> str:
        """The name, or what stands for it; empty where unsure."""
        return "" if self.category_id is None else self.name or f"new {self.category_id}"


def export(catalog: Catalog, kind: str, out: Path, *, link: bool = False) -> int:
    """Writes all photos that were looked at; how many. What is at `out` already is never overwritten.

    `link` puts hard links instead of copies into folders: they take no space, but a program that edits one in place
    edits the photo itself.
    """
    if kind not in FORMATS:
        raise IgcdError(f"there is no export format {kind!r}; choose one of {', '.join(FORMATS)}")
    if out.exists():
        raise IgcdError(f"{out} exists already; give --out a new name, nothing is overwritten")
    with catalog.snapshot() as db:
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
    if kind == "csv":
        write_bytes(out, as_csv(photos).encode("utf-8", errors="surrogateescape"))
    elif kind == "coco":
        write_bytes(out, _as_json(as_coco(photos)))
    elif kind == "labelstudio":
        write_bytes(out, _as_json(list(as_label_studio(photos))))
    else:
        write_folders(photos, out, link=link)
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


def write_folders(photos: Iterable[ExportedPhoto], out: Path, *, link: bool) -> None:
    """A folder per category with copies of (or hard links to) its photos; there is all of it or nothing."""
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    folder_of: dict[int | None, Path] = {}
    try:
        for photo in photos:
            if photo.category_id not in folder_of:
                folder = (
                    Path(*(safe_name(part) for part in photo.category.split("/"))) if photo.category else Path("unsure")
                )
                if folder in folder_of.values():  # two names that differ only in what no folder can be called
                    folder = folder.with_name(f"{folder.name}-{photo.category_id}")
                folder_of[photo.category_id] = folder
                (unfinished / folder).mkdir(parents=True, exist_ok=True)
            target = unfinished / folder_of[photo.category_id] / photo.file.name
            if target.exists():
                target = target.with_name(f"{target.stem}-{photo.id}{target.suffix}")
            _copy(photo.file, target, link=link)
        unfinished.chmod(0o755)
        unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def safe_name(part: str) -> str:
    """A part of a category's name as the name of a folder, on every system.

    >>> safe_name("a:b?"), safe_name(".."), safe_name("con")
    ('a_b_', '__', 'con_')
    """
    name = re.sub(r'[<>:"\\|?*\x00-\x1f]', "_", part)
    stripped = name.rstrip(". ")
    name = stripped + "_" * (len(name) - len(stripped))
    return f"{name}_" if re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name) else name


def _copy(source: Path, target: Path, *, link: bool) -> None:
    try:
        if link:
            try:
                os.link(source, target)
                return
            except OSError:  # another disk, or one without hard links
                pass
        shutil.copy2(source, target)
    except FileNotFoundError:
        raise IgcdError(f"{source} is missing; put it back, or export another format, which needs no files") from None


def _as_json(record: object) -> bytes:
    return (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode("utf-8", errors="backslashreplace")
