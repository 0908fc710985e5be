"""Darwin Core: an archive (zip with meta.xml), a GBIF download (zip with one table), or a table by itself.

The table is read inside the zip; nothing is unpacked. https://dwc.tdwg.org/text/
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from igcd.data.observations import Observations
from igcd.data.sightings import Sighting, observations_of, ranks_of
from igcd.data.taxonomy import RANKS
from igcd.errors import IgcdError

NAMESPACE = "{http://rs.tdwg.org/dwc/text/}"
IDS = ("gbifID", "occurrenceID", "catalogNumber", "id")
PLACE = ("decimalLatitude", "decimalLongitude")
MAX_META_BYTES = 1 << 20
MAX_HEADER_LINES = 1_000


@dataclass(frozen=True)
class _Layout:
    """How the table of an archive is written."""

    member: str
    encoding: str = "utf-8-sig"
    delimiter: str = "\t"
    quote: str = ""
    n_header_lines: int = 1
    terms: Mapping[str, int] | None = None  # term -> column; None: in the first line
    defaults: Mapping[str, str] | None = None


def read_darwin_core(path: Path, images: Path | None = None) -> Observations:
    """The observations of an archive or table, with the photos of a folder or without any. No row is a test image."""
    if zipfile.is_zipfile(path) or path.suffix.lower() == ".zip":
        with _one_sentence(path):
            archive = zipfile.ZipFile(path)
        with archive:
            layout = _layout(archive, path)
            return observations_of(_sightings(_lines(archive, layout, path), layout, path), path.stem, images)
    first = next(_lines(None, _Layout(path.name), path), "")
    delimiter = "\t" if "\t" in first else ","
    layout = _Layout(path.name, delimiter=delimiter, quote="" if delimiter == "\t" else '"')
    return observations_of(_sightings(_lines(None, layout, path), layout, path), path.stem, images)


def _lines(archive: zipfile.ZipFile | None, layout: _Layout, path: Path) -> Iterator[str]:
    """The lines of the table, in an archive or by itself; what goes wrong while reading them is said here."""
    with _one_sentence(path), path.open("rb") if archive is None else archive.open(layout.member) as raw:
        yield from io.TextIOWrapper(raw, encoding=layout.encoding, newline="")


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    """Around the reading of bytes alone: zipfile and its decompressors raise whatever damage leads them to."""
    try:
        yield
    except (UnicodeError, LookupError):
        raise IgcdError(f"the table in {path} is not text of the encoding it claims; download it again") from None
    except OSError as error:
        raise IgcdError(
            f"{path} cannot be read ({error.strerror or error}); check that it exists, or download it again"
        ) from None
    except Exception as error:
        raise IgcdError(f"{path} is damaged or locked ({error}); download it again") from None


def _layout(archive: zipfile.ZipFile, path: Path) -> _Layout:
    names = [info.filename for info in archive.infolist() if info.filename and not info.filename.endswith("/")]
    for name in names:
        if _leaves_its_folder(name):
            raise IgcdError(
                f"{path} has the file {name!r}, which leaves its folder; take an archive from its publisher"
            )
    if "meta.xml" in names:
        layout = _described_layout(archive, path)
        if layout.member not in names:
            raise IgcdError(f"{path}: meta.xml names {layout.member!r}, which is not in the archive; download it again")
        return layout
    tables = [name for name in names if name.lower().endswith((".csv", ".tsv", ".txt"))]
    tables = [name for name in tables if name == "occurrence.txt"] or tables
    if len(tables) != 1:
        raise IgcdError(
            f"{path} must hold meta.xml, occurrence.txt or one table, got {', '.join(names[:6]) or 'nothing'}; "
            "take a Darwin Core archive or a GBIF occurrence download"
        )
    return _Layout(tables[0])


def _leaves_its_folder(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or any(":" in part for part in path.parts[:1])


def _described_layout(archive: zipfile.ZipFile, path: Path) -> _Layout:
    if archive.getinfo("meta.xml").file_size > MAX_META_BYTES:
        raise IgcdError(f"{path}: meta.xml is larger than {MAX_META_BYTES:,} bytes; it is not a Darwin Core archive")
    with _one_sentence(path):
        text = archive.read("meta.xml")
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:  # entities can blow up; Darwin Core has none
        raise IgcdError(f"{path}: meta.xml defines entities, which Darwin Core does not; take the original archive")
    try:
        core = ElementTree.fromstring(text).find(f"{NAMESPACE}core")  # noqa: S314 - entities were refused above
        location = None if core is None else core.findtext(f"{NAMESPACE}files/{NAMESPACE}location")
        if core is None or not location:
            raise IgcdError(f"{path}: meta.xml describes no core table; take a Darwin Core archive of occurrences")
        terms: dict[str, int] = {}
        defaults: dict[str, str] = {}
        for field in core.findall(f"{NAMESPACE}field"):
            term = field.get("term", "").rstrip("/").rpartition("/")[2]
            if field.get("index") is not None:
                terms[term] = int(field.get("index", ""))
            elif field.get("default") is not None:
                defaults[term] = field.get("default", "")
        identifier = core.find(f"{NAMESPACE}id")
        if identifier is not None:
            terms.setdefault("id", int(identifier.get("index", "0")))
        delimiter = _unescaped(core.get("fieldsTerminatedBy", ","))
        quote = _unescaped(core.get("fieldsEnclosedBy", '"'))
        n_header_lines = int(core.get("ignoreHeaderLines", "0"))
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # LookupError: an encoding that there is not
        raise IgcdError(f"{path}: meta.xml cannot be read ({error}); download it again") from None
    if not 0 <= n_header_lines <= MAX_HEADER_LINES:
        raise IgcdError(
            f"{path}: ignoreHeaderLines in meta.xml must lie between 0 and {MAX_HEADER_LINES:,}, got {n_header_lines}; "
            "download it again or correct meta.xml"
        )
    if min(terms.values(), default=0) < 0:
        raise IgcdError(
            f"{path}: columns in meta.xml count from 0, got {min(terms.values())}; download it again or correct it"
        )
    if len(delimiter) != 1 or len(quote) > 1 or delimiter in ("\n", "\r", quote) or quote in ("\n", "\r"):
        raise IgcdError(
            f"{path}: fields must be separated by one character and enclosed by another, meta.xml says {delimiter!r} "
            f"and {quote!r}; convert the table"
        )
    encoding = core.get("encoding", "utf-8")
    encoding = "utf-8-sig" if encoding.lower().replace("-", "") == "utf8" else encoding
    return _Layout(location.strip(), encoding, delimiter, quote, n_header_lines, terms, defaults)


def _unescaped(text: str) -> str:
    return text.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r")


def _sightings(lines: Iterable[str], layout: _Layout, path: Path) -> Iterator[Sighting]:
    rows = (
        csv.reader(lines, delimiter=layout.delimiter, quotechar=layout.quote, strict=True)
        if layout.quote
        else csv.reader(lines, delimiter=layout.delimiter, quoting=csv.QUOTE_NONE)
    )
    try:
        header = list(islice(rows, layout.n_header_lines))
        terms = layout.terms
        if terms is None:
            columns = header[0] if header else []
            terms = {column.rpartition(":")[2]: position for position, column in enumerate(columns)}
        _require_terms(terms, path)
        for row in rows:
            if not row:
                continue
            if max(terms.values()) >= len(row):
                raise IgcdError(
                    f"{path} line {rows.line_num} must have {max(terms.values()) + 1} fields, it has {len(row)}; "
                    "the table is damaged, download it again"
                )
            values = {**(layout.defaults or {}), **{term: row[position].strip() for term, position in terms.items()}}
            yield _sighting(values, rows.line_num)
    except csv.Error as error:
        raise IgcdError(f"{path} line {rows.line_num} cannot be read ({error}); download it again") from None


def _require_terms(terms: Mapping[str, int], path: Path) -> None:
    expected: Sequence[tuple[str, ...]] = (
        IDS,
        ("eventDate", "year"),
        PLACE[:1],
        PLACE[1:],
        ("species", "scientificName"),
    )
    missing = [" or ".join(choice) for choice in expected if not any(term in terms for term in choice)]
    if missing:
        raise IgcdError(
            f"{path} lacks the Darwin Core terms {', '.join(missing)}; it has "
            f"{', '.join(list(terms)[:12]) or 'none'}, take an occurrence table"
        )


def _sighting(values: Mapping[str, str], line: int) -> Sighting:
    # GBIF leaves `species` empty where only the genus is known; `scientificName` would still carry a name there.
    name = values["species"] if "species" in values else values.get("scientificName", "")
    key = next((values[term] for term in IDS if values.get(term)), "")
    return Sighting(
        line=line,
        key=key.rstrip("/").rpartition("/")[2],  # an occurrenceID may be an address that ends in the number
        date=values.get("eventDate") or values.get("year", ""),
        latitude=values["decimalLatitude"],
        longitude=values["decimalLongitude"],
        name=name,
        ranks=ranks_of({rank: values.get(rank, "") for rank in RANKS}, name),
        common_name=values.get("vernacularName", ""),
    )
