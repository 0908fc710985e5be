"""Labels from other programs: COCO annotations and Label Studio tasks, as JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from igcd.errors import IgcdError
from igcd.workspace.labels import Choice, LabelConflict
from igcd.workspace.photos import FoundFile

MAX_BYTES = 500_000_000


def labels_from_json(
    path: Path, images: Path, found: Sequence[FoundFile], choose: Choice | None
) -> tuple[dict[FoundFile, str], dict[LabelConflict, str | None]]:
    """The category of each file that a COCO or Label Studio file labels, and what was chosen where it has several.

    Photos are found by their path, from the root or below the folder of images. A photo with several categories has no
    label of its own: without a choice such photos are refused, all of them at once.
    """
    by_place = {str(Path(file.root, file.path)): file for file in found}
    real = images.resolve()
    names: dict[FoundFile, dict[str, None]] = {}
    missing: list[str] = []
    for place, name in _pairs(path):
        file = by_place.get(place) or by_place.get(str(real / place.lstrip("/")))
        if file is None:
            missing.append(place)
        else:
            names.setdefault(file, {})[name] = None
    if missing:
        raise IgcdError(
            f"{path} labels {len(missing):,} {'photo' if len(missing) == 1 else 'photos'} that "
            f"{'is' if len(missing) == 1 else 'are'} not below {images}, first {missing[0]!r}; give the folder they "
            "are in, or remove them from the file"
        )
    labels: dict[FoundFile, str] = {}
    chosen: dict[LabelConflict, str | None] = {}
    for file, several in names.items():
        label: str | None = next(iter(several))
        if len(several) > 1:
            conflict = LabelConflict(tuple((file.path, name) for name in several))
            label = chosen[conflict] = None if choose is None else choose(conflict)
        if label is not None:
            labels[file] = label
    if chosen and choose is None:
        raise IgcdError(
            f"each photo has one label, but {len(chosen):,} of {path} have several, see below; correct them, or choose "
            "--on-conflict skip (no label), first or ask",
            details=[conflict.sentence() for conflict in chosen],
        )
    return labels, chosen


def _pairs(path: Path) -> Iterable[tuple[str, str]]:
    """Path and category of each annotation."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise IgcdError(f"{path} is larger than {MAX_BYTES:,} bytes; split it")
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise IgcdError(f"{path} cannot be read as JSON ({error}); export it again") from None
    try:
        if isinstance(record, Mapping) and "annotations" in record:
            return list(_coco_pairs(record))
        if isinstance(record, list):
            return list(_label_studio_pairs(record))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IgcdError(f"{path} is not as COCO or Label Studio write it (at {error}); export it again") from None
    raise IgcdError(f"{path} is neither COCO (images, annotations, categories) nor a list of Label Studio tasks")


def _coco_pairs(record: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    file_of = {image["id"]: str(image["file_name"]) for image in record["images"]}
    name_of = {category["id"]: str(category["name"]) for category in record["categories"]}
    for annotation in record["annotations"]:
        if annotation.get("confirmed", True):  # a guess that we wrote ourselves is no label
            yield file_of[annotation["image_id"]], name_of[annotation["category_id"]]


def _label_studio_pairs(tasks: Sequence[Any]) -> Iterable[tuple[str, str]]:
    for task in tasks:
        places = [value for value in task["data"].values() if isinstance(value, str)]
        for annotation in task.get("annotations", []):
            if annotation.get("was_cancelled"):
                continue
            for result in annotation["result"]:
                for choice in result.get("value", {}).get("choices", []):
                    yield _place(task["data"].get("image", places[0])), str(choice)


def _place(address: str) -> str:
    """The path in a Label Studio address.

    >>> _place("/data/local-files/?d=home/ada/a%20b.jpg"), _place("owl/1.jpg")
    ('/home/ada/a b.jpg', 'owl/1.jpg')
    """
    parts = urlsplit(address)
    files = parse_qs(parts.query).get("d")
    return f"/{files[0].lstrip('/')}" if files else unquote(parts.path)
