"""What new images are by all the workspace knows now. Nothing is written: the images are not added."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from igcd.data.files import image_paths
from igcd.data.quarantine import Quarantine
from igcd.errors import IgcdError
from igcd.types import UNLABELED, Images
from igcd.workspace.catalog import Catalog
from igcd.workspace.discover import fit_classifier
from igcd.workspace.evidence import gather_evidence, with_features
from igcd.workspace.features import PhotoEncoder, embed_images
from igcd.workspace.photo_files import PhotoFile, PhotoFiles, changed_at


@dataclass(frozen=True)
class Prediction:
    """The category one image is assigned to; with an error where it could not be read."""

    image: str
    category_id: int | None = None  # None: unsure
    category: str | None = None
    probability: float | None = None
    is_novel: bool = False  # of a category nobody has named yet
    error: str | None = None


def outside_photos(paths: Sequence[Path]) -> tuple[list[str], PhotoFiles]:
    """The names of image files, and of all image files in folders, as a person gave them; and the images, each once."""
    name_of: dict[Path, str] = {}
    for path in paths:
        if not path.exists():
            raise IgcdError(f"{path} does not exist; give image files, or folders of them")
        found = [path]
        if path.is_dir():
            found = [path / relative.removeprefix("./") for relative in image_paths(path, ".")]
        for file in found:
            name_of.setdefault(file.absolute(), str(file))
    if not name_of:
        raise IgcdError(f"there are no images in {', '.join(map(str, paths))}; give image files, or folders of them")
    files = []
    for number, path in enumerate(name_of):
        status = path.lstat()
        files.append(PhotoFile(number, str(path), str(path.parent), path.name, status.st_size, changed_at(status)))
    return list(name_of.values()), PhotoFiles(files)


def predict_images(catalog: Catalog, encoder: PhotoEncoder, names: Sequence[str], images: Images) -> list[Prediction]:
    """The category of each image, named `names`, by the labels and discoveries of the workspace."""
    with catalog.snapshot() as db:
        stage = int(db.execute("SELECT MAX(stage) FROM stages").fetchone()[0])
        evidence, features = with_features(db, gather_evidence(db, stage), encoder.key)
        category_of = {row["id"]: row for row in db.execute("SELECT id, name, state FROM categories")}
    has_category = (evidence.labels != UNLABELED) | (evidence.guesses != UNLABELED)
    if not has_category.any():
        raise IgcdError(f"the workspace {catalog.folder} knows nothing yet; run `igcd discover {catalog.folder}` first")
    evidence = replace(
        evidence,
        photo_ids=evidence.photo_ids[has_category],
        labels=evidence.labels[has_category],
        guesses=evidence.guesses[has_category],
        is_new=evidence.is_new[has_category],
    )
    model = fit_classifier(evidence, features[has_category])
    quarantine = Quarantine(limit=1.0)
    positions, rows = embed_images(encoder, images, quarantine=quarantine)
    answers: dict[int, Prediction] = {}
    if positions:
        assigned, probs = model.assign(rows), model.predict_proba(rows).max(axis=1)
        for position, label, probability in zip(positions, assigned.tolist(), probs.tolist(), strict=True):
            if label == UNLABELED:
                answers[position] = Prediction(names[position], probability=float(np.round(probability, 4)))
                continue
            row = category_of[label]
            answers[position] = Prediction(
                names[position],
                category_id=label,
                category=row["name"] or f"new {label}",
                probability=float(np.round(probability, 4)),
                is_novel=row["state"] == "discovered",
            )
    return [
        answers.get(position) or Prediction(name, error=quarantine.reasons[images.ids[position]])
        for position, name in enumerate(names)
    ]
