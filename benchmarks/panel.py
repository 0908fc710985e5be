"""The panel: how good `igcd.CategoryDiscoverer` is at finding categories, beside methods that are given their number.

    python benchmarks/panel.py                                        # everything that is on this machine
    python benchmarks/panel.py --sets digits mixture --scenes many none --seeds 0
    python benchmarks/panel.py mine.npz --sets mine                   # your features: arrays x (n, d), y (n,)
    python benchmarks/panel.py --estimator-only                       # no baseline that is not in the cache yet

Sets: digits, the .npz files given or found in ../shared/data/panel, features of training images of CIFAR-100, CUB and
the field guide (computed once), and made-up mixtures; see panel_sets.py. `--sets mixture` means all that begin with it.
`cifar100_10x250` and `cifar100_5x400`, a few large categories, are run only where `--sets` names them.

Scenes: in all but two, half of the categories are known, and the rows of the other half are unlabeled among the rest.
- `many`: 20 labels of each known category (at most half of its rows); `few`: 3; `one`: 1; `none`: no label at all;
- `next`: as `many`, then a second batch that has half of the new categories for itself;
- `all_known`: as `many`, without the rows of new categories: whatever is found is a false discovery.

Scores are shares of unlabeled rows right after one Hungarian matching, in percent: All, Old (known categories), New.
"Given K" is semi-supervised k-means that is given the number of categories, k-means in `none`. ECE is the expected
calibration error of `predict_proba`; kept is the share of rows of the first batch that have their category after the
second, without those that moved into a category opened there, which "unchanged" counts as lost. "Best" is the
best of k-means, semi-supervised k-means and a Gaussian mixture, all given the number, chosen for each task with the
truth at hand: no bar, but a check that "given K" had no bad luck with its starts. Seconds are of processor time.

Into --out: results.jsonl (a line per task; a task is not run again while the estimator's code is the same, unless
--fresh), baselines.json (they do not depend on the estimator), panel.md and panel.svg. Exits with 1 if a bar is missed.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import panel_tasks
from panel_baselines import BaselineFile
from panel_report import figure, main_baseline, markdown, verdicts
from panel_sets import LARGE_SETS, SHARED_DATA, FeatureSet, MissingDataError, choose, panel_recipes
from panel_tasks import SCENES, Discoverer, Task, make_task, score_discoverer
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import igcd
from igcd import CategoryDiscoverer
from igcd.errors import IgcdError
from igcd.records import write_bytes

PACKAGES = ("discoverer", "functional", "memory")
"""Of igcd: what the estimator's answer depends on."""

Row = dict[str, Any]


def estimator_key() -> str:
    """A digest of the estimator's code and default parameters, committed or not, and of how it is scored."""
    content = hashlib.blake2b(repr(sorted(CategoryDiscoverer().get_params().items())).encode(), digest_size=8)
    content.update(Path(panel_tasks.__file__).read_bytes())
    root = Path(igcd.__file__).parent
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        content.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return content.hexdigest()


