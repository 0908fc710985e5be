"""Fitting `CategoryDiscoverer` on up to a million rows: time, memory, accuracy, and how they grow.

    python benchmarks/scale.py --sizes 10000 50000 200000 --out runs/scale
    python benchmarks/scale.py --sizes 1000000 --threads 2 --out runs/scale     # the bar: 30 minutes and 4 GB
    python benchmarks/scale.py --sizes 100000 --systems exact count fast_hdbscan evoc --out runs/scale
    python benchmarks/scale.py --sizes 100000 --exact-up-to 50000 --out runs/scale    # approximate at that size already
    python benchmarks/scale.py --plot docs/images/scale.svg --out results/scale  # time and memory, with exponents

Rows are real features enlarged (`enlarged.py`), 256 numbers each in a mapped float16 .npy file, of 2,000 categories
with a long tail; with fewer than 200,000 rows of one category per 100 rows. Half of the categories are known: of each
some rows are labeled, 1% of all rows together and one of each at least. Each run is a process of its own; what it
measured is appended to `measured.jsonl`, and a size that is there already is not run again. Seconds are of the wall
and of the processor. `gigabytes` is the highest resident memory that is not of mapped files, the libraries included;
`highest_in` is the function of igcd in which it is.
Accuracy is over the unlabeled rows: clusters are matched one to one with categories, known ones by their label.
`exact` is `CategoryDiscoverer` with an exact graph, `count` is `igcd count` on the file, which has no accuracy.
fast_hdbscan and evoc cluster the same rows without labels; where one is not installed it is skipped, and that is said.
"""

import argparse
import cProfile
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from enlarged import real_spread, write_enlarged

from igcd.cli.count import estimate_from, read_features
from igcd.comparison.ledger import commit_of_code
from igcd.discoverer import CategoryDiscoverer
from igcd.functional import neighbors, projection
from igcd.functional.assignment import contingency, match
from igcd.types import IntArray

MOST_CATEGORIES, ROWS_PER_CATEGORY = 2_000, 100
LABELED = 0.01
STEPS = (
    "digests",
    "fit_projection",
    "discover",
    "fit_whitening",
    "neighbor_graph",
    "approximate_neighbors",
    "pull_together",
    "node_of_rows",
    "tree_over",
    "parts_of_categories",
    "choose_cut",
    "bits_per_step",
    "explained_shares",
    "_label_scores",
    "_refine",
    "rehearsed_sharpness",
    "_take_in",
    "_assign",
)
"""Functions whose seconds are noted. `discover` also runs inside `rehearsed_sharpness`, and so do its own steps."""
SYSTEMS = ("igcd", "exact", "count", "fast_hdbscan", "evoc")
OURS = ("igcd", "exact")
PACKAGES = {"fast_hdbscan": "fast-hdbscan", "evoc": "evoc"}


COUNTING = {"method": "density", "granularity": 0.0, "max_categories": None, "n_starts": 1, "seed": 0}
"""`igcd count` as it is called without options."""


class HighestMemory:
    """The highest anonymous resident memory of this process while it is open, in bytes; looked at every 0.1 s.

    `by_step` has the highest of each function of igcd, as long as it calls no other of igcd.
    """

    def __enter__(self) -> "HighestMemory":
        self.bytes, self.by_step, self._ends = 0, dict[str, int](), threading.Event()
        self._asked = threading.get_ident()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ends.wait(0.1):
            lines = Path("/proc/self/status").read_text().splitlines()
            kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self.bytes = max(self.bytes, 1024 * kilobytes)
            step = self._step()
            self.by_step[step] = max(self.by_step.get(step, 0), 1024 * kilobytes)

    def _step(self) -> str:
        frame = sys._current_frames().get(self._asked)
        while frame is not None and "/igcd/" not in frame.f_code.co_filename:
            frame = frame.f_back
        return "outside" if frame is None else f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"


