"""Small pictures of a run's gallery as data URIs, so that the page is one file."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from igcd.types import Pixels

THUMBNAIL = 96
"""Side in pixels."""
MAX_BYTES = 64_000
"""A thumbnail of 96 px has about 4,000; whatever is this large is not one."""


@dataclass(frozen=True)
class Thumbnail:
    """A picture of the page. Without `uri` there is none, and the page shows a blank in its place."""

    uri: str | None
    alt: str


def thumbnail(folder: Path, path: str, alt: str) -> Thumbnail:
    """The JPEG at a path below the run's folder; one that is missing, elsewhere, too large or no JPEG is blank."""
    try:
        file = (folder / path).resolve()
        if not file.is_relative_to(folder.resolve()):
            return Thumbnail(None, alt)
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except (OSError, ValueError):  # ValueError: the path has a NUL in it
        return Thumbnail(None, alt)
    if len(content) > MAX_BYTES or not content.startswith(b"\xff\xd8\xff"):
        return Thumbnail(None, alt)
    return Thumbnail(f"data:image/jpeg;base64,{base64.b64encode(content).decode()}", alt)


def encode_thumbnail(pixels: Pixels, alt: str) -> Thumbnail:
    """Pixels as a picture of the page. (h, w, 3)."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=85)
    return Thumbnail(f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}", alt)
