"""The interchange file `predictions.csv`: read, checked, written. One line per image, stage and split."""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from igcd.errors import IgcdError, excerpt
from igcd.records import write_bytes
from igcd.types import UNLABELED, IntArray, Predictions, StageTruth

COLUMNS = ("stage", "split", "image_id", "category", "cluster", "group")
SPLITS = ("test", "unlabeled")
NO_CLUSTER = "-1"
"""Stands in the column `cluster` for an image the system gave no prediction for."""

OLD, NEW, ABSENT = 0, 1, 2
"""Codes of groups: Old, New, and S-t (categories of stage t that are absent now) as ABSENT + t."""

MAX_NAMES = {"category": 20_000, "cluster": 100_000}
"""Beyond these the matching takes minutes, and a file with more has most likely its columns mixed up."""
MAX_LINE_BYTES = 2**16
MAX_STAGE = 999

_GROUP = re.compile(r"Old|New|S-(0|[1-9][0-9]{0,2})")
_STAGE = re.compile(r"0|[1-9][0-9]{0,2}")
_OTHER_MINUS_ONE = re.compile(r"[-−]0*1(\.0*)?")
_NO_NAME = re.compile(r"\s*(nan\s*)?\Z", re.IGNORECASE)
_BREAKS_THE_FILE = re.compile("[\0\r\n\ud800-\udfff]")  # the last are halves of characters, which UTF-8 cannot hold


@dataclass(frozen=True)
class CodedPredictions:
    """Checked predictions as numbers, row by row, (n,) each."""

    stage: IntArray
    split: IntArray  # position in SPLITS
    category: IntArray  # position among the sorted names of the categories
    cluster: IntArray  # a number for each name, -1 for no prediction
    group: IntArray  # OLD, NEW or ABSENT + t
    n_categories: int

    def take(self, rows: IntArray) -> "CodedPredictions":
        """Some of the rows; the numbers keep their meaning."""
        return CodedPredictions(
            stage=self.stage[rows],
            split=self.split[rows],
            category=self.category[rows],
            cluster=self.cluster[rows],
            group=self.group[rows],
            n_categories=self.n_categories,
        )


def read_predictions(path: Path) -> Predictions:
    """Read and check a `predictions.csv`. Raises `IgcdError` with the line of the first fault found."""
    predictions = parse_predictions(path)
    code_predictions(predictions, str(path))
    return predictions


def parse_predictions(path: Path) -> Predictions:
    """The rows of a `predictions.csv`, not yet checked against each other, for those who score them next.

    Plain CSV in UTF-8. Columns may stand in any order, further columns are ignored. No line breaks inside a cell, so
    that a row's line in the file is known.
    """
    try:
        with path.open("rb") as file:
            columns = _read_columns(file, str(path))
    except OSError as error:
        raise IgcdError(
            f"{path} cannot be read ({error.strerror or error}); give the path of a predictions.csv"
        ) from None
    stages = _parse_stages(columns["stage"], str(path))
    return Predictions(stages, *(tuple(columns[name]) for name in COLUMNS[1:]))


def write_predictions(predictions: Predictions, path: Path) -> None:
    """Write a `predictions.csv`: the same bytes for the same rows, and never half a file."""
    code_predictions(predictions, str(path))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(
        zip(predictions.stage.tolist(), *(getattr(predictions, name) for name in COLUMNS[1:]), strict=True)
    )
    write_bytes(path, text.getvalue().encode())


def stage_predictions(stage: int, clusters: Mapping[str, Sequence[int]], truth: StageTruth) -> Predictions:
    """The rows of one stage, from the clusters of the images of each split, in the order of the truth."""
    truth_of = {"test": truth.test, "unlabeled": truth.unlabeled}
    known = [truth_of[split] for split in clusters]
    splits = [split for split, of_split in clusters.items() for _ in of_split]
    return Predictions(
        stage=np.full(len(splits), stage, dtype=np.int64),
        split=tuple(splits),
        image_id=tuple(image_id for part in known for image_id in part.image_ids),
        category=tuple(category for part in known for category in part.categories),
        cluster=tuple(str(cluster) for of_split in clusters.values() for cluster in of_split),
        group=tuple(group for part in known for group in part.groups),
    )