def n_categories_of(n: int) -> int:
    return min(MOST_CATEGORIES, n // ROWS_PER_CATEGORY)


def labels_of(y: IntArray, *, seed: int = 0) -> IntArray:
    """−1, or the category of the rows that are labeled: of every second category, 1% of all rows together. (n,)."""
    rng = np.random.default_rng(seed)
    labels = np.full(len(y), -1)
    known = rng.permutation(int(y.max()) + 1)[: (int(y.max()) + 1) // 2]
    share = LABELED * len(y) / np.isin(y, known).sum()
    chosen = np.isin(y, known) & (rng.random(len(y)) < share)
    chosen[[int(np.flatnonzero(y == category)[0]) for category in known]] = True
    labels[chosen] = y[chosen]
    return labels


def accuracy(predicted: IntArray, y: IntArray, labels: IntArray, *, uses_labels: bool) -> dict[str, float]:
    """Share of the unlabeled rows that are right: all, of known and of novel categories."""
    unlabeled = labels < 0
    known_ids = np.unique(labels[labels >= 0])
    is_known = np.isin(y, known_ids)
    if uses_labels:  # a known category is right by its name alone; discoveries are matched with what is not known
        right = predicted == y
        rest = unlabeled & ~np.isin(predicted, known_ids)
        groups = np.unique(predicted[rest], return_inverse=True)[1]
        matched = match(contingency(groups, y[rest]))[groups] if len(groups) else groups
        right[rest] = (matched == y[rest]) & ~is_known[rest] & (predicted[rest] >= 0)
    else:
        groups = np.unique(predicted, return_inverse=True)[1]
        right = (match(contingency(groups, y))[groups] == y) & (predicted >= 0)
    of = {"all": unlabeled, "known": unlabeled & is_known, "novel": unlabeled & ~is_known}
    return {name: float(right[rows].mean()) for name, rows in of.items()}


def cluster(system: str, x: np.memmap) -> IntArray:
    if system == "fast_hdbscan":
        import fast_hdbscan

        return fast_hdbscan.HDBSCAN(min_cluster_size=10).fit_predict(x.astype(np.float32))
    import evoc

    return evoc.EVoC(random_state=0).fit_predict(x.astype(np.float32))


def measure(system: str, n: int, folder: Path, exact_up_to: int, *, profiles: bool) -> dict[str, object]:
    path = folder / f"rows-{n}-{os.getpid()}.npy"
    n_categories = n_categories_of(n)
    y = write_enlarged(path, n, n_categories, spread=real_spread())
    x = np.load(path, mmap_mode="r")
    labels = labels_of(y)
    limit = n if system == "exact" else exact_up_to
    neighbors.neighbor_graph.__kwdefaults__["approximate_above"] = limit
    projection.EXACT_UP_TO = limit
    recall, n_found, predicted = 1.0, 0, None
    profile = cProfile.Profile(time.process_time) if profiles else None
    with HighestMemory() as memory:
        wall, processor = time.perf_counter(), time.process_time()
        if system == "count":
            names = ["" if label < 0 else str(label) for label in labels.tolist()]
            with profile or nullcontext():
                estimate, _ = estimate_from(read_features(path), names, **COUNTING)
            n_found, recall = estimate.n_categories, float(estimate.details["neighbor_recall"])
        elif system in OURS:
            with profile or nullcontext():
                model = CategoryDiscoverer(unsure=None).fit(x, labels)
            predicted, recall, n_found = model.labels_, model.neighbor_recall_, len(model.categories_)
        else:
            predicted = cluster(system, x)
            n_found = len(np.unique(predicted[predicted >= 0]))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    path.unlink()
    return {
        "system": system,
        "commit": commit_of_code(),
        "rows": n,
        "categories": n_categories,
        "found": n_found,
        "threads": torch.get_num_threads(),
        "wall_seconds": round(wall, 1),
        "processor_seconds": round(processor, 1),
        "gigabytes": round(memory.bytes / 1e9, 3),
        "highest_in": next(iter(gigabytes_of(memory))),
        "recall": round(recall, 4),
        "accuracy": None
        if predicted is None
        else {
            name: round(value, 4) for name, value in accuracy(predicted, y, labels, uses_labels=system in OURS).items()
        },
        "exact_up_to": limit,
        **({} if profile is None else {"steps": steps_of(profile), "gigabytes_of_steps": gigabytes_of(memory)}),
    }


def steps_of(profile: cProfile.Profile) -> dict[str, float]:
    """Processor seconds in each of the steps of `fit`, those inside it included."""
    profile.create_stats()
    found = {name: each[3] for (file, _, name), each in profile.stats.items() if "igcd" in file and name in STEPS}
    return {name: round(found[name], 1) for name in STEPS if name in found}


def gigabytes_of(memory: HighestMemory) -> dict[str, float]:
    """The highest memory in each function, the highest first."""
    falling = sorted(memory.by_step.items(), key=lambda each: -each[1])
    return {step: round(most / 1e9, 3) for step, most in falling}


def exponent(rows: list[int], values: list[float]) -> float:
    """The slope of a line of least squares through logarithms: 1 where twice the rows take twice as much."""
    return float(np.polyfit(np.log(rows), np.log(values), 1)[0])


def plot(measured: list[dict], path: Path) -> None:  # type: ignore[type-arg]
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6))
    for axis, name, unit in zip(axes, ("processor_seconds", "gigabytes"), ("seconds", "GB"), strict=True):
        for system in SYSTEMS:
            points = sorted((row["rows"], row[name]) for row in measured if row["system"] == system)
            if not points:
                continue
            rows, values = [point[0] for point in points], [point[1] for point in points]
            slope = f", n^{exponent(rows, values):.2f}" if len(points) > 2 else ""
            axis.loglog(rows, values, marker="o", label=f"{system}{slope}")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        for scale, text in ((axis.xaxis, "{x:,.0f}"), (axis.yaxis, "{x:,g}")):
            scale.set_major_formatter(text)
            scale.set_minor_formatter(NullFormatter())
        axis.set_xlabel("rows")
        axis.set_ylabel(name.replace("_", " ") if unit == "seconds" else unit)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000, 200_000])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=["igcd"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--exact-up-to", type=int, default=neighbors.EXACT_UP_TO)
    parser.add_argument("--profile", action="store_true", help="note seconds and gigabytes of each step; takes longer")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw what was measured instead")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    record = options.out / "measured.jsonl"
    if options.in_this_process:
        print(
            json.dumps(
                measure(
                    options.systems[0], options.sizes[0], options.out, options.exact_up_to, profiles=options.profile
                )
            )
        )
        return 0
    measured = [json.loads(line) for line in record.read_text().splitlines()] if record.is_file() else []
    if options.plot:
        plot([row for row in measured if row["exact_up_to"] == neighbors.EXACT_UP_TO], options.plot)
        return 0
    for n in options.sizes:
        for system in options.systems:
            if system in PACKAGES and find_spec(system) is None:
                print(f"{system} is not installed and skipped; pip install {PACKAGES[system]}", flush=True)
                continue
            limit = n if system == "exact" else options.exact_up_to
            wanted = (system, n, options.threads, limit)
            if any(
                tuple(row[key] for key in ("system", "rows", "threads", "exact_up_to")) == wanted for row in measured
            ):
                continue
            command = [sys.executable, __file__, "--in-this-process", "--sizes", str(n), "--systems", system]
            command += ["--out", str(options.out), "--threads", str(options.threads), "--exact-up-to", str(limit)]
            command += ["--profile"] if options.profile else []
            line = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
            with record.open("a") as file:
                file.write(line + "\n")
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
