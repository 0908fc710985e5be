"""From a recipe, which is data, to the objects of a run."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import distributed

from igcd.config import EncoderConfig, OptimizationConfig, Recipe, StreamConfig
from igcd.data.files import first_existing
from igcd.data.images import FileImages, ImageSet
from igcd.data.observations import Observations
from igcd.data.parallel import n_cores
from igcd.data.quarantine import Quarantine
from igcd.data.sized_cache import cached_at_size
from igcd.data.sources import load_source
from igcd.data.taxonomy import format_taxonomy
from igcd.encoders.backbone import build_backbone
from igcd.encoders.encoder import Encoder
from igcd.encoders.trunk_cache import Progress, TrunkCache
from igcd.encoders.views import RECIPES, Transform
from igcd.errors import IgcdError
from igcd.hidden import hidden_call
from igcd.method_registry import METHODS
from igcd.method_sections import MethodSection, TrainedSection
from igcd.methods.method import Context, Method
from igcd.methods.novel_count import CountNovel, EstimatedCount, GivenCounts
from igcd.streams.build import split_by_category
from igcd.streams.inat_igcd import PlaceAndYearSplit, format_places, split_by_place_and_year, taxa_of
from igcd.streams.rehearsal import rehearse
from igcd.streams.revealed import RevealedStream
from igcd.streams.split import Split, read_split
from igcd.streams.stage_rules import PlaceAndYearSpec
from igcd.streams.stream import SplitStream
from igcd.training import Checkpoint, EpochReport, Optimization
from igcd.types import Stream

Resize = Callable[[ImageSet], ImageSet]


def resize_with(config: EncoderConfig, progress: Callable[[int], None] | None = None) -> Resize:
    """Images decoded once and kept at the size they are trained at, where the recipe names a folder for them."""
    if config.image_cache is None:
        return lambda images: images
    folder, size = config.image_cache.expanduser(), _transform(config).canvas
    return lambda images: cached_at_size(images, size, folder, on_progress=progress)


@dataclass(frozen=True)
class BuiltStream:
    """A stream, the split that defines it, and what else is known: the texts of `places.csv` and `taxonomy.csv`."""

    split: Split
    stream: SplitStream
    tables: Mapping[str, str] = field(default_factory=dict)


def build_stream(
    config: StreamConfig, seed: int, resize: Resize = lambda images: images, *, secret: bytes | None = None
) -> BuiltStream:
    """The stream of a recipe, or a rehearsal of it, its images as `resize` gives them.

    The ids of the images are made with the secret, a new one where none is given.
    """
    built = _build_stream(config, seed, lambda split, images: SplitStream(split, resize(images), secret))
    if not config.rehearsal:
        return built
    split = rehearse(built.split, config.by_category, n_later=config.rehearsal_stages)
    return BuiltStream(split, built.stream.cut_by(split))


MakeStream = Callable[[Split, ImageSet], SplitStream]


def _build_stream(config: StreamConfig, seed: int, make: MakeStream) -> BuiltStream:
    if config.split is not None:  # whatever else the recipe says: the split was made once and for all
        split = read_split(config.split)
        beside = {name: config.split.parent / name for name in ("places.csv", "taxonomy.csv")}
        tables = {name: path.read_text(encoding="utf-8") for name, path in beside.items() if path.is_file()}
        return BuiltStream(split, make(split, _images_of(config, split)), tables)
    if (config.by_category is None) == (config.by_place_and_year is None):
        raise IgcdError(
            "a stream is cut in one way: set stream.by_category or stream.by_place_and_year, or give stream.split=FILE"
        )
    if config.by_category is not None:
        dataset = load_source(config.source, config.data, **config.options)
        split = split_by_category(dataset, config.by_category, seed)
        return BuiltStream(split, make(split, dataset.images))
    return _by_place_and_year(config, config.by_place_and_year or PlaceAndYearSpec(), seed, make)


def _by_place_and_year(config: StreamConfig, spec: PlaceAndYearSpec, seed: int, make: MakeStream) -> BuiltStream:
    if config.source == "fieldguide":
        from igcd.data.fieldguide.source import load_observations, make_guide

        observations, images = load_observations(make_guide(config.options))
        built = split_by_place_and_year(observations, spec, seed)
        return BuiltStream(built.split, make(built.split, images), _tables(observations, built))
    if config.source == "inat2021":
        from igcd.data.inat2021 import read_inat2021

        root = _required_folder(config)
        train, val = _annotations(root, "train", "train_mini"), _annotations(root, "val")
        if train is None or val is None:
            raise IgcdError(
                f"{root} should hold train.json or train_mini.json, val.json and the folders of the images; "
                "docs/inat_igcd.md says where to get them"
            )
        observations = read_inat2021(train, val)
        built = split_by_place_and_year(observations, spec, seed)
        images = FileImages(root, _image_ids(built.split))
        return BuiltStream(built.split, make(built.split, images), _tables(observations, built))
    raise IgcdError(
        f"stages by place and year need dates and coordinates, which the source {config.source} does not have; take "
        "fieldguide or inat2021, or stream.by_category"
    )


def _annotations(root: Path, *stems: str) -> Path | None:
    """The first annotation file there is, unpacked or as it was downloaded."""
    return first_existing(root / f"{stem}{suffix}" for stem in stems for suffix in (".json", ".json.tar.gz"))


def _tables(observations: Observations, built: PlaceAndYearSplit) -> dict[str, str]:
    return {
        "places.csv": format_places(observations, built.arrivals),
        "taxonomy.csv": format_taxonomy(taxa_of(observations, built.split)),
    }


def _images_of(config: StreamConfig, split: Split) -> ImageSet:
    """The images a split file names: from the source it was built from, or files below a folder."""
    if config.source in ("inat2021", "observations"):
        return FileImages(_required_folder(config), _image_ids(split))
    return load_source(config.source, config.data, **config.options).images


def _required_folder(config: StreamConfig) -> Path:
    if config.data is None or not config.data.is_dir():
        raise IgcdError(f"the source {config.source} needs the folder of its files; give stream.data=FOLDER")
    return config.data


def _image_ids(split: Split) -> list[str]:
    ids = {
        image_id
        for stage in split.stages
        for part in (stage.labeled, stage.unlabeled, stage.test)
        for image_id in part.image_ids
    }
    return sorted(ids)


def build_encoder(config: EncoderConfig, *, quarantine: Quarantine, progress: Progress | None = None) -> Encoder:
    """The encoder of a recipe."""
    backbone = build_backbone(
        config.backbone,
        weights=config.weights,
        size=config.size,
        pool=config.pool,
        tail=config.tail,
        n_blocks=config.n_blocks,
        freeze_batchnorm=config.freeze_batchnorm,
        bfloat16=config.bfloat16,
    )
    folder = config.cache.expanduser() if config.cache else None
    return Encoder(
        backbone=backbone,
        transform=_transform(config),
        cache=TrunkCache(folder, max_bytes=int(config.cache_gigabytes * 1e9)),
        n_views=config.n_views,
        quarantine=quarantine,
        progress=None if progress is None else hidden_call(progress),
    )


def _transform(config: EncoderConfig) -> Transform:
    return Transform(config.size, RECIPES[config.views], sees_middle=config.middle)


def build_fabric(recipe: Recipe) -> Fabric:
    """Where to compute, started."""
    accelerator = recipe.accelerator
    if accelerator == "auto":
        accelerator = "gpu" if torch.cuda.is_available() else "cpu"
    n_gpus = torch.cuda.device_count() or int(torch.backends.mps.is_available())
    if accelerator == "gpu" and not n_gpus:
        raise IgcdError("accelerator=gpu needs a GPU that this PyTorch can use, there is none; take auto or cpu")
    n_most = n_gpus if accelerator == "gpu" else n_cores()
    if recipe.devices > n_most:
        kind = "GPUs" if accelerator == "gpu" else "cores"
        raise IgcdError(f"devices must be at most {n_most}, the number of {kind} here, got {recipe.devices}; lower it")
    n_here, n_machines = _processes(recipe.devices)
    fabric = Fabric(accelerator=accelerator, devices=n_here, num_nodes=n_machines)
    fabric.launch()
    return fabric


@contextmanager
def left_together() -> Iterator[None]:
    """At the end, also one by an error, this process leaves the group of those that `build_fabric` has started.

    The threads that carry messages end with it. Were they still there when the interpreter ends, it could abort.
    """
    try:
        yield
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


def _processes(n_devices: int) -> tuple[int, int]:
    """Processes on this machine, and machines: as `torchrun` has started them, or else one process per device here."""
    if not distributed.is_torchelastic_launched():
        return n_devices, 1
    n_here, n_all = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    if n_devices not in (1, n_here):
        raise IgcdError(
            f"torchrun has started {n_here} processes here, devices must be as many, got {n_devices}; leave devices out"
        )
    return n_here, n_all // n_here


def method_maker(
    recipe: Recipe, encoder: Encoder, fabric: Fabric, n_novel: Sequence[int] | None = None
) -> Callable[[Checkpoint | None, Callable[[EpochReport], None]], Method]:
    """A function that makes the method of a recipe from a checkpoint and a progress callback.

    `n_novel` is the number of novel categories at each stage, for the methods that are given it.
    """
    count = _count_novel(recipe, n_novel or ())
    section, seed = recipe.method, recipe.seed  # not the recipe: it says where the data are
    trained = section if isinstance(section, TrainedSection) else TrainedSection(name=section.name)
    first_stage = _optimization(recipe.training.first_stage, trained.learning_rate)
    later_stages = _optimization(recipe.training.later_stages, trained.later_learning_rate)

    def make(checkpoint: Checkpoint | None, after_epoch: Callable[[EpochReport], None]) -> Method:
        context = Context(encoder, fabric, seed, checkpoint, after_epoch)
        return make_method(section, context, first_stage, later_stages, count)

    return make


def _count_novel(recipe: Recipe, n_novel: Sequence[int]) -> CountNovel:
    """How the method of a recipe gets to know the number of novel categories."""
    own = METHODS[recipe.method.name].own_count
    if recipe.n_novel == "given" or (recipe.n_novel == "as_published" and own is not None):
        return GivenCounts(tuple(n_novel))
    if recipe.n_novel == "as_published" or recipe.n_novel == "estimated":
        return EstimatedCount(own or "density", seed=recipe.seed)
    return EstimatedCount(recipe.n_novel, seed=recipe.seed)


def make_method(
    section: MethodSection,
    context: Context,
    first_stage: Optimization,
    later_stages: Optimization,
    count_novel: CountNovel,
) -> Method:
    """The method of a section."""
    method: Method = METHODS[section.name].load()(
        context, first_stage=first_stage, later_stages=later_stages, count_novel=count_novel, **section.options()
    )
    return method


def _optimization(config: OptimizationConfig, learning_rate: float | None) -> Optimization:
    """The budget that all methods have, at the learning rate of one, if it has its own."""
    return Optimization(
        n_epochs=config.epochs,
        learning_rate=learning_rate or config.learning_rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        batch_size=config.batch_size,
    )


def stream_of(recipe: Recipe, built: BuiltStream) -> Stream:
    """The stream as the method of a recipe may see it: with all labels, for the upper bound."""
    return RevealedStream(built.stream) if METHODS[recipe.method.name].sees_all_labels else built.stream


def count_novel_categories(split: Split) -> list[int]:
    """How many categories of each stage's unlabeled images no label and no earlier stage has shown."""
    met: set[str] = set()
    counts = []
    for stage in split.stages:
        met |= set(stage.labeled.categories)
        counts.append(len(set(stage.unlabeled.categories) - met))
        met |= set(stage.unlabeled.categories)
    return counts
