"""iNat2021: its annotation files (COCO layout) and its image folders as they unpack.

The training file lists 2.7 million images in about a gigabyte of JSON. It is read record by record, so memory holds
the columns that stages need and nothing else. The files may stay packed as they are downloaded (`.json.tar.gz`).
"""

import gzip
import io
import os
import struct
import tarfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from igcd.data.dataset import is_plain_name
from igcd.data.files import read_to_the_end
from igcd.data.json_records import JsonRecords
from igcd.data.observations import Observations, degrees_of, is_path_below_a_folder, joined, unique_names, year_of
from igcd.data.taxonomy import RANKS, Taxon
from igcd.errors import IgcdError
from igcd.types import IntArray

MIN_ID, MAX_ID = -(1 << 63), (1 << 63) - 1  # what a column of 64-bit numbers holds
SECTIONS = ("images", "annotations", "categories")
LAYOUT = (
    "the iNat2021 layout has images (id, file_name, date, latitude, longitude), annotations (image_id, category_id) "
    "and categories (id, name)"
)

Progress = Callable[[int], None]


def read_inat2021(
    train: Path, val: Path | None = None, *, name: str = "inat2021", on_progress: Progress | None = None
) -> Observations:
    """The observations of annotation files: training images of `train`, test images of `val`.

    `on_progress` is given the number of images read so far, now and then.
    """
    parts = [read_annotations(train, is_test=False, on_progress=on_progress)]
    if val is not None:
        n_before = len(parts[0])
        later = None if on_progress is None else lambda n_read: on_progress(n_before + n_read)
        parts.append(read_annotations(val, is_test=True, on_progress=later))
    return joined(name, parts)


def read_annotations(path: Path, *, is_test: bool, on_progress: Progress | None = None) -> Observations:
    """The observations of one annotation file, `.json`, `.json.gz` or `.json.tar.gz`, read as a stream."""
    with _opened(path) as stream:
        records = JsonRecords(io.TextIOWrapper(stream, encoding="utf-8-sig"), str(path), LAYOUT).sections()
        return _observations(records, path.name, is_test=is_test, on_progress=on_progress)


def from_annotations(train: Mapping[str, Any], val: Mapping[str, Any] | None = None, *, name: str) -> Observations:
    """The observations of annotations in memory, of the same layout as the files."""

    def records(annotations: Mapping[str, Any]) -> Iterator[tuple[str, Iterator[Any]]]:
        return ((section, iter(annotations[section])) for section in SECTIONS if section in annotations)

    parts = [_observations(records(train), f"{name} train", is_test=False)]
    if val is not None:
        parts.append(_observations(records(val), f"{name} val", is_test=True))
    return joined(name, parts)


def missing_files(root: Path, image_ids: Iterable[str]) -> list[str]:
    """The images that have no file below `root`. Lists each folder once instead of asking for each file."""
    present: dict[str, frozenset[str]] = {}
    missing = []
    for image_id in image_ids:
        folder, _, name = image_id.rpartition("/")
        if folder not in present:
            present[folder] = _names_in(root / folder)
        if name not in present[folder]:
            missing.append(image_id)
    return missing


def describe_missing(root: Path, missing: Sequence[str], n_images: int) -> str:
    """One line about all missing files, by their first folder."""
    counts: dict[str, int] = {}
    for image_id in missing:
        top = image_id.split("/", 1)[0] if "/" in image_id else "."
        counts[top] = counts.get(top, 0) + 1
    folders = ", ".join(f"{folder} {count:,}" for folder, count in sorted(counts.items()))
    return f"{len(missing):,} of {n_images:,} images have no file below {root}: {folders}; {missing[0]!r} for one"


def _names_in(folder: Path) -> frozenset[str]:
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries)
    except OSError:
        return frozenset()


