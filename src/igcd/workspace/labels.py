"""Labels a person brings along: a table of paths and categories, or the folders the photos lie in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from igcd.data import table
from igcd.errors import IgcdError
from igcd.workspace.names import parse_name
from igcd.workspace.photos import FoundFile

NO_LABEL_FOLDERS = ("unlabeled", "unlabelled", "unsorted")
"""Folders whose photos have no label, also where the folders are the labels."""


@dataclass(frozen=True)
class LabelConflict:
    """One photo, byte by byte, that has several labels."""

    labels: tuple[tuple[str, str], ...]  # path and label of each of its files, in the order of the paths

    def sentence(self) -> str:
        """Who says what.

        >>> LabelConflict((("fox/a.jpg", "fox"), ("owl/b.jpg", "owl"))).sentence()
        "fox/a.jpg is 'fox', owl/b.jpg is 'owl'"
        """
        return ", ".join(f"{path} is {label!r}" for path, label in self.labels)


Choice = Callable[[LabelConflict], str | None]
"""Which label a photo with several gets; None: it has none."""


def no_label(_conflict: LabelConflict) -> None:
    """Whoever is called two things is called nothing."""


def first_label(conflict: LabelConflict) -> str:
    """The label of the file whose path comes first."""
    return conflict.labels[0][1]


def settle(
    labels: Mapping[FoundFile, str], content_of: Mapping[FoundFile, str], choose: Choice | None
) -> tuple[dict[FoundFile, str], dict[LabelConflict, str | None]]:
    """The labels with one for each photo, and what was chosen for those that had several.

    Without a choice these are refused, all of them at once. Files that are in `content_of` count.
    """
    files_of: dict[str, list[FoundFile]] = {}
    for file in sorted(labels.keys() & content_of.keys(), key=lambda file: (file.path, file.root)):
        files_of.setdefault(content_of[file], []).append(file)
    settled: dict[FoundFile, str] = {}
    chosen: dict[LabelConflict, str | None] = {}
    for files in files_of.values():
        label: str | None = labels[files[0]]
        if len({parse_name(labels[file]) for file in files}) > 1:
            conflict = LabelConflict(tuple((file.path, labels[file]) for file in files))
            label = chosen[conflict] = None if choose is None else choose(conflict)
        if label is not None:
            settled |= dict.fromkeys(files, label)
    if chosen and choose is None:
        n_photos = f"{len(chosen):,} {'photo has' if len(chosen) == 1 else 'photos have'}"
        raise IgcdError(
            f"each photo has one label, but {n_photos} several, see below; correct the labels, or choose --on-conflict "
            "skip (no label), first or ask",
            details=[conflict.sentence() for conflict in chosen],
        )
    return settled, chosen


def unusable_names(labels: Mapping[FoundFile, str]) -> dict[FoundFile, str]:
    """Files whose label cannot be the name of a category, and why."""
    faults: dict[str, str] = {}
    for label in set(labels.values()):
        try:
            parse_name(label)
        except IgcdError as error:
            faults[label] = str(error)
    return {file: faults[label] for file, label in labels.items() if label in faults}


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
    refuse_unusable(labels, path)
    return labels


def refuse_unusable(labels: Mapping[FoundFile, str], path: Path) -> None:
    """Raises where a file has labels that cannot be names of categories, with all of them."""
    if faults := unusable_names(labels):
        raise IgcdError(
            f"{path} has {len(faults):,} labels that cannot be names of categories, see below; correct them",
            details=[f"{file.path}: {reason}" for file, reason in faults.items()],
        )


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
