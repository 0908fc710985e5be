"""For each stage of a stream: learn, predict, score, record."""

import json
import platform
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from igcd import __version__
from igcd.data.images import BrokenImageError
from igcd.data.quarantine import Quarantine, TooManyBrokenError
from igcd.errors import IgcdError
from igcd.hidden import Handle, hidden_call, look_behind
from igcd.methods.method import Assignment, Discovery, Method
from igcd.methods.stored import read_model
from igcd.metrics.predictions import join_predictions, read_predictions, stage_predictions, write_predictions
from igcd.metrics.scorecard import scorecard
from igcd.records import named_in_errors, write_json
from igcd.report.run_records import DoneStage, read_raw_record
from igcd.report.thumbnails import THUMBNAIL
from igcd.run_pictures import PictureRecorder
from igcd.tensor_files import read_tensors, write_tensors
from igcd.training import Checkpoint, EpochReport
from igcd.types import Images, Predictions, Stage, Stream, Truth

N_GALLERY = 12
"""Images shown of a discovered category."""
N_EXAMPLES = 3
"""Images shown of a known category."""


@dataclass(frozen=True)
class Watch:
    """Progress callbacks of a run."""

    on_epoch: Callable[[EpochReport], object] = field(default=lambda _report: None)
    on_stage_start: Callable[[int, int], object] = field(default=lambda _stage, _n_stages: None)
    on_stage_end: Callable[[dict[str, Any]], object] = field(default=lambda _record: None)


class EpochCheckpoint:
    """The state after the last epoch of the stage at work, in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.stage = 0

    def load(self) -> tuple[int, dict[str, Tensor]]:
        """Epochs done of this stage and the state after them; 0 and nothing at its start."""
        if not self._path.is_file():
            return 0, {}
        state, text = read_tensors(self._path)
        with named_in_errors(self._path):
            return (int(text["n_epochs_done"]), state) if int(text["stage"]) == self.stage else (0, {})

    def save(self, n_epochs_done: int, state: dict[str, Tensor]) -> None:
        """Keeps the state, whole or not at all."""
        write_tensors(self._path, state, {"stage": str(self.stage), "n_epochs_done": str(n_epochs_done)})

    def clear(self) -> None:
        """Forgets the state: its stage is done."""
        self._path.unlink(missing_ok=True)


class HandedCheckpoint:
    """A checkpoint as a method gets it: without the way to the folder of the run, which holds the truth."""

    def __init__(self, checkpoint: EpochCheckpoint) -> None:
        self._handle = Handle(checkpoint)

    def load(self) -> tuple[int, dict[str, Tensor]]:
        """Epochs done of this stage and the state after them; 0 and nothing at its start."""
        return look_behind(self._handle).load()

    def save(self, n_epochs_done: int, state: dict[str, Tensor]) -> None:
        """Keeps the state, whole or not at all."""
        look_behind(self._handle).save(n_epochs_done, state)


def run(
    stream: Stream,
    make_method: Callable[[Checkpoint, Callable[[EpochReport], None]], Method],
    out: Path,
    *,
    config: dict[str, Any],
    quarantine: Quarantine,
    budget: int | None = None,
    pictures: PictureRecorder | None = None,
    watch: Watch = Watch(),  # noqa: B008 - frozen
    meet: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Runs a method over a stream and records everything below `out`; goes on where an earlier run was stopped.

    Each stage leaves its predictions and the state of the method behind, in that order, so that a run that is killed
    redoes at most one epoch of training and one evaluation. A method that keeps more than `budget` images of the past
    per category is stopped. `pictures` keeps what the map of the report shows. Where several processes learn together,
    this is the one that writes, the others `follow`, and all `meet` before and after each stage. Returns what
    `results.json` holds.
    """
    checkpoint = EpochCheckpoint(out / "model" / "epoch.safetensors")
    events = EventLog(out / "events.jsonl")

    def after_epoch(report: EpochReport) -> None:
        events.add("epoch", stage=checkpoint.stage, **asdict(report))
        watch.on_epoch(report)

    method = make_method(HandedCheckpoint(checkpoint), hidden_call(after_epoch))
    n_done = _load_method(method, out / "model" / "model.safetensors")
    meet()
    examples: dict[str, list[str]] = {}
    for stage, truth in stream:
        if stage.index < n_done:
            examples = _stage_record(out, stage.index)["examples"]
            continue
        checkpoint.stage = stage.index
        watch.on_stage_start(stage.index, len(stream))
        events.add("stage", stage=stage.index, labeled=len(stage.labeled), unlabeled=len(stage.unlabeled))
        started = time.perf_counter()
        try:
            method.learn(stage)
            check_budget(method, budget)
            learned = time.perf_counter()
            test_images = truth.test_images.take(range(len(truth.test_images)))  # the truth refers to its own
            assignments = {"test": method.predict(test_images), "unlabeled": method.predict(stage.unlabeled)}
            predicted = time.perf_counter()
        except TooManyBrokenError as error:
            raise TooManyBrokenError(_by_name(stream, error.reasons), error.n_images, error.limit) from None
        clusters = {split: assignment.cluster.tolist() for split, assignment in assignments.items()}
        rows = stage_predictions(stage.index, clusters, truth)
        write_predictions(rows, _stage_path(out, stage.index, "csv"))
        examples |= _write_examples(out, stage, examples)
        if pictures is not None:
            pictures.record(stage, truth, len(stream))
        record = {
            "stage": stage.index,
            "labeled_images": len(stage.labeled),
            "unlabeled_images": len(stage.unlabeled),
            "seconds": {"learn": learned - started, "predict": predicted - learned},
            "kept": asdict(method.kept()),
            "known_clusters": {
                str(cluster): stage.category_names[category]
                for category, cluster in sorted(method.clusters_of_categories().items())
            },
            "discoveries": [
                _describe(out, discovery, stage, truth.unlabeled, assignments["unlabeled"])
                for discovery in method.discoveries()
                if discovery.stage == stage.index
            ],
            "examples": examples,
            "set_aside": _by_name(stream, quarantine.reasons),
        }
        write_json(_stage_path(out, stage.index, "json"), record)
        tensors, text = method.state_dict()
        write_tensors(out / "model" / "model.safetensors", tensors, text | {"n_stages_done": str(stage.index + 1)})
        checkpoint.clear()
        scores = scorecard(_all_predictions(out, stage.index + 1)).to_json()["stages"][-1]
        events.add("scores", **scores)
        watch.on_stage_end(record | scores)
        meet()
    if pictures is not None:
        pictures.finish(len(stream))
    return _finish(stream, out, config)


