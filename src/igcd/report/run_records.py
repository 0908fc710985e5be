"""What a run has written down, read and checked."""

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from igcd.data.geography import is_coordinate
from igcd.data.taxonomy import Taxon, read_taxonomy
from igcd.errors import IgcdError
from igcd.metrics.predictions import read_predictions
from igcd.records import parse_json, read_json
from igcd.types import FloatArray, IntArray, Predictions

Count = Annotated[int, Field(ge=0, lt=2**53)]


class Record(BaseModel):
    """A part of a JSON file. What the report does not use may be there too."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class CountRecord(Record):
    """Clusters made for categories that there are."""

    found: Count
    true: Count


class CountRecords(Record):
    """Over all of a stage, over what it has for the first time, and the new categories that a cluster wins."""

    all: CountRecord
    new: CountRecord
    won: CountRecord | None = None  # older records do not have it


class SecondsRecord(Record):
    """Where the time went."""

    learn: float
    predict: float


class KeptRecord(Record):
    """What the method holds of past images."""

    replay_images: Count
    support_images: Count
    images: Count
    pseudo_labeled: Count
    bytes: Count


class StageResult(Record):
    """The scores of a stage, in percent."""

    stage: Count
    scores: dict[str, float | None]
    n_images: Count
    n_categories: Count
    n_clusters: Count
    NMI: float
    ARI: float
    identity: float
    count: CountRecords
    labeled_images: Count
    unlabeled_images: Count
    seconds: SecondsRecord
    kept: KeptRecord
    opened: Count = Field(validation_alias=AliasChoices("opened", "found"))
    """Clusters the method opened for new categories; older records call it found."""


class Results(Record):
    """`results.json`."""

    default: str
    M_f: float | None
    M_d: float | None
    stages: Annotated[tuple[StageResult, ...], Field(min_length=1)]
    later_work: dict[str, dict[str, float | None]] = Field(default_factory=dict)
    """What later work reports, by whose definition; older records do not have it."""
    stream: str
    method: str
    seed: int
    seconds: SecondsRecord
    peak_memory_bytes: Count
    set_aside: dict[str, Count]
    versions: dict[str, str]
    config: dict[str, Any]


class DiscoveryRecord(Record):
    """A category found at a stage; `category` and `purity` where the truth is known."""

    cluster: int
    nearest_known: int | None
    size: Count
    category: str | None
    purity: float | None
    images: tuple[str, ...]  # paths below the run's folder, the most typical first


class StageRecord(Record):
    """`stages/stage-t.json`."""

    stage: Count
    known_clusters: dict[str, str]  # the category each cluster stands for, of the categories labeled by now
    discoveries: tuple[DiscoveryRecord, ...]
    examples: dict[str, tuple[str, ...]]  # paths of images of the categories labeled by now


class DoneStage(StageRecord):
    """`stages/stage-t.json` as a run that goes on needs it."""

    labeled_images: Count
    unlabeled_images: Count
    seconds: SecondsRecord
    kept: KeptRecord
    set_aside: dict[str, str]


@dataclass(frozen=True)
class Places:
    """`places.csv`: how many images of a stage were seen in a cell of the globe, (n,) each."""

    stage: IntArray
    latitude: FloatArray
    longitude: FloatArray
    images: IntArray


@dataclass(frozen=True)
class Run:
    """All records of a finished run."""

    folder: Path
    results: Results
    stages: tuple[StageRecord, ...]
    predictions: Predictions
    spec: Mapping[str, Any]  # of the stream, from the head of split.tsv; empty without one
    places: Places | None
    taxonomy: Mapping[str, Taxon] | None  # every category by name
    ended: str | None  # time of the last event, ISO 8601


def read_run(folder: Path) -> Run:
    """Reads the records of a finished run."""
    if not (folder / "config.json").is_file():
        what = "has no config.json" if folder.is_dir() else "is not a folder"
        raise IgcdError(f"{folder} {what}; give the folder that `igcd run … --out` wrote to, or a workspace")
    if not (folder / "results.json").is_file():
        n_done = len(list((folder / "stages").glob("stage-*.json")))
        raise IgcdError(
            f"{folder} holds a run that is not finished ({n_done} stage{'' if n_done == 1 else 's'} done); repeat its "
            f"`igcd run` command with --out {folder} --resume, then report"
        )
    results = read_record(folder / "results.json", Results)
    stages = tuple(
        read_record(folder / "stages" / f"stage-{result.stage}.json", StageRecord) for result in results.stages
    )
    predictions = read_predictions(folder / "predictions.csv")
    scored = sorted(result.stage for result in results.stages)
    predicted = sorted(set(predictions.stage.tolist()))
    if scored != predicted:
        raise IgcdError(
            f"{folder}: results.json has the stages {scored} and predictions.csv has {predicted}; they are not of one "
            "run, repeat it into a new folder"
        )
    return Run(
        folder=folder,
        results=results,
        stages=stages,
        predictions=predictions,
        spec=_read_spec(folder / "split.tsv"),
        places=_read_places(folder / "places.csv"),
        taxonomy=_read_taxonomy(folder / "taxonomy.csv", _categories(predictions, stages)),
        ended=_read_last_time(folder / "events.jsonl"),
    )


_R = TypeVar("_R", bound=Record)


def read_record(path: Path, kind: type[_R]) -> _R:
    """A JSON file of a run, checked."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise IgcdError(
            f"{path} cannot be read ({error.strerror or error}); repeat the run into a new folder"
        ) from None
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        raise IgcdError(
            f"{path} is not what `igcd run` writes: {where}: {fault['msg']}; repeat the run into a new folder"
        ) from None