def join_predictions(parts: Sequence[Predictions]) -> Predictions:
    """The rows of several tables, one after another: those of the stages of a run."""
    return Predictions(
        stage=np.concatenate([part.stage for part in parts]),
        split=tuple(value for part in parts for value in part.split),
        image_id=tuple(value for part in parts for value in part.image_id),
        category=tuple(value for part in parts for value in part.category),
        cluster=tuple(value for part in parts for value in part.cluster),
        group=tuple(value for part in parts for value in part.group),
    )


def code_predictions(predictions: Predictions, source: str = "predictions") -> CodedPredictions:
    """Check predictions and turn their names into numbers.

    Errors name the line that a row has in the file, where the header is line 1.
    """
    n = len(predictions)
    if n == 0:
        raise IgcdError(f"{source} has no rows; expected one per image, stage and split below the header")
    lengths = {name: len(getattr(predictions, name)) for name in COLUMNS}
    if set(lengths.values()) != {n}:
        raise IgcdError(f"{source}: columns must be equally long, got {lengths}; give every image a value in each")
    if int(predictions.stage.min()) < 0 or int(predictions.stage.max()) > MAX_STAGE:
        row = int(np.argmax((predictions.stage < 0) | (predictions.stage > MAX_STAGE)))
        raise _fault(source, row, f"expected a stage from 0 to {MAX_STAGE}, got {predictions.stage[row]}; correct it")

    split_names, split = _code(predictions.split)
    image_names, image = _code(predictions.image_id)
    category_names, category = _code(predictions.category)
    cluster_names, cluster = _code(predictions.cluster)
    group_names, group = _code(predictions.group)

    def refuse(names: Sequence[str], codes: IntArray, is_bad: Callable[[str], object], sentence: str) -> None:
        """Names are in the order of their first rows, so the first bad one is the first in the file."""
        bad = next((code for code, name in enumerate(names) if is_bad(name)), None)
        if bad is not None:
            raise _fault(source, int(np.argmax(codes == bad)), sentence.format(_shown(names[bad])))

    for column, names, codes in (
        ("split", split_names, split),
        ("image_id", image_names, image),
        ("category", category_names, category),
        ("cluster", cluster_names, cluster),
        ("group", group_names, group),
    ):
        _refuse_too_many(names, column, getattr(predictions, column), source)
        remedy = "write -1 where there is no prediction" if column == "cluster" else "fill it in"
        refuse(names, codes, _NO_NAME.match, f"expected a name in column {column}, got {{}}; {remedy}")
        if _BREAKS_THE_FILE.search("".join(names)):
            broken = f"{{}} in column {column} holds a line break or a character that CSV cannot; rename it"
            refuse(names, codes, _BREAKS_THE_FILE.search, broken)
    refuse(split_names, split, lambda name: name not in SPLITS, "expected split test or unlabeled, got {}; correct it")
    refuse(
        group_names,
        group,
        lambda name: not _GROUP.fullmatch(name),
        "expected group Old, New or S-<stage> as in S-0, got {}; correct it",
    )
    refuse(
        cluster_names,
        cluster,
        lambda name: name != NO_CLUSTER and _OTHER_MINUS_ONE.fullmatch(name),
        "cluster {} looks like the mark of no prediction; write it as -1",
    )
    coded = CodedPredictions(
        stage=predictions.stage,
        split=_translate(split, [SPLITS.index(name) for name in split_names]),
        category=_translate(category, np.argsort(np.argsort(np.array(category_names, dtype=object)))),
        cluster=_translate(cluster, [UNLABELED if name == NO_CLUSTER else i for i, name in enumerate(cluster_names)]),
        group=_translate(group, [_group_code(name) for name in group_names]),
        n_categories=len(category_names),
    )
    _refuse_contradictions(coded, image, predictions, source)
    return coded


