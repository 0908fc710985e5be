"""When and where a photo was taken, from its EXIF data or the columns of a table."""

import contextlib
import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

EXIF_BLOCK, GPS_BLOCK = 0x8769, 0x8825
TAKEN, CHANGED = 0x9003, 0x0132
LATITUDE_REF, LATITUDE, LONGITUDE_REF, LONGITUDE = 1, 2, 3, 4


@dataclass(frozen=True)
class Shot:
    """What is known of the taking of a photo."""

    taken: str | None = None  # 2026-07-01T12:30:00, in the time of the camera
    latitude: float | None = None  # degrees
    longitude: float | None = None

    def __bool__(self) -> bool:
        return self != Shot()


def read_shot(path: Path) -> Shot:
    """What the EXIF data of a file say; nothing where there are none, or where they make no sense."""
    taken = latitude = longitude = None
    with contextlib.suppress(Exception), Image.open(path) as image:  # EXIF data are what anybody wrote there
        exif = image.getexif()
        if not exif:
            return Shot()
        taken = parse_time(exif.get_ifd(EXIF_BLOCK).get(TAKEN) or exif.get(CHANGED))
        gps = exif.get_ifd(GPS_BLOCK)
        latitude = degrees(gps.get(LATITUDE), gps.get(LATITUDE_REF), limit=90)
        longitude = degrees(gps.get(LONGITUDE), gps.get(LONGITUDE_REF), limit=180)
    if latitude is None or longitude is None:
        latitude = longitude = None
    return Shot(taken, latitude, longitude)


def shots_from_table(path: Path) -> dict[str, Shot]:
    """When and where the photos of a CSV file were taken, by their path, where it has iNaturalist's columns for it.

    These are observed_on, latitude and longitude; what makes no sense in them is left out.
    """
    shots: dict[str, Shot] = {}
    # The labels in the file were read before this; where its other columns cannot be, there is no date and place.
    with contextlib.suppress(csv.Error, UnicodeDecodeError), path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            day = re.match(r"\d{4}-\d\d-\d\d", row.get("observed_on") or "")
            latitude = degrees([row.get("latitude") or "none"], None, limit=90)
            longitude = degrees([row.get("longitude") or "none"], None, limit=180)
            if latitude is None or longitude is None:
                latitude = longitude = None
            shot = Shot(f"{day[0]}T00:00:00" if day else None, latitude, longitude)
            if shot and row.get("path"):
                shots[row["path"]] = shot
    return shots


def parse_time(text: Any) -> str | None:  # noqa: ANN401 - whatever a camera wrote
    """EXIF's way of writing a time as ISO 8601.

    >>> parse_time("2026:07:01 12:30:00"), parse_time("0000:00:00 00:00:00"), parse_time(None)
    ('2026-07-01T12:30:00', None, None)
    """
    found = re.match(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d):(\d\d)(?::(\d\d))?", str(text or ""))
    if found is None or found[1] == "0000" or not 1 <= int(found[2]) <= 12 or not 1 <= int(found[3]) <= 31:
        return None
    return f"{found[1]}-{found[2]}-{found[3]}T{found[4]}:{found[5]}:{found[6] or '00'}"


def degrees(parts: Any, side: Any, *, limit: float) -> float | None:  # noqa: ANN401 - whatever a camera wrote
    """Degrees, minutes and seconds as one number, negative in the south and west.

    >>> degrees((48, 30, 0), "S", limit=90), degrees((200, 0, 0), "N", limit=90)
    (-48.5, None)
    """
    try:
        value = sum(float(part) / 60**power for power, part in enumerate(parts))
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    value = -value if side in ("S", "W") else value
    return value if abs(value) <= limit else None
