"""A new workspace: its folder, its catalog, its first photos and their labels."""

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from igcd.errors import IgcdError
from igcd.workspace.catalog import create_catalog
from igcd.workspace.labels import labels_from_folders, labels_from_table
from igcd.workspace.photos import AddReport, Progress, add_photos, find_photos
from igcd.workspace.schema import migrate


def init_workspace(
    folder: Path,
    images: Path,
    *,
    labels: Path | None = None,
    from_folders: bool = False,
    encoder: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Makes a workspace of the photos below `images`: in one transaction, so that there is all of it or nothing.

    labels: a CSV file with the columns path and category. from_folders: the folders are the labels. encoder: values of
    `igcd.config.EncoderConfig` that shall differ from those of `igcd.workspace.features.DEFAULT_ENCODER`.
    """
    if labels is not None and from_folders:
        raise IgcdError("labels come from a file or from the folders, not from both; give one of the two")
    if not images.is_dir():
        raise IgcdError(f"expected a folder of photos, got {images}, which is none; give --images FOLDER")
    found = find_photos([images], workspace=folder)
    given = {}
    if labels is not None:
        given = labels_from_table(labels, images, found)
    elif from_folders:
        given = labels_from_folders(images, found)

    def set_up(db: sqlite3.Connection) -> None:
        migrate(db)
        db.execute("INSERT INTO settings VALUES ('encoder', ?)", (json.dumps(dict(encoder or {})),))

    with create_catalog(folder) as catalog:
        return add_photos(catalog, [images], labels=given, found=found, setup=set_up, progress=progress)
