"""A budget that teaches: at which size, images and epochs training gains over frozen features, on rehearsals.

    python benchmarks/budget.py cifar100-cpu stream.data=cifar100.npz --sizes 112 160 --images 20 50 --epochs 6 20
    python benchmarks/budget.py --show

The upper bound (`supervised`, all labels) against the best that frozen features allow: a Gaussian per category with
a shared covariance, from the same labeled images. Both are scored on the images that the rehearsal holds out, which
are labeled images of stage 0: no test image of a stream takes part. `--images` are images per category at stage 0, of
which seven in ten are trained on at most. Every setting is a line of --out; those that are there are not run again, and
epochs of one that was stopped are kept beside it, so the same command goes on with a search.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from igcd.assembly import build_encoder, build_fabric, build_stream, method_maker, stream_of
from igcd.config import Recipe, read_recipe
from igcd.data.images import digest
from igcd.data.quarantine import Quarantine
from igcd.encoders.encoder import Encoder, encode
from igcd.functional.gaussian import scatter_statistics, shared_gaussians
from igcd.functional.projection import project_together
from igcd.runner import EpochCheckpoint
from igcd.types import Images, Stage, StageTruth

OUT = Path("runs/budget.jsonl")


@dataclass(frozen=True)
class Setting:
    """What is varied, beside the recipe and its overrides."""

    recipe: str
    overrides: tuple[str, ...]
    size: int
    images: int
    epochs: int
    learning_rate: float
    seed: int

    def read(self) -> Recipe:
        """The rehearsal of the recipe with these settings, for the upper bound."""
        changes = [
            "stream.rehearsal=true",
            "method.name=supervised",
            f"encoder.size={self.size}",
            f"stream.by_category.images_labeled={self.images}",
            f"training.first_stage.epochs={self.epochs}",
            f"training.first_stage.learning_rate={self.learning_rate}",
            f"seed={self.seed}",
        ]
        return read_recipe(self.recipe, [*self.overrides, *changes])

    @property
    def key(self) -> str:
        """The same for the same setting, whatever the folders of the data are called."""
        named = [override for override in self.overrides if not override.startswith("stream.data=")]
        return json.dumps([self.recipe, named, self.size, self.images, self.epochs, self.learning_rate, self.seed])


def last_stage(setting: Setting, recipe: Recipe) -> tuple[Stage, StageTruth]:
    """The stage at which the upper bound has the labels of all categories of the rehearsal."""
    *_, last = stream_of(recipe, build_stream(recipe.stream, setting.seed))
    return last


def frozen_accuracy(encoder: Encoder, stage: Stage, truth: StageTruth) -> float:
    """Percent right of a Gaussian classifier with a shared covariance on the pretrained feature."""

    def features(images: Images) -> torch.Tensor:
        views = encoder.plain_views(images)
        return encode(views, encoder.backbone.tail, n_features=encoder.backbone.n_features).cpu()

    x, queries = project_together(features(stage.labeled), features(truth.test_images))
    statistics = scatter_statistics(x, torch.from_numpy(stage.labels), n_categories=len(stage.category_names))
    predicted, _ = shared_gaussians(statistics).predict(queries)
    return percent_right(np.array(stage.category_names)[predicted.numpy()], truth)


def percent_right(names: np.ndarray, truth: StageTruth) -> float:
    return 100 * float((names == np.array(truth.test.categories)).mean())


def measure(setting: Setting, folder: Path) -> dict[str, object]:
    """One line of the table. The epochs of a setting that was stopped are in the folder, and it goes on from there."""
    recipe = setting.read()
    stage, truth = last_stage(setting, recipe)
    encoder = build_encoder(recipe.encoder, quarantine=Quarantine())
    started = time.monotonic()
    frozen = frozen_accuracy(encoder, stage, truth)
    encoder.training_views(stage.labeled)
    cached = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = EpochCheckpoint(folder / f"{digest(setting.key.encode())}.safetensors")
    ends: list[float] = []
    make = method_maker(recipe, encoder, build_fabric(recipe))
    method = make(checkpoint, lambda _report: ends.append(time.monotonic()))
    method.learn(stage)
    checkpoint.clear()
    name_of = {cluster: stage.category_names[category] for category, cluster in method.clusters_of_categories().items()}
    clusters = method.predict(truth.test_images).cluster.tolist()
    bound = percent_right(np.array([name_of[cluster] for cluster in clusters]), truth)
    steps_per_epoch = math.ceil(len(stage.labels) / recipe.training.first_stage.batch_size)
    return asdict(setting) | {
        "key": setting.key,
        "images_trained": len(stage.labels),
        "categories": len(stage.category_names),
        "steps": setting.epochs * steps_per_epoch,
        "frozen": frozen,
        "bound": bound,
        "gain": bound - frozen,
        "seconds_caching": cached - started,
        "seconds_per_step": (ends[-1] - cached) / (len(ends) * steps_per_epoch) if ends else None,
    }


def lines_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.is_file() else []


def show(lines: list[dict[str, Any]]) -> Iterator[str]:
    """The table, one row per setting, means over seeds."""
    yield "| recipe | overrides | px | images per category | epochs | steps | rate | seeds | frozen | bound | gain |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    columns = ("recipe", "overrides", "size", "images", "epochs", "steps", "learning_rate")
    settings = [[" ".join(line[name]) if name == "overrides" else line[name] for name in columns] for line in lines]
    for key in sorted({tuple(setting) for setting in settings}, key=str):
        same = [line for line, setting in zip(lines, settings, strict=True) if tuple(setting) == key]
        frozen, bound, gain = (np.mean([line[name] for line in same]) for name in ("frozen", "bound", "gain"))
        cells = [*map(str, key), str(len(same)), *(f"{value:.1f}" for value in (frozen, bound, gain))]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", default="cifar100-cpu")
    parser.add_argument("overrides", nargs="*", help="key=value for the recipe")
    parser.add_argument("--sizes", nargs="+", type=int, default=[112])
    parser.add_argument("--images", nargs="+", type=int, default=[20])
    parser.add_argument("--epochs", nargs="+", type=int, default=[6])
    parser.add_argument("--learning-rates", nargs="+", type=float, default=[0.1])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--show", action="store_true", help="print the table of what is there and run nothing")
    options = parser.parse_intermixed_args()
    torch.set_num_threads(options.threads)
    if not options.show:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        grid = product(options.seeds, options.sizes, options.images, options.epochs, options.learning_rates)
        for seed, size, images, epochs, rate in grid:
            setting = Setting(options.recipe, tuple(options.overrides), size, images, epochs, rate, seed)
            if setting.key in {line["key"] for line in lines_of(options.out)}:
                continue
            line = measure(setting, options.out.with_suffix(""))
            line["overrides"] = [text for text in setting.overrides if not text.startswith("stream.data=")]
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    print("\n".join(show(lines_of(options.out))))


if __name__ == "__main__":
    main()
