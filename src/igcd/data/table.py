"""Your own images, listed in a CSV file with their categories."""

import csv
from collections.abc import Iterator
from pathlib import Path

from igcd.data.dataset import Dataset, is_plain_name
from igcd.data.ordering import listed
from igcd.errors import IgcdError

IS_TEST = {"train": False, "": False, "test": True}


def load(
    root: Path,
    *,
    images: Path | None = None,
    path_column: str = "path",
    category_column: str = "category",
    split_column: str = "split",
    delimiter: str = ",",
) -> Dataset:
    """The images that the CSV file `root` lists, with paths relative to the folder `images` (default: the file's own).

    The column of splits (train or test) may be absent: then all images are for training.
    """
    folder = Path(images) if images is not None else root.parent
    if not folder.is_dir():
        raise IgcdError(
            f"the images of a table must lie in a folder, {folder} is not a folder; set images=FOLDER "
            "(igcd build: --option images=FOLDER)"
        )
    rows: dict[str, tuple[str, bool]] = {}
    for line, row in _rows(root, (path_column, category_column), delimiter):
        path, category, split = row[path_column], row[category_column].strip(), row.get(split_column) or ""
        where = f"{root}, line {line}"
        image_id = _inside(path, folder, where)
        if image_id in rows:
            raise IgcdError(f"{where}: each image must be listed once, got {path!r} again; remove one of the lines")
        if not is_plain_name(category):
            raise IgcdError(f"{where}: expected a category, got {category!r}; name it without tabs and line breaks")
        if split.strip().lower() not in IS_TEST:
            raise IgcdError(f"{where}: {split_column} must be train or test, got {split!r}; correct it")
        rows[image_id] = category, IS_TEST[split.strip().lower()]
    if not rows:
        raise IgcdError(f"{root} lists no images; write one line per image below the header")

    names = sorted({category for category, _ in rows.values()})
    codes = {category: code for code, category in enumerate(names)}
    coded = ((image_id, codes[category], is_test) for image_id, (category, is_test) in rows.items())
    return listed(root.stem, folder, coded, names)


def _inside(path: str, folder: Path, where: str) -> str:
    """The path relative to the folder, with `/`."""
    relative = Path(path)
    if relative.is_absolute() and relative.is_relative_to(folder.absolute()):
        relative = relative.relative_to(folder.absolute())
    if not path.strip() or relative.is_absolute() or ".." in relative.parts or relative == Path():
        raise IgcdError(f"{where}: expected a path inside {folder}, got {path!r}; give it relative to that folder")
    return relative.as_posix()


def _rows(path: Path, required: tuple[str, ...], delimiter: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row by column name, with its line number."""
    if not path.is_file():
        raise IgcdError(f"expected a CSV file with the columns {', '.join(required)}, got {path}, which is not a file")
    with path.open(encoding="utf-8-sig", newline="", errors="surrogateescape") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        header: list[str] | None = None
        try:
            for row in reader:
                if not any(row):
                    continue
                _check_utf8(row, path, reader.line_num)
                if header is None:
                    header = [name.strip() for name in row]
                    _check_header(header, required, path, delimiter)
                elif len(row) != len(header):
                    raise IgcdError(
                        f"{path}, line {reader.line_num}: expected {len(header)} values, got {len(row)}; "
                        "put quotes around values that hold the delimiter"
                    )
                else:
                    yield reader.line_num, dict(zip(header, row, strict=True))
        except csv.Error as error:
            raise IgcdError(f"{path}, line {reader.line_num}: not a CSV line ({error}); correct it") from None
    if header is None:
        raise IgcdError(f"{path} is empty; write the columns {', '.join(required)} into its first line")


def _check_utf8(row: list[str], path: Path, line: int) -> None:
    try:
        "".join(row).encode("utf-8")
    except UnicodeEncodeError:
        raise IgcdError(f"{path}, line {line}: expected UTF-8 text, got other bytes; save the file as UTF-8") from None


def _check_header(header: list[str], required: tuple[str, ...], path: Path, delimiter: str) -> None:
    missing = [name for name in required if name not in header]
    if missing:
        raise IgcdError(
            f"{path}, line 1: expected columns {', '.join(required)} between {delimiter!r}, got {', '.join(header)}; "
            f"missing: {', '.join(missing)}; rename them or name yours in the options"
        )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise IgcdError(f"{path}, line 1: column names must be unique, got {', '.join(twice)} twice; rename one")
