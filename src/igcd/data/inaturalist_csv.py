"""The CSV that iNaturalist exports: one line per observation (https://www.inaturalist.org/observations/export)."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from igcd.data.observations import Observations
from igcd.data.sightings import Sighting, observations_of, ranks_of
from igcd.data.taxonomy import RANKS
from igcd.errors import IgcdError

REQUIRED = ("id", "observed_on", "latitude", "longitude", "scientific_name")
FILE_NAME_COLUMNS = ("file_name", "filename", "image", "photo")

# iNaturalist's "iconic taxa" are kingdoms, phyla and classes mixed; exports without more columns still tell these.
ICONIC: Mapping[str, Mapping[str, str]] = {
    **{kingdom: {"kingdom": kingdom} for kingdom in ("Animalia", "Plantae", "Fungi", "Chromista", "Protozoa")},
    "Mollusca": {"kingdom": "Animalia", "phylum": "Mollusca"},
    **{
        name: {"kingdom": "Animalia", "phylum": "Chordata", "class": name}
        for name in ("Actinopterygii", "Amphibia", "Reptilia", "Aves", "Mammalia")
    },
    **{name: {"kingdom": "Animalia", "phylum": "Arthropoda", "class": name} for name in ("Insecta", "Arachnida")},
}


def read_inaturalist_csv(path: Path, images: Path | None = None) -> Observations:
    """The observations of an export, with the photos of a folder or without any. No row is a test image."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return observations_of(_sightings(file, path), path.stem, images)
    except UnicodeDecodeError:
        raise IgcdError(f"{path} must be UTF-8 text, got other bytes; export it again or save it as UTF-8") from None
    except OSError as error:
        raise IgcdError(f"{path} cannot be read ({error.strerror}); check that it exists") from None


def _sightings(lines: Iterable[str], path: Path) -> Iterator[Sighting]:
    reader = csv.DictReader(lines, strict=True)
    try:
        columns = list(reader.fieldnames or [])
        missing = [column for column in REQUIRED if column not in columns]
        if missing:
            raise IgcdError(
                f"{path} must have the columns {', '.join(REQUIRED)}, missing: {', '.join(missing)}; "
                f"it has {', '.join(map(repr, columns[:12])) or 'none'}, rename them or export it again"
            )
        for row in reader:
            if None in row or None in row.values():
                raise IgcdError(
                    f"{path} line {reader.line_num} must have {len(columns)} fields like the first line, it has "
                    f"{'more' if None in row else 'fewer'}; repair the line or export it again"
                )
            yield _sighting(row, reader.line_num)
    except csv.Error as error:
        raise IgcdError(f"{path} line {reader.line_num} is not valid CSV ({error}); export it again") from None


def _sighting(row: Mapping[str, str], line: int) -> Sighting:
    name = row["scientific_name"].strip()
    iconic = ICONIC.get(row.get("iconic_taxon_name", ""), {})
    named = {rank: row.get(f"taxon_{rank}_name") or iconic.get(rank, "") for rank in RANKS}
    return Sighting(
        line=line,
        key=row["id"].strip(),
        date=row["observed_on"] or row.get("time_observed_at", ""),
        latitude=row["latitude"],
        longitude=row["longitude"],
        name=name,
        ranks=ranks_of(named, name),
        common_name=row.get("common_name", ""),
        file_name=next((row[column].strip() for column in FILE_NAME_COLUMNS if row.get(column)), ""),
    )