def _refuse_contradictions(coded: CodedPredictions, image: IntArray, predictions: Predictions, source: str) -> None:
    """Rows that are each well formed and cannot all be true."""
    not_past = np.flatnonzero(coded.group - ABSENT >= coded.stage)
    if len(not_past):
        row = int(not_past[0])
        raise _fault(
            source,
            row,
            f"group {predictions.group[row]} means a category of that earlier stage, but the row is of stage "
            f"{coded.stage[row]}; correct one of them",
        )
    part = coded.stage * len(SPLITS) + coded.split
    row, first = _first_repeat(part * (int(image.max()) + 1) + image)
    if row:
        raise _fault(
            source,
            row,
            f"image {_shown(predictions.image_id[row])} is already in line {first + 2} for stage "
            f"{coded.stage[row]}, split {predictions.split[row]}; keep one of the two",
        )
    first_rows = np.flatnonzero(np.diff(np.maximum.accumulate(image), prepend=-1))  # images are numbered as they appear
    other_category = np.flatnonzero(coded.category != coded.category[first_rows[image]])
    if len(other_category):
        row = int(other_category[0])
        first = int(first_rows[image[row]])
        raise _fault(
            source,
            row,
            f"image {_shown(predictions.image_id[row])} is of category {_shown(predictions.category[row])} here and of "
            f"{_shown(predictions.category[first])} in line {first + 2}; correct one, or give two images two ids",
        )
    _, firsts, inverse = np.unique(part * coded.n_categories + coded.category, return_index=True, return_inverse=True)
    other_group = np.flatnonzero(coded.group != coded.group[firsts[inverse]])
    if len(other_group):
        row = int(other_group[0])
        first = int(firsts[inverse[row]])
        raise _fault(
            source,
            row,
            f"category {_shown(predictions.category[row])} is {predictions.group[row]} here and "
            f"{predictions.group[first]} in line {first + 2} of the same stage and split; give it one group",
        )


def _first_repeat(keys: IntArray) -> tuple[int, int]:
    """The first row whose key stood before and the row before it with that key; 0, 0 without one."""
    order = np.argsort(keys, kind="stable")
    repeats = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if not len(repeats):
        return 0, 0
    position = repeats[np.argmin(order[repeats + 1])]
    return int(order[position + 1]), int(order[position])


def _read_columns(file: BinaryIO, source: str) -> dict[str, list[str]]:
    """The cells of the known columns. Row i stands in line i + 2."""
    rows = _rows(file, source)
    header = next(rows, None)
    if header is None:
        raise IgcdError(f"{source} is empty; expected the columns {','.join(COLUMNS)} and a row per image")
    positions = _positions(header, source)
    columns: dict[str, list[str]] = {name: [] for name in COLUMNS}
    # One string per name, not per cell: a million rows repeat few names.
    names: dict[str, dict[str, str]] = {name: {} for name in COLUMNS}
    while some_rows := list(islice(rows, 1_000)):
        cells_at = list(zip(*some_rows, strict=True))
        for name, position in zip(COLUMNS, positions, strict=True):
            cells = cells_at[position]
            once = names[name].setdefault
            columns[name].extend(cells if name == "image_id" else [once(cell, cell) for cell in cells])
            _refuse_too_many(names[name], name, columns[name], source)
    return columns


def _refuse_too_many(names: Collection[str], column: str, cells: Sequence[str], source: str) -> None:
    """Names are those of the cells, in the order of their first rows."""
    most = MAX_NAMES.get(column, len(names))
    if len(names) > most:
        row = cells.index(next(islice(names, most, None)))
        raise _fault(source, row, f"expected at most {most:,} names in column {column}, got more; is it the right one?")


def _rows(file: BinaryIO, source: str) -> Iterator[list[str]]:
    """The header and the rows below it, equally long, each on a line of its own. Empty lines may end the file."""
    lines = _text_lines(file, source)
    header = next(lines, "")
    _refuse_other_separators(header, source)
    reader = csv.reader(chain([header], lines), strict=True)
    line, n_cells, empty_line = 0, 0, 0
    try:
        for row in reader:
            line += 1
            n_cells = n_cells or len(row)
            if not row:
                empty_line = empty_line or line
                continue
            if empty_line:
                raise IgcdError(f"{source}, line {empty_line} is empty; remove it")
            if reader.line_num != line:
                raise IgcdError(
                    f"{source}, line {line}: a quoted cell does not end on its line; close the quote and keep line "
                    "breaks out of cells"
                )
            if len(row) != n_cells:
                raise IgcdError(
                    f"{source}, line {line}: expected {n_cells} cells as in the header, got {len(row)}; complete the "
                    "row, and quote cells that hold a comma"
                )
            yield row
    except csv.Error as error:
        raise IgcdError(f"{source}, line {line + 1} is not valid CSV ({error}); check its quotes") from None


