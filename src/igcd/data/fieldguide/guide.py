"""The field guide itself: species, sightings, annotations in the layout of iNat2021, pictures on demand."""

import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import PIL
from PIL import Image

from igcd.data.fieldguide.dice import Dice
from igcd.data.fieldguide.picture import picture
from igcd.data.fieldguide.sightings import Sighting, long_tail, make_sightings, ranges
from igcd.data.fieldguide.taxonomy import Species, make_species
from igcd.data.images import ImageSet, digest
from igcd.errors import IgcdError
from igcd.types import Pixels

Split = Literal["train", "val"]
SPLITS: tuple[Split, Split] = ("train", "val")

MIN_SPECIES = 10
"""With fewer, some wave of the survey would meet no new species or no known one."""
MIN_IMAGES_PER_SPECIES = 4
MIN_SIZE = 16
MOST = {"n_species": 10_000, "n_images": 10_000_000, "n_test_per_species": 10_000, "size": 2048}
"""What one machine draws in days and holds in memory."""
_FIRST_NAMES = (
    "Ada Bruno Chiara Dmitri Elin Farid Greta Hugo Ines Jomo Kaia Leif Mina Noor Otto Pia Quim Rosa Sven Tala"
)
_LAST_NAMES = "Fern Brook Heron Alder Moss Finch Reed Larch Vale Thorn"


@dataclass(frozen=True)
class FieldGuide:
    """An invented flora and fauna. The same parameters give the same guide everywhere.

    >>> guide = FieldGuide(n_species=12, n_images=120)
    >>> len(guide.species), len(guide.sightings("train"))
    (12, 120)
    >>> guide.images("train").pixels(0).shape
    (96, 96, 3)
    """

    n_species: int = 60
    n_images: int = 4_000  # for training, over all species
    n_test_per_species: int = 20
    seed: int = 0
    size: int = 96  # pixels

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            if not isinstance(getattr(self, name), int):
                raise IgcdError(f"{name} must be a whole number, got {getattr(self, name)!r}; correct it")
            if getattr(self, name) > most:
                raise IgcdError(f"{name} must be at most {most:,}, got {getattr(self, name):,}; lower it")
        if self.n_species < MIN_SPECIES:
            raise IgcdError(f"n_species must be at least {MIN_SPECIES}, got {self.n_species}; raise it")
        if self.n_images < MIN_IMAGES_PER_SPECIES * self.n_species:
            raise IgcdError(
                f"n_images must be at least {MIN_IMAGES_PER_SPECIES * self.n_species} for {self.n_species} species, "
                f"got {self.n_images}; raise it or lower n_species"
            )
        if self.n_test_per_species < 0:
            raise IgcdError(f"n_test_per_species must not be negative, got {self.n_test_per_species}; raise it")
        if self.size < MIN_SIZE:
            raise IgcdError(f"size must be at least {MIN_SIZE} pixels, got {self.size}; raise it")

    @functools.cached_property
    def species(self) -> tuple[Species, ...]:
        """All species in the order of their lineages: the position is the category id."""
        return make_species(self.n_species, self.seed)

    @functools.cached_property
    def _abundance(self) -> list[int]:
        """The rank of each species, 0 the most common."""
        return Dice(f"abundance {self.seed}").shuffled(range(self.n_species))

    @functools.cached_property
    def ranges(self) -> tuple[tuple[str, ...], ...]:
        """The continents on which each species lives, its home first."""
        return tuple(ranges(self.n_species, self._abundance, Dice(f"ranges {self.seed}")))

    def sightings(self, split: Split) -> tuple[Sighting, ...]:
        """All sightings of a split, in the order of the annotations."""
        return self._splits[split]

    @functools.cached_property
    def _splits(self) -> dict[Split, tuple[Sighting, ...]]:
        by_rank = long_tail(self.n_images, self.n_species)
        counts: dict[Split, list[int]] = {
            "train": [by_rank[rank] for rank in self._abundance],
            "val": [self.n_test_per_species] * self.n_species,
        }
        return {split: make_sightings(counts[split], self.ranges, split=split, seed=self.seed) for split in SPLITS}

    @functools.cached_property
    def _by_file_name(self) -> dict[str, Sighting]:
        return {self.file_name(split, one): one for split in SPLITS for one in self.sightings(split)}

    def folder_name(self, species: int) -> str:
        """The folder of a species: number and lineage, as in iNat2021."""
        return f"{species:05d}_" + "_".join(self.species[species].lineage)

    def file_name(self, split: Split, sighting: Sighting) -> str:
        """The file of a sighting, relative to the folder of all images."""
        d = sighting.digits
        return f"{split}/{self.folder_name(sighting.species)}/{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}.jpg"

    def find(self, file_name: str) -> Sighting:
        """The sighting with this file name."""
        try:
            return self._by_file_name[file_name]
        except KeyError:
            raise IgcdError(
                f"{file_name!r} is not in this field guide; take file names from annotations() of the same parameters"
            ) from None

    def draw(self, sighting: Sighting) -> Pixels:
        """The picture of a sighting, (size, size, 3)."""
        species = self.species[sighting.species]
        return picture(species.plan, species.traits, sighting.continent, sighting.date.hour, sighting.digits, self.size)

    def images(self, split: Split) -> "DrawnImages":
        """All pictures of a split, in the order of the annotations."""
        return DrawnImages(self, (self.file_name(split, one) for one in self.sightings(split)))

    def annotations(self, split: Split) -> dict[str, list[dict[str, Any]]]:
        """`images`, `annotations` and `categories` as in iNat2021's train.json and val.json."""
        # iNat2021 numbers its validation images after its training images.
        first_id = 0 if split == "train" else self.n_images
        observers = [f"{first} {last}" for first in _FIRST_NAMES.split() for last in _LAST_NAMES.split()]
        sightings = self.sightings(split)
        return {
            "images": [
                {
                    "id": image_id,
                    "width": self.size,
                    "height": self.size,
                    "file_name": self.file_name(split, one),
                    "license": 0,
                    "rights_holder": observers[one.observer],
                    "date": one.date.isoformat(sep=" "),
                    "latitude": one.latitude,
                    "longitude": one.longitude,
                    "location_uncertainty": one.uncertainty,
                }
                for image_id, one in enumerate(sightings, start=first_id)
            ],
            "annotations": [
                {"id": image_id, "image_id": image_id, "category_id": one.species}
                for image_id, one in enumerate(sightings, start=first_id)
            ],
            "categories": [
                {
                    "id": number,
                    "name": species.name,
                    "common_name": species.common_name,
                    "supercategory": species.plan.supercategory,
                    "kingdom": species.plan.kingdom,
                    "phylum": species.plan.phylum,
                    "class": species.plan.class_name,
                    "order": species.plan.order,
                    "family": species.family,
                    "genus": species.genus,
                    "specific_epithet": species.epithet,
                    "image_dir_name": self.folder_name(number),
                }
                for number, species in enumerate(self.species)
            ],
        }


