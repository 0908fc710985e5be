"""A new workspace: its folder, its catalog, its first photos and their labels."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from igcd.errors import IgcdError
from igcd.workspace.catalog import Catalog, new_folder
from igcd.workspace.defaults import default_encoder
from igcd.workspace.imports import labels_from_json
from igcd.workspace.labels import (
    Choice,
    LabelConflict,
    labels_from_folders,
    labels_from_table,
    refuse_unusable,
    settle,
    unusable_names,
)
from igcd.workspace.photos import AddReport, FoundFile, Progress, find_photos, read_photos, write_photos
from igcd.workspace.schema import migrate, schema_version
from igcd.workspace.shots import shots_from_table


def init_workspace(
    folder: Path,
    images: Path,
    *,
    labels: Path | None = None,
    from_folders: bool = False,
    on_conflict: Choice | None = None,
    encoder: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Makes a workspace of the photos below `images`: in one transaction, so that there is all of it or nothing.

    labels: a CSV file with the columns path and category, or what COCO or Label Studio wrote, *.json. from_folders: the
    folders are the labels. on_conflict: which label a photo with several gets; without it they are refused. encoder:
    values of `igcd.config.EncoderConfig` that differ from `igcd.workspace.defaults.default_encoder`.
    """
    if labels is not None and from_folders:
        raise IgcdError("labels come from a file or from the folders, not from both; give one of the two")
    if not images.is_dir():
        raise IgcdError(f"{images} is not a folder of photos; give --images FOLDER")
    with new_folder(folder):
        found = find_photos([images], workspace=folder)
        label_of: dict[FoundFile, str] = {}
        refused: dict[FoundFile, str] = {}
        in_file: dict[LabelConflict, str | None] = {}
        if labels is not None and labels.suffix.lower() == ".json":
            label_of, in_file = labels_from_json(labels, images, found, on_conflict)
            refuse_unusable(label_of, labels)
        elif labels is not None:
            label_of = labels_from_table(labels, images, found)
        elif from_folders:
            label_of = labels_from_folders(images, found)
            refused = {
                file: f"the folder cannot be a category: {reason}" for file, reason in unusable_names(label_of).items()
            }
        reading = read_photos(found, set_aside=refused, progress=progress)
        if labels is not None and labels.suffix.lower() != ".json":
            shots, real = shots_from_table(labels), images.resolve()
            by_place = {Path(file.root, file.path).relative_to(real).as_posix(): file for file in found}
            reading = reading.with_shots({by_place[place]: shot for place, shot in shots.items() if place in by_place})
        settled, conflicts = settle(
            {file: label for file, label in label_of.items() if file not in refused}, reading.content_of, on_conflict
        )

        def set_up(db: sqlite3.Connection) -> None:
            if schema_version(db):
                raise IgcdError(f"{folder} is a workspace already; use `igcd add` to add photos to it")
            migrate(db)
            given = encoder or {}
            chosen = {**default_encoder(given.get("backbone"), given.get("size")), **given}
            db.execute("INSERT INTO settings VALUES ('encoder', ?)", (json.dumps(chosen),))

        with Catalog(folder) as catalog:
            report = write_photos(catalog, reading, labels=settled, setup=set_up)
    chosen = {conflict.sentence(): label for conflict, label in (in_file | conflicts).items()}
    return replace(report, conflicts=chosen)
