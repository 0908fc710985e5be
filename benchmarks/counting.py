"""The number of categories: density peaks against k-means with Brent's search, accuracy and time in one run.

    python benchmarks/counting.py                           # synthetic features
    python benchmarks/counting.py --features features.npz   # yours: arrays `features` (n, d), `categories` (n,)
    python benchmarks/counting.py --starts 1 --methods density kmeans silhouette --json
    python benchmarks/counting.py --recipe cifar100-cpu stream.data=cifar100.npz --record results/counts/mine.jsonl

For each order of the categories (--orders, 3), the first --known are labeled with --labeled images each and have
--again more among the unlabeled; the next --novel have --labeled images there and no label (the setting of METHODS
"first experiments": 70 known of 50 and 10, 10 novel of 50). The number of novel categories is not given. GCD's k-means
has ten starts for every number it tries (scikit-learn's default when it was written). Seconds are of processor time,
on --threads threads (1).

With --recipe the stages are those of the recipe's stream and the features its encoder's, untrained (table 4 of the
paper): at stage t all categories of earlier stages are known with all their images, as if every discovery had been
named, and the number of categories new at t is asked for. --record keeps a line per estimate, for
tools/write_reproducibility.py.
"""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.assembly import build_encoder, build_stream
from igcd.config import read_recipe
from igcd.data.quarantine import Quarantine
from igcd.encoders.encoder import Encoder, encode
from igcd.functional.counting import COUNT_METHODS, estimate_count
from igcd.types import Images