def _is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON can hold and a file cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Columns:
    """The columns of one annotation file while it is read."""

    def __init__(self, source: str, on_progress: Progress | None) -> None:
        self._source = source
        self._on_progress = on_progress
        self.file_names: list[str] = []
        self.image_keys = array("q")
        self.years = array("h")
        self.latitude = array("d")
        self.longitude = array("d")
        self.annotated_keys = array("q")
        self.annotated_categories = array("q")
        self.categories: list[Mapping[str, Any]] = []

    def add_images(self, records: Iterator[Any]) -> None:
        for record in records:
            try:
                file_name = record["file_name"]
                self.image_keys.append(record["id"])
            except (KeyError, TypeError, IndexError, OverflowError) as error:
                raise self._bad_record("image", len(self.file_names), error) from None
            if type(file_name) is not str or not is_path_below_a_folder(file_name):
                raise IgcdError(
                    f"{self._source}: image number {len(self.file_names) + 1:,}: file_name must be a path below a "
                    f"folder, got {file_name!r}; {LAYOUT}"
                )
            self.file_names.append(file_name)
            self.years.append(year_of(record.get("date")))
            self.latitude.append(degrees_of(record.get("latitude")))
            self.longitude.append(degrees_of(record.get("longitude")))
            if self._on_progress is not None and len(self.file_names) % 50_000 == 0:
                self._on_progress(len(self.file_names))

    def add_annotations(self, records: Iterator[Any]) -> None:
        for record in records:
            try:
                self.annotated_keys.append(record["image_id"])
                self.annotated_categories.append(record["category_id"])
            except (KeyError, TypeError, IndexError, OverflowError) as error:
                raise self._bad_record("annotation", len(self.annotated_categories), error) from None

    def add_categories(self, records: Iterator[Any]) -> None:
        for record in records:
            if not isinstance(record, Mapping) or not isinstance(record.get("id"), int):
                raise self._bad_record("category", len(self.categories), KeyError("id"))
            if not MIN_ID <= record["id"] <= MAX_ID:
                raise self._bad_record("category", len(self.categories), OverflowError())
            if not is_plain_name(str(record.get("name") or "")):
                raise self._bad_record("category", len(self.categories), KeyError("name"))
            for key in (*RANKS, "common_name"):
                if not _is_unicode(str(record.get(key) or "")):
                    error = ValueError(f"{key} {record[key]!r} is not Unicode text")
                    raise self._bad_record("category", len(self.categories), error)
            self.categories.append(record)

    def _bad_record(self, kind: str, position: int, error: Exception) -> IgcdError:
        reason = f"an id must lie between {MIN_ID} and {MAX_ID}" if isinstance(error, OverflowError) else error
        wrong = f"no {error.args[0]!r}" if isinstance(error, KeyError) else f"a wrong value ({reason})"
        return IgcdError(f"{self._source}: {kind} number {position + 1:,} has {wrong}; {LAYOUT}")


def _observations(
    sections: Iterator[tuple[str, Iterator[Any]]], source: str, *, is_test: bool, on_progress: Progress | None = None
) -> Observations:
    columns = _Columns(source, on_progress)
    readers = {
        "images": columns.add_images,
        "annotations": columns.add_annotations,
        "categories": columns.add_categories,
    }
    found = []
    for section, records in sections:
        found.append(section)
        if section in readers:
            readers[section](records)
        else:
            for _ in records:  # info and licenses say nothing about stages
                pass
    absent = [section for section in SECTIONS if section not in found]
    if absent:
        raise IgcdError(f"{source} has no {' and no '.join(absent)}, only {', '.join(found) or 'nothing'}; {LAYOUT}")

    image_keys = np.frombuffer(columns.image_keys, dtype=np.int64) if columns.image_keys else np.empty(0, np.int64)
    category_keys = np.asarray([record["id"] for record in columns.categories], dtype=np.int64)
    by_key = np.argsort(category_keys, kind="stable")
    _refuse_duplicates(image_keys, "images", source)
    _refuse_duplicates(category_keys, "categories", source)
    category_of_image = _category_of_image(columns, image_keys, source)
    position = np.searchsorted(category_keys, category_of_image, sorter=by_key)
    codes = np.minimum(position, len(category_keys) - 1) if len(category_keys) else position
    unknown = category_of_image
    if len(category_keys):
        unknown = category_of_image[category_keys[by_key[codes]] != category_of_image]
    if len(unknown):
        raise IgcdError(
            f"{source}: category {unknown[0]} of an annotation is not listed among the categories; {LAYOUT}"
        )
    return Observations(
        name=source,
        image_ids=tuple(columns.file_names),
        categories=codes.astype(np.int64),
        taxa=_taxa([columns.categories[i] for i in by_key]),
        years=np.array(columns.years, dtype=np.int16),
        latitude=np.array(columns.latitude, dtype=np.float64),
        longitude=np.array(columns.longitude, dtype=np.float64),
        is_test=np.full(len(image_keys), is_test),
    )


