"""The sets of features of the panel: where each comes from, and how it is made once and kept.

A set is features (n, d) with the category of each row. Digits and the made-up mixtures need nothing. Files are .npz
with `x` and `y`. Features of CIFAR-100, CUB and the field guide are EfficientNet-Lite0's at 112 px, of training images
only; they are computed by the project's encoder and kept in a cache folder, because that takes a minute per set.
"""

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits  # type: ignore[import-untyped]

from igcd.array_files import DamagedArrayError, read_npz
from igcd.data.encoded_archive import find_archive
from igcd.data.sources import load_source
from igcd.errors import IgcdError
from igcd.records import write_bytes
from igcd.types import IntArray

Features = npt.NDArray[np.float32]

SHARED_DATA = Path(os.environ.get("IGCD_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
SIZE = 112  # pixels
DRAW = 0  # the seed of which categories and images are taken


class MissingDataError(IgcdError):
    """What a set is made from is not on this machine; the set is skipped."""


@dataclass(frozen=True)
class FeatureSet:
    """Features (n, d) and the category of each row (n,), as codes from 0 on."""

    name: str
    x: Features
    y: IntArray

    @property
    def key(self) -> str:
        """A digest of the content: results of another content under the same name are not mixed up with these."""
        content = hashlib.blake2b(digest_size=8)
        for array in (self.x, self.y):
            content.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return content.hexdigest()


class SetRecipe(Protocol):
    """How a set is made."""

    def load(self, name: str, *, data: Path, cache: Path) -> FeatureSet:
        """The set; raises `MissingDataError` where its data are not below `data`."""
        ...


@dataclass(frozen=True)
class Digits:
    """scikit-learn's digits: 1,797 rows of 64 pixels, 10 categories."""

    def load(self, name: str, *, data: Path, cache: Path) -> FeatureSet:  # noqa: ARG002
        """Reads what comes with scikit-learn."""
        x, y = load_digits(return_X_y=True)
        return FeatureSet(name, x.astype(np.float32), y.astype(np.int64))


@dataclass(frozen=True)
class FeatureFile:
    """An .npz file with `x` (n, d) and `y` (n,), numbers or names."""

    path: Path

    def load(self, name: str, *, data: Path, cache: Path) -> FeatureSet:  # noqa: ARG002
        """Reads the file."""
        try:
            arrays = read_npz(self.path)
        except (OSError, DamagedArrayError) as error:
            raise IgcdError(f"{self.path} must be an .npz file with x and y ({error}); give another") from None
        x, y = arrays.get("x"), arrays.get("y")
        if x is None or y is None or x.ndim != 2 or x.dtype.kind not in "fiu" or y.shape != (len(x),):
            shapes = {array_name: array.shape for array_name, array in arrays.items()}
            raise IgcdError(f"{self.path} must hold x (n, d) of numbers and y (n,), got {shapes}; correct the file")
        return FeatureSet(name, x.astype(np.float32), np.unique(y, return_inverse=True)[1].astype(np.int64))


@dataclass(frozen=True)
class Mixture:
    """A made-up mixture: category centers drawn around 0, rows around their center.

    Sizes of the categories fall geometrically from `largest` to `smallest` ("tail"), or are drawn evenly between them.
    The rows' noise has variance 1 in every dimension ("gauss"), is divided by the root of a chi-square so that some
    rows are far away (Student's t, "student"), or lies mostly in a few directions that do not tell categories apart
    ("correlated"), as in features of networks. `separation` is the standard deviation of the centers.
    """

    n_categories: int
    smallest: int
    largest: int
    separation: float
    sizes: Literal["tail", "even"] = "even"
    noise: Literal["gauss", "student", "correlated"] = "gauss"
    width: int = 64
    degrees: int = 4  # of freedom, of Student's t
    seed: int = 0

    def load(self, name: str, *, data: Path | None = None, cache: Path | None = None) -> FeatureSet:  # noqa: ARG002
        """Draws the mixture: the same rows for the same parameters."""
        rng = np.random.default_rng([self.seed, self.n_categories, self.smallest, self.largest, self.width])
        if self.sizes == "tail":
            sizes = np.geomspace(self.largest, self.smallest, self.n_categories).round().astype(np.int64)
        else:
            sizes = rng.integers(self.smallest, self.largest, self.n_categories, endpoint=True)
        y = np.repeat(np.arange(self.n_categories), sizes)
        centers = self.separation * rng.normal(size=(self.n_categories, self.width))
        x = centers[y] + self._noise(len(y), rng)
        order = rng.permutation(len(y))
        return FeatureSet(name, x[order].astype(np.float32), y[order])

    def _noise(self, n: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        noise: npt.NDArray[np.float64] = rng.normal(size=(n, self.width))
        if self.noise == "student":
            noise /= np.sqrt(rng.chisquare(self.degrees, size=(n, 1)) / self.degrees)
        if self.noise == "correlated":
            variances = 1 / np.arange(1, self.width + 1)
            directions, _ = np.linalg.qr(rng.normal(size=(self.width, self.width)))
            noise = noise * np.sqrt(variances * self.width / variances.sum()) @ directions.T
        return noise


@dataclass(frozen=True)
class StreamFeatures:
    """Lite0's features of training images of a source: `n_categories` drawn, at most `n_rows` images of each.

    Without `n_rows` all images of the drawn categories are taken, as rare and common as they are.
    """

    source: str
    n_categories: int
    n_rows: int | None
    pattern: str | None = None  # of the archive's name; None where the source needs no file
    options: tuple[tuple[str, int], ...] = ()  # of the source

    def load(self, name: str, *, data: Path, cache: Path) -> FeatureSet:
        """Takes the features from the cache, or computes them and puts them there."""
        archive = find_archive(data, self.pattern) if self.pattern else None
        if self.pattern and archive is None:
            raise MissingDataError(f"{name} needs {self.pattern}, which is not in {data}; give its folder by --data")
        made_from = {**asdict(self), "size": SIZE, "draw": DRAW, "model": "tf_efficientnet_lite0 pip"}
        if archive is not None:
            made_from |= {"archive": archive.name, "bytes": archive.stat().st_size}
        key = hashlib.blake2b(json.dumps(made_from, sort_keys=True).encode(), digest_size=8).hexdigest()
        path = cache / f"{name}-{key}.npz"
        if not path.is_file():
            print(f"{name}: computing features once, into {path}", flush=True)
            content = io.BytesIO()
            x, y = self._compute(archive)
            np.savez(content, x=x, y=y)
            write_bytes(path, content.getvalue())
        return FeatureFile(path).load(name, data=data, cache=cache)

    def _compute(self, archive: Path | None) -> tuple[Features, IntArray]:
        from igcd.assembly import build_encoder  # with torch and timm, which the other sets do without
        from igcd.config import EncoderConfig
        from igcd.data.quarantine import Quarantine
        from igcd.encoders.encoder import encode

        dataset = load_source(self.source, archive, **dict(self.options))
        rng = np.random.default_rng(DRAW)
        # Test images are what methods are compared on in the end. No choice made on the panel may have seen them.
        of_category = {
            int(category): np.flatnonzero((dataset.categories == category) & ~dataset.is_test)
            for category in rng.permutation(np.unique(dataset.categories))[: self.n_categories]
        }
        idx = np.sort(np.concatenate([rng.permutation(rows)[: self.n_rows] for rows in of_category.values()]))
        chosen = dataset.take(idx)
        encoder = build_encoder(EncoderConfig(size=SIZE, cache=None), quarantine=Quarantine())
        views = encoder.plain_views(chosen.images)
        features = encode(views, encoder.backbone.tail, n_features=encoder.backbone.n_features)
        return features.numpy(), chosen.categories[np.asarray(views.usable_idx)]


SETS: Mapping[str, SetRecipe] = {
    "digits": Digits(),
    "cifar100_40x80": StreamFeatures("cifar100", 40, 80, "cifar100.npz"),
    "cifar100_100x30": StreamFeatures("cifar100", 100, 30, "cifar100.npz"),
    "cub_60x30": StreamFeatures("cub", 60, 30, "cub200*.npz"),
    "cub_150x20": StreamFeatures("cub", 150, 20, "cub200*.npz"),
    "fieldguide_60": StreamFeatures("fieldguide", 60, None, options=(("n_species", 60), ("n_images", 3_000))),
    "fieldguide_24": StreamFeatures(
        "fieldguide", 24, None, options=(("n_species", 24), ("n_images", 1_500), ("seed", 1))
    ),
    "mixture_10x100": Mixture(10, 100, 100, separation=0.45),
    "mixture_tail": Mixture(40, 5, 250, separation=0.6, sizes="tail"),
    "mixture_100x20-60": Mixture(100, 20, 60, separation=0.6),
    "mixture_200x3-60": Mixture(200, 3, 60, separation=0.65),
    "mixture_student": Mixture(40, 30, 90, separation=0.6, noise="student"),
    "mixture_correlated": Mixture(40, 30, 90, separation=0.65, noise="correlated"),
}
"""What is in the panel beside files. The scenes `many`, `few`, `one` and `none` are the label budgets of each."""

LARGE_SETS: Mapping[str, SetRecipe] = {
    "cifar100_10x250": StreamFeatures("cifar100", 10, 250, "cifar100.npz"),
    "cifar100_5x400": StreamFeatures("cifar100", 5, 400, "cifar100.npz"),
}
"""A few categories of many rows. No choice was made on them, so they are run only where `--sets` names them."""


def panel_recipes(files: list[Path], data: Path) -> dict[str, SetRecipe]:
    """The sets by name: the given files, or those in the folder `panel` of the data, and the built-in ones."""
    paths = files or sorted((data / "panel").glob("*.npz"))
    recipes: dict[str, SetRecipe] = {path.stem: FeatureFile(path) for path in paths}
    if len(recipes) < len(paths) or recipes.keys() & SETS.keys():
        raise IgcdError(f"files need different names that are not those of built-in sets, got {[*map(str, paths)]}")
    return recipes | dict(SETS)


def choose(recipes: Mapping[str, SetRecipe], names: list[str]) -> dict[str, SetRecipe]:
    """The recipes with these names; a name also stands for all that begin with it and an underscore."""
    chosen: dict[str, SetRecipe] = {}
    for wanted in names:
        found = {name: recipe for name, recipe in recipes.items() if f"{name}_".startswith(f"{wanted}_")}
        if not found:
            raise IgcdError(f"{wanted} is not a set of the panel; choose from {', '.join(recipes)}")
        chosen |= found
    return chosen
