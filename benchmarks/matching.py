"""How long the matching of clusters to categories takes, dense against sparse, and scoring a large file.

    python benchmarks/matching.py

Each size is solved by both solvers in turn, several times; the ratio (dense / sparse) compares runs that lie next to
each other. What is timed is all that a stage needs: counting, ordering, solving; in seconds of one processor. The
counts are like those of a real system: a share of the images in the category's own cluster, the rest in some other.
"""

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from igcd.functional.assignment import Solver, contingency, match
from igcd.metrics.predictions import parse_predictions, write_predictions
from igcd.metrics.scorecard import scorecard
from igcd.types import IntArray, Predictions

SIZES = (  # categories, clusters, images, share of images in the right cluster
    (10, 10, 1_000, 0.5),
    (100, 100, 10_000, 0.5),
    (150, 150, 10_000, 0.5),
    (200, 200, 6_000, 0.5),
    (200, 200, 20_000, 0.5),
    (256, 256, 20_000, 0.5),
    (300, 300, 10_000, 0.5),
    (400, 400, 20_000, 0.5),
    (1_000, 1_000, 25_000, 0.3),
    (4_324, 4_324, 100_000, 0.25),
    (4_324, 4_324, 100_000, 0.6),
    (4_324, 4_085, 100_000, 0.25),
    (4_324, 6_000, 100_000, 0.25),
)
N_REPEATS = 7


def draw(
    rng: np.random.Generator, n_categories: int, n_clusters: int, n: int, share: float
) -> tuple[IntArray, IntArray]:
    categories = rng.integers(n_categories, size=n)
    own = categories % n_clusters
    return np.where(rng.random(n) < share, own, rng.integers(n_clusters, size=n)), categories


def timed_match(clusters: IntArray, categories: IntArray, solver: Solver | None) -> tuple[float, int]:
    """Seconds, and the number of images made right."""
    started = time.process_time()
    counts = contingency(clusters, categories)
    category_of = match(counts, solver=solver)
    seconds = time.process_time() - started
    return seconds, int((category_of[clusters] == categories).sum())


def main() -> None:
    rng = np.random.default_rng(0)
    table = Table(box=None, title=f"Median seconds of {N_REPEATS} runs", title_justify="left")
    for column in (
        "categories",
        "clusters",
        "images",
        "right",
        "dense",
        "sparse",
        "ratio",
        "lowest",
        "highest",
        "chosen",
    ):
        table.add_column(column, justify="right")
    for n_categories, n_clusters, n, share in SIZES:
        clusters, categories = draw(rng, n_categories, n_clusters, n, share)
        seconds: dict[Solver | None, list[float]] = {"dense": [], "sparse": [], None: []}
        n_right = set()
        for _ in range(N_REPEATS):
            for solver, runs in seconds.items():
                elapsed, right = timed_match(clusters, categories, solver)
                runs.append(elapsed)
                n_right.add(right)
        if len(n_right) != 1:
            raise AssertionError(f"the solvers disagree: {n_right} images right")
        ratios = sorted(dense / sparse for dense, sparse in zip(seconds["dense"], seconds["sparse"], strict=True))
        table.add_row(
            *(f"{number:,}" for number in (n_categories, n_clusters, n)),
            f"{100 * n_right.pop() / n:.0f}%",
            *(f"{statistics.median(seconds[solver]):.4f}" for solver in ("dense", "sparse")),
            *(f"{ratio:.2f}" for ratio in (statistics.median(ratios), ratios[0], ratios[-1])),
            f"{statistics.median(seconds[None]):.4f}",
        )
    console = Console(width=100)
    console.print(table)
    time_large_file(rng, console)


def time_large_file(rng: np.random.Generator, console: Console) -> None:
    """A million rows: 4 stages, both splits, 4,324 categories."""
    n = 1_000_000
    clusters, categories = draw(rng, 4_324, 4_324, n, 0.5)
    stages = rng.integers(4, size=n)
    predictions = Predictions(
        stages,
        tuple(np.where(rng.random(n) < 0.5, "test", "unlabeled").tolist()),
        tuple(f"image-{i}" for i in range(n)),
        tuple(f"category-{category}" for category in categories.tolist()),
        tuple(map(str, clusters.tolist())),
        tuple(np.where(categories % 4 < stages, "Old", "New").tolist()),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.csv"
        started = time.process_time()
        write_predictions(predictions, path)
        written = time.process_time()
        parsed = parse_predictions(path)
        read = time.process_time()
        scorecard(parsed)
        scored = time.process_time()
    console.print(
        f"{n:,} rows, 4,324 categories, 4 stages: written in {written - started:.1f} s, "
        f"read in {read - written:.1f} s,\nchecked and scored in all 24 variants in {scored - read:.1f} s"
    )


if __name__ == "__main__":
    main()
