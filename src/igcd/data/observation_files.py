"""Reads files of observations: recognizes an iNaturalist export or Darwin Core by their content."""

import zipfile
from pathlib import Path

from igcd.data.darwin_core import PLACE, read_darwin_core
from igcd.data.inaturalist_csv import read_inaturalist_csv
from igcd.data.observations import Observations
from igcd.errors import IgcdError


def read_observation_file(path: Path, images: Path | None = None) -> Observations:
    """The observations of an iNaturalist CSV, a Darwin Core archive or an occurrence table."""
    try:
        with path.open("rb") as file:
            first_line = file.readline(1 << 16)
    except OSError as error:
        raise IgcdError(f"{path} cannot be read ({error.strerror}); check that it exists") from None
    is_darwin_core = zipfile.is_zipfile(path) or path.suffix.lower() == ".zip" or PLACE[0].encode() in first_line
    return (read_darwin_core if is_darwin_core else read_inaturalist_csv)(path, images)