def _refuse_other_separators(header: str, source: str) -> None:
    """Spreadsheets set to some languages put semicolons where CSV has commas."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        cells = {cell.strip().strip('"') for cell in header.split(separator)}
        if len(cells & set(COLUMNS)) > 1:
            raise IgcdError(
                f"{source}, line 1: expected commas between the columns, got {name}; save the file with commas"
            )


def _positions(header: Sequence[str], source: str) -> list[int]:
    """Where the known columns stand."""
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise IgcdError(
            f"{source}, line 1: expected the columns {','.join(COLUMNS)}, missing {', '.join(missing)}; "
            "name them in the header"
        )
    twice = [name for name in COLUMNS if list(header).count(name) > 1]
    if twice:
        raise IgcdError(f"{source}, line 1: column {twice[0]} appears twice; keep one")
    return [list(header).index(name) for name in COLUMNS]


def _text_lines(file: BinaryIO, source: str) -> Iterator[str]:
    """Decoded lines. Bytes are read line by line, so a fault has a line and an endless line does not fill memory."""
    encoding = "utf-8-sig"  # the first line may open with the byte order mark that spreadsheets write
    line = 0
    while encoded := file.readline(MAX_LINE_BYTES + 1):
        line += 1
        if len(encoded) > MAX_LINE_BYTES:
            raise IgcdError(f"{source}, line {line} is longer than {MAX_LINE_BYTES:,} bytes; is this a CSV file?")
        if b"\0" in encoded:
            raise IgcdError(f"{source}, line {line} holds a NUL byte; save the file as plain CSV in UTF-8")
        try:
            yield encoded.decode(encoding)
        except UnicodeDecodeError as error:
            raise IgcdError(
                f"{source}, line {line} is not UTF-8 (byte 0x{encoded[error.start]:02x}); save the file as UTF-8"
            ) from None
        encoding = "utf-8"


def _parse_stages(column: Sequence[str], source: str) -> IntArray:
    """Whole numbers, written plainly: 1, not 1.0."""
    names, codes = _code(column)
    for code, name in enumerate(names):
        if not _STAGE.fullmatch(name):
            row = int(np.argmax(codes == code))
            raise _fault(source, row, f"expected a whole number up to {MAX_STAGE} as stage, got {_shown(name)}")
    return _translate(codes, [int(name) for name in names])


def _code(column: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """The distinct names in the order of their first rows, and each row's position among them."""
    names = dict.fromkeys(column)
    position = dict(zip(names, range(len(names)), strict=True))
    return tuple(position), np.fromiter(map(position.__getitem__, column), dtype=np.int64, count=len(column))


def _translate(codes: IntArray, new_codes: Sequence[int] | IntArray) -> IntArray:
    return np.asarray(new_codes, dtype=np.int64)[codes]


def _group_code(name: str) -> int:
    return {"Old": OLD, "New": NEW}[name] if name in ("Old", "New") else ABSENT + int(name[2:])


def group_name(code: int) -> str:
    """How a group is written in the file.

    >>> group_name(OLD), group_name(NEW), group_name(ABSENT + 1)
    ('Old', 'New', 'S-1')
    """
    return ("Old", "New")[code] if code in (OLD, NEW) else f"S-{code - ABSENT}"


def _shown(cell: str) -> str:
    """A cell for an error message: escaped, as it may hold anything, and short."""
    return excerpt(repr(cell), limit=42)


def _fault(source: str, row: int, sentence: str) -> IgcdError:
    return IgcdError(f"{source}, line {row + 2}: {sentence}")