class DrawnImages(ImageSet):
    """Pictures of a field guide, drawn when asked for. Ids are file names: they tell the species, as iNat2021's do."""

    def __init__(self, guide: FieldGuide, file_names: Iterable[str]) -> None:
        super().__init__(file_names)
        self._guide = guide
        self._sightings = tuple(guide.find(name) for name in self.ids)

    def pixels(self, idx: int) -> Pixels:  # noqa: D102
        return self._guide.draw(self._sightings[idx])

    def key(self, idx: int) -> str:
        """Digest of all that decides the pixels: traits, sighting, size, and the code that draws."""
        one = self._sightings[idx]
        traits = sorted(self._guide.species[one.species].traits.items())
        what = (one.digits, one.continent, one.date.hour, traits, self._guide.size, _drawing_code())
        return digest(repr(what).encode())


@functools.cache
def _drawing_code() -> str:
    """Digest of this package's code and Pillow's version: a cache of pictures must not outlive the brush."""
    package = resources.files("igcd.data.fieldguide")
    files = [*package.iterdir(), *(package / "bodies").iterdir()]
    sources = sorted((file.name, file.read_bytes()) for file in files if file.name.endswith(".py"))
    return digest(repr((PIL.__version__, sources)).encode())


def write(guide: FieldGuide, folder: Path, on_image: Callable[[int, int], None] | None = None) -> int:
    """Write the guide as iNat2021 unpacks: train.json, val.json and JPEG files. Gives the number of images.

    `on_image(done, total)` is called after each image, for a progress bar.
    """
    if folder.exists() and any(folder.iterdir()):
        raise IgcdError(f"the folder for the field guide must be new or empty, {folder} is not; name another")
    total = sum(len(guide.sightings(split)) for split in SPLITS)
    done = 0
    for split in SPLITS:
        for species in range(guide.n_species):
            (folder / split / guide.folder_name(species)).mkdir(parents=True, exist_ok=True)
        for one in guide.sightings(split):
            image = Image.fromarray(guide.draw(one))
            image.save(folder / guide.file_name(split, one), quality=92, subsampling=0)
            done += 1
            if on_image:
                on_image(done, total)
        (folder / f"{split}.json").write_text(json.dumps(guide.annotations(split)), encoding="utf-8")
    return done
