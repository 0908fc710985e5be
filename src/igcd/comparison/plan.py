"""What a comparison consists of: variants of one recipe, each with every seed. A variant and a seed make a cell.

For `igcd compare` the variants are methods. For `igcd ablate` they are the values of an option, or those of a file.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from igcd.config import Recipe, parse_yaml, read_recipe, read_yaml_text
from igcd.errors import IgcdError
from igcd.limits import MAX_SEED
from igcd.method_registry import METHODS
from igcd.method_sections import Section

MAX_SEEDS = 1_000
SAFE_NAME = re.compile(r"[^A-Za-z0-9._=+-]+")
"""What a folder's name may not hold here."""


@dataclass(frozen=True)
class Variant:
    """A row of the table: how a recipe is changed, and the row of the paper that belongs beside it."""

    name: str
    overrides: tuple[str, ...]
    paper: str | None = None
    """A reference for `igcd.report.paper.published_figures`."""
    paper_row: str = ""


@dataclass(frozen=True)
class Cell:
    """One run: a variant with a seed. Variants with the same settings share a folder, and so a run."""

    variant: Variant
    seed: int
    overrides: tuple[str, ...]
    recipe: Recipe
    folder: Path

    @property
    def name(self) -> str:
        """For people and for the folder's neighbors: the log and the note beside it."""
        return self.folder.name

    @property
    def config(self) -> dict[str, Any]:
        """What the run will write as its `config.json`."""
        return self.recipe.model_dump(mode="json")


@dataclass(frozen=True)
class Comparison:
    """A recipe, and the cells to fill."""

    recipe: str
    overrides: tuple[str, ...]
    base: Recipe
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]

    @property
    def distinct_cells(self) -> tuple[Cell, ...]:
        """The runs there are to do: those variants that come to the same have one."""
        first: dict[Path, Cell] = {}
        for cell in self.cells:
            first.setdefault(cell.folder, cell)
        return tuple(first.values())


def plan(
    recipe: str, overrides: Sequence[str], variants: Sequence[Variant], seeds: Sequence[int], out: Path
) -> Comparison:
    """Every cell with its settings checked, before the first is run.

    Seeds are the outer loop: after the first one there is a whole table, and the cells of a seed share their split, so
    the trunk cache serves them one after the other.
    """
    if len({variant.name for variant in variants}) < len(variants):
        raise IgcdError(f"every variant needs a name of its own, got {', '.join(v.name for v in variants)}")
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise IgcdError(f"--seeds needs different whole numbers from 0 on, like 0,1,2, got {list(seeds)}")
    cells = []
    folder_of: dict[str, Path] = {}
    for seed in seeds:
        for variant in variants:
            changes = (*overrides, *variant.overrides, f"seed={seed}")
            settings = read_recipe(recipe, changes)
            folder = out / "cells" / f"{folder_name(variant.name)}-{seed}"
            if folder in folder_of.values():
                raise IgcdError(f"two variants would be kept in {folder}; give them names that differ in their letters")
            text = json.dumps(settings.model_dump(mode="json"), sort_keys=True)
            cells.append(Cell(variant, seed, changes, settings, folder_of.setdefault(text, folder)))
    return Comparison(
        recipe, tuple(overrides), read_recipe(recipe, overrides), tuple(variants), tuple(seeds), tuple(cells)
    )


def folder_name(variant: str) -> str:
    """A variant's name as a folder can bear it.

    >>> folder_name("tuned, no replay"), folder_name("method.K=5")
    ('tuned-no_replay', 'method.K=5')
    """
    name = SAFE_NAME.sub("_", variant.replace(", ", "-")).strip("._")
    if not name:
        raise IgcdError(f"a variant needs a name with letters or digits, got {variant!r}; rename it")
    return name


def method_variants(names: Sequence[str], paper: str | None) -> list[Variant]:
    """A variant for each method."""
    for name in names:
        if name not in METHODS:
            raise IgcdError(f"there is no method {name!r}; choose from {', '.join(METHODS)}")
    return [Variant(name, (f"method.name={name}",), paper, name) for name in names]