class ResultFile:
    """A line per finished task. A line that a killed run left unfinished is passed over."""

    def __init__(self, path: Path, *, fresh: bool) -> None:
        self._path = path
        self._rows: dict[tuple[object, ...], Row] = {}
        if path.is_file():
            lines = path.read_bytes().decode("utf-8", "replace").split("\n")
            if lines[-1]:
                self._append("\n")
            for row in filter(None, map(_parse, [] if fresh else lines)):
                self._rows[_task_key(row)] = row

    def get(self, question: Row) -> Row | None:
        """The row of a task that was finished with the same features and estimator."""
        return self._rows.get(_task_key(question))

    def add(self, row: Row) -> None:
        """Keeps a row."""
        self._rows[_task_key(row)] = row
        self._append(json.dumps(row) + "\n")

    def _append(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(text)


def _task_key(row: Row) -> tuple[object, ...]:
    return tuple(row.get(name) for name in ("set", "set_key", "scene", "seed", "estimator"))


def _parse(line: str) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def run_task(task: Task, question: Row, make: Callable[[], Discoverer]) -> Row:
    """The question with the scores of the estimator, or with the error it ended in: one must not end the panel."""
    try:
        return question | {"ours": score_discoverer(task, make)}
    except Exception as error:  # the estimator is what is tried out here
        return question | {"error": f"{type(error).__name__}: {error}"}


def run_set(
    features: FeatureSet,
    scenes: list[str],
    seeds: list[int],
    results: ResultFile,
    baselines: BaselineFile,
    *,
    estimator: str,
    estimator_only: bool = False,
    make: Callable[[], Discoverer] = CategoryDiscoverer,
) -> Iterator[Row]:
    """All tasks on one set, each a row of scores with those of the baselines, stored or computed now."""
    set_key = features.key
    for scene in scenes:
        for seed in seeds:
            task = make_task(features, scene, seed)
            question = {"set": features.name, "set_key": set_key, "scene": scene, "seed": seed, "estimator": estimator}
            row = results.get(question)
            if row is None:
                row = run_task(task, question, make)
                if "error" not in row:
                    results.add(row)
            scores = baselines.get(task, set_key) if estimator_only else baselines.compute(task, set_key)
            yield row | {"baselines": scores or {}}


def progress_line(row: Row) -> str:
    """What is shown when a task is done."""
    name = f"{row['set']:<32} {row['scene']:<9} seed {row['seed']}"
    if "error" in row:
        return f"{name}  FAILED  {row['error']}"
    ours, other = row["ours"], main_baseline(row)
    beside = "" if other is None else f" (k-means {other:5.1f})"
    return (
        f"{name}  {ours['all']:5.1f}{beside}  {ours['found']:3d} of {ours['true']:3d} new  ECE {ours['ece']:.3f}"
        f"  {ours['seconds']:6.1f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help=".npz files with x and y, in place of those in DATA/panel")
    parser.add_argument("--sets", nargs="+", help="names of sets, or what they begin with; all unless given")
    parser.add_argument("--scenes", nargs="+", default=list(SCENES), choices=SCENES)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--out", type=Path, default=Path("runs/panel"))
    parser.add_argument("--data", type=Path, default=SHARED_DATA, help="folder of cifar100.npz, cub200*.npz and panel/")
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/igcd/panel"), help="folder of computed features")
    parser.add_argument("--estimator-only", action="store_true", help="take baselines from the cache or leave them out")
    parser.add_argument("--fresh", action="store_true", help="run the estimator again where its code has not changed")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    try:
        seeds = [int(seed) for seed in options.seeds.split(",")]
    except ValueError:
        parser.error(f"--seeds must be whole numbers with commas between them, got {options.seeds!r}")

    import torch

    torch.set_num_threads(options.threads)
    with threadpool_limits(options.threads):
        return run_panel(options, seeds)


def run_panel(options: argparse.Namespace, seeds: list[int]) -> int:
    recipes = panel_recipes(options.files, options.data)
    recipes = choose(recipes | dict(LARGE_SETS), options.sets) if options.sets else recipes
    results = ResultFile(options.out / "results.jsonl", fresh=options.fresh)
    baselines = BaselineFile(options.out / "baselines.json")
    rows: list[Row] = []
    started = time.perf_counter()
    for number, (name, recipe) in enumerate(recipes.items(), start=1):
        try:
            features = recipe.load(name, data=options.data, cache=options.cache.expanduser())
        except MissingDataError as error:
            print(f"skipped: {error}", flush=True)
            continue
        n_rows, n_columns = features.x.shape
        print(f"set {number} of {len(recipes)}: {name}, {n_rows:,} × {n_columns}, {features.y.max() + 1} categories")
        for row in run_set(
            features,
            options.scenes,
            seeds,
            results,
            baselines,
            estimator=estimator_key(),
            estimator_only=options.estimator_only,
        ):
            rows.append(row)
            print(f"{time.perf_counter() - started:6.0f} s  {progress_line(row)}", flush=True)
    text = markdown(rows)
    found = verdicts(rows)
    text += "\n" + "\n".join(f"- {verdict.sentence}" for verdict in found) + "\n"
    write_bytes(options.out / "panel.md", text.encode())
    write_bytes(options.out / "panel.svg", figure(rows).encode())
    print(f"\n{text}\n{options.out / 'panel.md'}, {options.out / 'panel.svg'}")
    return int(any(verdict.is_met is False for verdict in found))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except IgcdError as error:
        sys.exit(str(error))