def read_raw_record(path: Path, kind: type[Record]) -> dict[str, Any]:
    """A JSON file of a run as it was written, after it was checked."""
    read_record(path, kind)
    record: dict[str, Any] = read_json(path)
    return record


def _read_spec(path: Path) -> Mapping[str, Any]:
    """How the stream was cut. The rest of the split file can be large and is not needed."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.startswith("#"):
                break
            key, _, text = line[1:].partition(" ")
            if key == "spec":
                try:
                    spec = parse_json(text)
                except ValueError:
                    return {}
                return spec if isinstance(spec, dict) else {}
    return {}


def _read_places(path: Path) -> Places | None:
    if not path.is_file():
        return None
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        stage, images = (np.array([int(row[name]) for row in rows], dtype=np.int64) for name in ("stage", "images"))
        latitude, longitude = (
            np.array([float(row[name]) for row in rows], dtype=np.float64) for name in ("latitude", "longitude")
        )
    except (OSError, csv.Error, KeyError, OverflowError, TypeError, ValueError) as error:
        raise IgcdError(
            f"{path} cannot be read ({error!r}); expected the columns stage,latitude,longitude,images with numbers in "
            "them, repair or remove it"
        ) from None
    if min(stage.min(initial=0), images.min(initial=0)) < 0:
        raise IgcdError(f"{path} must have whole numbers from 0 on as stage and images; repair or remove it")
    is_place = is_coordinate(latitude, longitude)
    return Places(stage[is_place], latitude[is_place], longitude[is_place], images[is_place])


def _categories(predictions: Predictions, stages: Sequence[StageRecord]) -> set[str]:
    """All that the run knows by name."""
    found = {
        discovery.category for stage in stages for discovery in stage.discoveries if discovery.category is not None
    }
    return {*predictions.category, *found, *(name for stage in stages for name in stage.known_clusters.values())}


def _read_taxonomy(path: Path, categories: Collection[str]) -> Mapping[str, Taxon] | None:
    if not path.is_file():
        return None
    try:
        taxonomy = read_taxonomy(path)
    except OSError as error:
        raise IgcdError(f"{path} cannot be read ({error.strerror or error}); make it readable or remove it") from None
    absent = sorted(set(categories) - set(taxonomy))
    if absent:
        raise IgcdError(
            f"{path} must have all {len(set(categories)):,} categories of the run, {len(absent):,} are absent, the "
            f"first is {absent[0]!r}; add them, with empty ranks where these are unknown, or remove the file"
        )
    return taxonomy


def _read_last_time(path: Path) -> str | None:
    """When the run ended. The log is for people; without it, or where it is cut off, the report has no date."""
    try:
        last = path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2]
        return str(parse_json(last)["time"])
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return None