def follow(
    stream: Stream,
    make_method: Callable[[Checkpoint, Callable[[EpochReport], None]], Method],
    out: Path,
    *,
    meet: Callable[[], None],
) -> None:
    """What the other processes of a run do that several share: learn their part of every batch, and write nothing."""
    checkpoint = EpochCheckpoint(out / "model" / "epoch.safetensors")
    method = make_method(HandedCheckpoint(checkpoint), lambda _report: None)
    n_done = _load_method(method, out / "model" / "model.safetensors")
    meet()
    for stage, _ in stream:
        if stage.index >= n_done:
            checkpoint.stage = stage.index
            method.learn(stage)
            meet()


def check_budget(method: Method, budget: int | None) -> None:
    """Stops a method that keeps more than `budget` images of the past for each of its clusters."""
    n_clusters = len({*method.clusters_of_categories().values(), *(found.cluster for found in method.discoveries())})
    n_kept = method.kept().images
    if budget is not None and n_kept > budget * n_clusters:
        raise IgcdError(
            f"the method keeps {n_kept:,} images of the past, more than its budget of {budget} for each of "
            f"{n_clusters:,} categories; it must forget some at the end of a stage"
        )


class EventLog:
    """A line of JSON for everything that happens, with its time."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path

    def add(self, event: str, **values: Any) -> None:  # noqa: ANN401 - whatever JSON holds
        """Appends a line."""
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="seconds"), "event": event, **values})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def _finish(stream: Stream, out: Path, config: dict[str, Any]) -> dict[str, Any]:
    predictions = _all_predictions(out, len(stream))
    write_predictions(predictions, out / "predictions.csv")
    stages = [_stage_record(out, index) for index in range(len(stream))]
    set_aside = Quarantine(limit=1.0)  # by name, and of all processes that worked on this run
    for stage in stages:
        for name, reason in stage["set_aside"].items():
            set_aside.add(name, reason)
    if len(set_aside):
        set_aside.write(out / "quarantine.csv")
    seconds = {part: sum(stage["seconds"][part] for stage in stages) for part in ("learn", "predict")}
    results = scorecard(predictions).to_json()
    for scores, record in zip(results["stages"], stages, strict=True):
        scores |= {key: record[key] for key in ("labeled_images", "unlabeled_images", "seconds", "kept")}
        scores["opened"] = len(record["discoveries"])
    results |= {
        "stream": stream.name,
        "method": config["method"]["name"],
        "seed": config["seed"],
        "seconds": seconds,
        "peak_memory_bytes": _peak_memory(),
        "set_aside": set_aside.counts(),
        "versions": {
            "igcd": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in ("numpy", "torch", "timm", "scikit-learn")},
        },
        "config": config,
    }
    write_json(out / "results.json", results)
    return results


def _describe(out: Path, discovery: Discovery, stage: Stage, truth: Truth, assignment: Assignment) -> dict[str, Any]:
    """A discovered category for the report: its typical images first, and what it is where the truth is known."""
    position_of = {image_id: position for position, image_id in enumerate(stage.unlabeled.ids)}
    members = [position_of[image_id] for image_id in discovery.members]
    inside = np.flatnonzero(assignment.cluster.numpy() == discovery.cluster)
    by_probability = inside[np.argsort(-assignment.probability.numpy()[inside], kind="stable")].tolist()
    shown = list(dict.fromkeys([*members, *by_probability]))[:N_GALLERY]
    counts = Counter(truth.categories[position] for position in inside.tolist())
    category = counts.most_common(1)[0][0] if counts else None
    return {
        "cluster": discovery.cluster,
        "nearest_known": discovery.nearest_known,
        "size": len(inside),
        "category": category,
        "purity": counts[category] / len(inside) if category else None,
        "images": _write_thumbnails(out, f"found-{discovery.cluster}", stage.unlabeled, shown),
    }


def _write_examples(out: Path, stage: Stage, known: dict[str, list[str]]) -> dict[str, list[str]]:
    """A few images of each category that is labeled for the first time."""
    examples = {}
    for category in sorted(set(stage.labels.tolist())):
        name = stage.category_names[category]
        if name not in known:
            idx = np.flatnonzero(stage.labels == category)[:N_EXAMPLES].tolist()
            examples[name] = _write_thumbnails(out, f"known-{category}", stage.labeled, idx)
    return examples


def _by_name(stream: Stream, reasons: Mapping[str, str]) -> dict[str, str]:
    """The reasons why images are set aside, by the names behind their opaque ids.

    Looked up when there is something to tell: a table of all names, once made, could be found by the ids in it.
    """
    name_of: dict[str, str] = {}
    for stage, truth in stream if reasons else ():
        known = ((stage.labeled, truth.labeled), (stage.unlabeled, truth.unlabeled), (truth.test_images, truth.test))
        for images, part in known:
            name_of |= dict(zip(images.ids, part.image_ids, strict=True))
    return {name_of.get(image_id, image_id): reason for image_id, reason in reasons.items()}


def _write_thumbnails(out: Path, name: str, images: Images, idx: Iterable[int]) -> list[str]:
    """Small copies of images for the report; those that cannot be read have none."""
    folder = out / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, position in enumerate(idx):
        path = folder / f"{name}-{number}.jpg"
        try:
            pixels = images.square(position, THUMBNAIL)
        except BrokenImageError:
            continue
        Image.fromarray(pixels).save(path, quality=85)
        paths.append(str(path.relative_to(out)))
    return paths


def _load_method(method: Method, path: Path) -> int:
    """How many stages the method has learned already."""
    if not path.is_file():
        return 0
    model = read_model(path)
    model.load_into(method)
    return model.n_stages


def _all_predictions(out: Path, n_stages: int) -> Predictions:
    parts = [read_predictions(_stage_path(out, index, "csv")) for index in range(n_stages)]
    return join_predictions(parts)


def _stage_record(out: Path, stage: int) -> dict[str, Any]:
    return read_raw_record(_stage_path(out, stage, "json"), DoneStage)


def _stage_path(out: Path, stage: int, suffix: str) -> Path:
    return out / "stages" / f"stage-{stage}.{suffix}"


def _peak_memory() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
