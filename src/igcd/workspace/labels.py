"""Labels a person brings along: a table of paths and categories, or the folders the photos lie in."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from igcd.data import table
from igcd.errors import IgcdError
from igcd.workspace.photos import FoundFile

NO_LABEL_FOLDERS = ("unlabeled", "unlabelled", "unsorted")
"""Folders whose photos have no label, also where the folders are the labels."""


def labels_from_table(path: Path, images: Path, found: Sequence[FoundFile]) -> dict[FoundFile, str]:
    """The category of each file that a CSV file lists: columns path (below the folder of images) and category."""
    listed = table.load(path, images=images)
    by_place = {str(Path(file.root, file.path)): file for file in found}
    real = images.resolve()
    labels: dict[FoundFile, str] = {}
    missing: list[str] = []
    for image_id, category in zip(listed.images.ids, listed.categories.tolist(), strict=True):
        file = by_place.get(str(real / image_id))
        if file is None:
            missing.append(image_id)
        else:
            labels[file] = listed.category_names[category]
    if missing:
        raise IgcdError(
            f"{path} labels {len(missing):,} {'photo' if len(missing) == 1 else 'photos'} that "
            f"{'is' if len(missing) == 1 else 'are'} not below {images}, first {missing[0]!r}; correct the paths or "
            "remove the lines"
        )
    return labels


def labels_from_folders(images: Path, found: Sequence[FoundFile]) -> dict[FoundFile, str]:
    """The folder of each file as its category, `genus/species` where folders lie in folders.

    Photos right in the folder of images have no label, nor have those in one called `unlabeled` or `unsorted`.
    """
    real = images.resolve()
    labels: dict[FoundFile, str] = {}
    for file in found:
        parts = PurePosixPath(Path(file.root, file.path).relative_to(real).as_posix()).parts[:-1]
        if parts and parts[0].lower() not in NO_LABEL_FOLDERS:
            labels[file] = "/".join(parts)
    if not labels:
        raise IgcdError(
            f"the folders in {images} should be the labels, but it holds no photos in folders; make a folder per "
            "category, or give --labels FILE"
        )
    return labels