def _taxa(categories: Sequence[Mapping[str, Any]]) -> tuple[Taxon, ...]:
    names = unique_names([str(record["name"]) for record in categories], [record["id"] for record in categories])
    return tuple(
        Taxon(
            name,
            tuple(str(record.get(rank) or "") for rank in RANKS),
            str(record.get("common_name") or ""),
        )
        for name, record in zip(names, categories, strict=True)
    )


def _category_of_image(columns: _Columns, image_keys: IntArray, source: str) -> IntArray:
    """The category id of each image, (n,); every image has one annotation and every annotation an image."""
    annotated = np.array(columns.annotated_keys, dtype=np.int64)
    _refuse_duplicates(annotated, "annotations", source, what="image_id")
    by_key, by_annotation = np.argsort(image_keys, kind="stable"), np.argsort(annotated, kind="stable")
    if not np.array_equal(image_keys[by_key], annotated[by_annotation]):
        without_image = np.setdiff1d(annotated, image_keys)
        without_annotation = np.setdiff1d(image_keys, annotated)
        if len(without_image):
            raise IgcdError(
                f"{source}: {len(without_image):,} annotations have no image, image_id {without_image[0]} for one; "
                "the file is damaged or was cut, take the original"
            )
        raise IgcdError(
            f"{source}: {len(without_annotation):,} images have no annotation, id {without_annotation[0]} for one; "
            "public test files have none, take train.json or val.json"
        )
    category_of_image = np.empty(len(image_keys), dtype=np.int64)
    category_of_image[by_key] = np.array(columns.annotated_categories, dtype=np.int64)[by_annotation]
    return category_of_image


def _refuse_duplicates(keys: IntArray, section: str, source: str, what: str = "id") -> None:
    in_order = np.sort(keys)
    twice = in_order[1:][in_order[1:] == in_order[:-1]]
    if len(twice):
        raise IgcdError(f"{source}: {what} {twice[0]} appears twice among the {section}; take the original file")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of the JSON document in a file that may be packed; nothing is unpacked to the disk."""
    try:
        with path.open("rb") as raw:
            is_gzip = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not is_gzip:
                yield raw
            elif path.name.endswith((".tar.gz", ".tgz")):
                with tarfile.open(fileobj=raw, mode="r:gz") as archive:
                    yield _json_member(archive, path)
                    read_to_the_end(archive)
            else:
                with gzip.open(raw) as unpacked:
                    yield io.BufferedReader(unpacked)
    except (EOFError, OverflowError, gzip.BadGzipFile, struct.error, tarfile.TarError, zlib.error) as error:
        raise IgcdError(f"{path} is damaged or cut short ({error}); download it again") from None
    except OSError as error:
        raise IgcdError(f"{path} cannot be read ({error.strerror or error}); check that it exists") from None


def _json_member(archive: tarfile.TarFile, path: Path) -> IO[bytes]:
    for member in archive:
        content = archive.extractfile(member) if member.isfile() and member.name.endswith(".json") else None
        if content is not None:
            return content
    raise IgcdError(f"{path} has no .json file in it; take the annotations of iNat2021, not its images")
