"""The field guide as a source of images with categories, dates and places, like any other."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from igcd.data.dataset import Dataset
from igcd.data.fieldguide.guide import DrawnImages, FieldGuide
from igcd.data.images import ImageSet
from igcd.data.inat2021 import from_annotations
from igcd.data.observations import Observations
from igcd.errors import IgcdError

NAME = "fieldguide"


def load(
    root: Path | None = None,  # noqa: ARG001 - nothing is read
    *,
    n_species: int = 60,
    n_images: int = 4_000,
    n_test_per_species: int = 20,
    seed: int = 0,
    size: int = 96,
) -> Dataset:
    """The guide as a data set, drawn on demand."""
    guide = FieldGuide(n_species, n_images, n_test_per_species, seed, size)
    observations, images = load_observations(guide)
    return Dataset(NAME, images, observations.categories, observations.category_names, observations.is_test)


def make_guide(options: Mapping[str, object]) -> FieldGuide:
    """A guide from options by name, each a whole number."""
    known = [field.name for field in fields(FieldGuide)]
    for name, value in options.items():
        if name not in known or not isinstance(value, int):
            raise IgcdError(
                f"the field guide takes whole numbers for {', '.join(known)}, got {name}={value!r}; correct the options"
            )
    return FieldGuide(**options)  # type: ignore[arg-type]


def load_observations(guide: FieldGuide) -> tuple[Observations, ImageSet]:
    """The sightings of a guide, read from its annotations as those of iNat2021 are, and their pictures."""
    observations = from_annotations(guide.annotations("train"), guide.annotations("val"), name=NAME)
    return observations, DrawnImages(guide, observations.image_ids)