def synthetic_features(n_categories: int, n_images: int, *, width: int = 512, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Overlapping Gaussian categories whose variance falls along the dimensions, normalised: features, categories."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.arange(1, width + 1).float().rsqrt()
    categories = torch.arange(n_categories).repeat_interleave(n_images)
    centers = 0.9 * torch.randn(n_categories, width, generator=generator) * scales
    noise = torch.randn(len(categories), width, generator=generator) * scales
    return normalize(centers[categories] + noise, dim=1), categories


def read_features(path: Path) -> tuple[Tensor, Tensor]:
    with np.load(path, allow_pickle=False) as arrays:
        return torch.from_numpy(arrays["features"]).float(), torch.from_numpy(arrays["categories"]).long()


def stage(
    features: Tensor, categories: Tensor, order: Tensor, *, known: int, novel: int, labeled: int, again: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Labeled features, their labels and unlabeled features, for one order of the categories."""
    rows_of = [(categories == category).nonzero()[:, 0] for category in order[: known + novel]]
    short = [len(rows) for rows in rows_of[:known] if len(rows) < labeled + again]
    if len(rows_of) < known + novel or short:
        raise SystemExit(f"not enough: {len(rows_of)} categories, known ones with {short} images; lower the numbers")
    labeled_rows = torch.cat([rows[:labeled] for rows in rows_of[:known]])
    unlabeled_rows = torch.cat(
        [rows[labeled : labeled + again] for rows in rows_of[:known]] + [rows[:labeled] for rows in rows_of[known:]]
    )
    return features[labeled_rows], categories[labeled_rows], features[unlabeled_rows]


@dataclass(frozen=True)
class Question:
    """What an estimator is given, and the answer."""

    seed: int
    stage: int
    labeled: Tensor  # (m, d)
    labels: Tensor  # (m,)
    unlabeled: Tensor  # (n, d)
    n_novel: int


def questions_of_orders(options: argparse.Namespace) -> Iterator[Question]:
    """One stage for each order of the categories."""
    if options.features:
        features, categories = read_features(options.features)
    else:
        features, categories = synthetic_features(options.known + options.novel, options.labeled + options.again)
    different = categories.unique()
    sizes = {name: getattr(options, name) for name in ("known", "novel", "labeled", "again")}
    for seed in range(options.orders):
        order = different[torch.randperm(len(different), generator=torch.Generator().manual_seed(seed))]
        yield Question(seed, 1, *stage(features, categories, order, **sizes), options.novel)


def questions_of_recipe(options: argparse.Namespace) -> Iterator[Question]:
    """Every stage with unlabeled images of the recipe's stream, for each seed."""
    for seed in range(options.orders):
        recipe = read_recipe(options.recipe, [*options.overrides, f"seed={seed}"])
        encoder = build_encoder(recipe.encoder, quarantine=Quarantine())

        def features_of(images: Images, encoder: Encoder = encoder) -> Tensor:
            views = encoder.plain_views(images)
            return encode(views, encoder.backbone.tail, n_features=encoder.backbone.n_features)

        known: list[Tensor] = []
        names: list[str] = []
        for stage, truth in build_stream(recipe.stream, seed).stream:
            labeled, unlabeled = features_of(stage.labeled), features_of(stage.unlabeled)
            known, names = [*known, labeled], [*names, *truth.labeled.categories]
            if len(unlabeled):
                numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
                labels = torch.tensor([numbers[name] for name in names])
                n_novel = len(set(truth.unlabeled.categories) - set(names))
                yield Question(seed, stage.index, torch.cat(known), labels, unlabeled, n_novel)
            known, names = [*known, unlabeled], [*names, *truth.unlabeled.categories]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--recipe", help="take stages and features from a recipe's stream")
    parser.add_argument("overrides", nargs="*", help="key=value for the recipe")
    parser.add_argument("--known", type=int, default=70)
    parser.add_argument("--novel", type=int, default=10)
    parser.add_argument("--labeled", type=int, default=50)
    parser.add_argument("--again", type=int, default=10)
    parser.add_argument("--orders", type=int, default=3, help="orders of the categories; with --recipe, seeds 0, 1, …")
    parser.add_argument("--methods", nargs="+", default=["density", "kmeans"], choices=COUNT_METHODS)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--max-categories", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    rows = []
    for question in questions_of_recipe(options) if options.recipe else questions_of_orders(options):
        for method in options.methods:
            start = time.process_time()
            found = estimate_count(
                method,
                question.labeled,
                question.labels,
                question.unlabeled,
                generator=torch.Generator().manual_seed(question.seed),
                max_categories=options.max_categories,
                n_starts=options.starts,
            )
            seconds = time.process_time() - start
            row = {"seed": question.seed, "stage": question.stage, "method": method, "starts": options.starts}
            row |= {"novel_found": found.n_novel, "novel": question.n_novel, "seconds": seconds}
            row |= {"trials": found.n_trials, "details": dict(found.details)}
            row |= {
                "recipe": options.recipe,
                "command": shlex.join(["python", "benchmarks/counting.py", *sys.argv[1:]]),
            }
            rows.append(row)
            if options.record:
                options.record.parent.mkdir(parents=True, exist_ok=True)
                with options.record.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            if not options.json:
                print(
                    f"seed {question.seed}  stage {question.stage}  {method:<10} {found.n_novel:>4} novel of "
                    f"{question.n_novel}  {seconds:>8.2f} s  {found.n_trials} tried",
                    flush=True,
                )
    summary = {}
    for method in options.methods:
        own = [row for row in rows if row["method"] == method]
        summary[method] = {
            "mean_error": sum(abs(row["novel_found"] - row["novel"]) for row in own) / len(own),
            "mean_seconds": sum(row["seconds"] for row in own) / len(own),
        }
    if options.json:
        print(json.dumps({"rows": rows, "summary": summary}, indent=2))
        return
    for method, figures in summary.items():
        line = f"{method:<10} mean error {figures['mean_error']:.1f}, {figures['mean_seconds']:.2f} s"
        if method != "density" and "density" in summary:
            line += f", density {figures['mean_seconds'] / summary['density']['mean_seconds']:.0f}× faster"
        print(line)


if __name__ == "__main__":
    main()