def option_variants(over: str) -> list[Variant]:
    """The variants of `--over key=v1,v2,…`; the values are YAML.

    >>> [variant.name for variant in option_variants("method.K=5,10,auto")]
    ['method.K=5', 'method.K=10', 'method.K=auto']
    >>> option_variants("encoder={size: 96, n_views: 2},{size: 112, n_views: 4}")[1].overrides
    ('encoder={"size": 112, "n_views": 4}',)
    """
    key, found, text = over.partition("=")
    try:
        values = parse_yaml(f"[{text}]") if found and key else []
    except ValueError:
        values = []
    if not isinstance(values, list) or not values:
        raise IgcdError(f"--over is written key=value,value,…, like method.K=5,10,20, got {over!r}")
    texts = [f"{key}={_as_yaml(value)}" for value in values]
    return [Variant(text, (text,)) for text in texts]


def _as_yaml(value: object) -> str:
    """A value as an override writes it: bare where that reads back as the same."""
    with suppress(ValueError):
        if isinstance(value, str) and parse_yaml(value) == value:
            return value
    return json.dumps(value, ensure_ascii=False)


class VariantSpec(Section):
    """A variant of a file with a place of its own in the paper."""

    set: tuple[str, ...] = ()
    """key=value, as on the command line."""
    paper: str | None = None
    """A reference like backbone.vit_b/gm."""


class VariantsFile(Section):
    """A file of variants: by name, what each sets."""

    paper: dict[str, str] = Field(default_factory=dict)
    """The paper's table by stream, like {cifar100-mi: density_K.cifar100}; its rows are the names of the variants."""
    variants: dict[str, tuple[str, ...] | VariantSpec] = Field(min_length=1)


def variants_names() -> list[str]:
    """The files of variants that come with the package."""
    folder = resources.files("igcd") / "recipes" / "variants"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def read_variants(name_or_path: str, stream: str) -> list[Variant]:
    """The variants of a file, or of one of the package; `stream` gives the columns of the paper's table."""
    try:
        values = parse_yaml(_variants_text(name_or_path))
    except ValueError as error:
        raise IgcdError(f"variants {name_or_path}: not valid YAML: {error}") from None
    try:
        file = VariantsFile.model_validate(values)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        raise IgcdError(
            f"variants {name_or_path}: {where}: {fault['msg']}; write `variants:` and below it a list of key=value for "
            "each name"
        ) from None
    table = file.paper.get(stream)
    return [
        Variant(name, spec.set, spec.paper or table, name)
        if isinstance(spec, VariantSpec)
        else Variant(name, spec, table, name)
        for name, spec in file.variants.items()
    ]


def _variants_text(name_or_path: str) -> str:
    packaged = resources.files("igcd") / "recipes" / "variants" / f"{name_or_path}.yaml"
    if "/" not in name_or_path and packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return read_yaml_text(path)
    raise IgcdError(
        f"there is no file of variants {name_or_path!r}; there are {', '.join(variants_names())}, or give a .yaml file"
    )


def stream_name(recipe: Recipe) -> str:
    """The name the stream of a recipe will have, where its spec shows it: cifar100-mi."""
    spec = recipe.stream.by_category or recipe.stream.by_place_and_year
    return recipe.stream.source if spec is None else f"{recipe.stream.source}-{spec.protocol}"


def parse_seeds(text: str) -> list[int]:
    """Seeds as the command line writes them.

    >>> parse_seeds("0,1,2"), parse_seeds("0-4")
    ([0, 1, 2], [0, 1, 2, 3, 4])
    """
    try:
        ranges = [_seed_range(part) for part in text.split(",")]
    except ValueError:
        raise IgcdError(f"--seeds is written like 0,1,2 or 0-4, got {text!r}") from None
    if any(len(seeds) > MAX_SEEDS for seeds in ranges):
        raise IgcdError(f"--seeds takes at most {MAX_SEEDS:,} of them, got {text!r}; each is a run for every row")
    return [seed for seeds in ranges for seed in seeds]


def _seed_range(text: str) -> range:
    first, dash, last = text.partition("-")
    seeds = range(int(first), int(last if dash else first) + 1)
    if seeds and seeds[-1] > MAX_SEED:
        raise IgcdError(f"a seed is a number of at most 63 bits, got {text!r}; lower it")
    return seeds
