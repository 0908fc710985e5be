"""Streams of the panel's features: categories opened and rows right when only statistics of the past are kept.

    python benchmarks/panel_streams.py                                 # the sets that are on this machine, seed 0
    python benchmarks/panel_streams.py --sets digits mixture --returning 0.1 0.4 0.8 --seeds 0 1 2
    python benchmarks/panel_streams.py --known 0.4 --later 1           # more new categories than known ones

Seven in ten categories are labeled at stage 0, the others arrive in three stages among rows that come back of earlier
ones: `--returning` is how many, per stage, as a share of the labeled rows of a category. A quarter of each category's
rows is for scoring. Known categories are kept as means, counts and a covariance, as in `density_gaussian`, on features
that stand still. Scores are percent right at the last stage after one Hungarian matching: All, Old, New.

What is known of a stream (heights to cut at, shrinkage) is chosen with this and with rehearsals, never with the test
images of a stream.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from panel_sets import SHARED_DATA, FeatureSet, MissingDataError, choose, panel_recipes

from igcd.functional.assignment import contingency, match
from igcd.functional.discovery import discover_from_statistics
from igcd.functional.gaussian import scatter_statistics, shared_gaussians
from igcd.functional.growing_scatter import add_means
from igcd.functional.hidden_categories import heights_by_hiding
from igcd.functional.left_out_shrinkage import left_out_shrinkage
from igcd.functional.projection import N_COMPONENTS, fit_projection_of_all
from igcd.types import IntArray

KNOWN, N_LATER = 0.7, 3
"""Share of the categories labeled at stage 0, number of later stages."""
FOR_SCORING, NEW = 0.25, 1.5
"""Share of rows scored, new rows per labeled one."""
SETS = ("digits", "cifar100", "cub", "fieldguide", "mixture")


@dataclass(frozen=True)
class Arrivals:
    """Rows of a set by the stage at which they arrive."""

    categories: list[IntArray]  # new at each stage
    labeled: IntArray  # at stage 0
    unlabeled: list[IntArray]  # at each later stage
    test: IntArray


@dataclass(frozen=True)
class Outcome:
    """What one stream ended with."""

    opened: list[int]  # at each later stage
    true: list[int]
    all: float
    old: float
    new: float


def arrivals(y: IntArray, returning: float, seed: int, *, known: float = KNOWN, n_later: int = N_LATER) -> Arrivals:
    """Deals the rows out: l labeled ones, 1.5 l when a category is new, `returning` l at each stage after that."""
    rng = np.random.default_rng(seed)
    categories = rng.permutation(np.unique(y))
    n_known = round(known * len(categories))
    groups = [categories[:n_known], *np.array_split(categories[n_known:], n_later)]
    at_stage: list[list[IntArray]] = [[] for _ in groups]
    test: list[IntArray] = []
    for stage, group in enumerate(groups):
        for category in group:
            rows = rng.permutation(np.flatnonzero(y == category))
            scored, rows = np.split(rows, [max(1, round(FOR_SCORING * len(rows)))])
            test.append(scored)
            first = 1.0 if stage == 0 else NEW
            share = first / (first + returning * (n_later - stage))
            own, back = np.split(rows, [max(2, round(share * len(rows)))])
            at_stage[stage].append(own)
            for later, part in enumerate(np.array_split(back, max(1, n_later - stage)), start=stage + 1):
                if later <= n_later:
                    at_stage[later].append(part)
    labeled, *unlabeled = (np.concatenate(parts) for parts in at_stage)
    return Arrivals(groups, labeled, unlabeled, np.concatenate(test))


def run_stream(
    features: FeatureSet, returning: float, seed: int, *, known: float = KNOWN, n_later: int = N_LATER
) -> Outcome:
    """One stream of a set."""
    stream = arrivals(features.y, returning, seed, known=known, n_later=n_later)
    projection = fit_projection_of_all(features.x[stream.labeled], n_components=N_COMPONENTS)
    rows = projection.of_array(features.x).float()
    owners = torch.from_numpy(np.searchsorted(np.sort(stream.categories[0]), features.y[stream.labeled]))
    labeled = rows[stream.labeled]
    statistics = scatter_statistics(labeled, owners, n_categories=len(stream.categories[0]))
    heights, shrinkage = heights_by_hiding(labeled, owners), left_out_shrinkage(labeled, owners) or "oas"
    opened = []
    for batch in (rows[idx] for idx in stream.unlabeled):
        found = discover_from_statistics(batch, statistics, heights=heights)
        is_new = found.category >= found.n_known
        new = scatter_statistics(batch[is_new], found.category[is_new] - found.n_known, n_categories=found.n_novel)
        statistics = add_means(statistics, new.means, new.counts)
        opened.append(found.n_novel)
    predicted = shared_gaussians(statistics, shrinkage=shrinkage).predict(rows[stream.test])[0].numpy()
    names, truth = np.unique(features.y[stream.test], return_inverse=True)
    right = match(contingency(predicted, truth))[predicted] == truth
    is_new_category = np.isin(names[truth], stream.categories[-1])
    shares = [100 * float(part.mean()) for part in (right, right[~is_new_category], right[is_new_category])]
    return Outcome(opened, [len(group) for group in stream.categories[1:]], *shares)


def table(outcomes: dict[tuple[str, float], list[Outcome]]) -> Iterator[str]:
    """A row per set and share, means over seeds; the numbers opened seed by seed."""
    yield "| set | come back | All | Old | New | opened, seed by seed | new | off by |"
    yield "|---|--:|--:|--:|--:|---|---|--:|"
    for (name, returning), rows in outcomes.items():
        scores = " | ".join(f"{np.mean([getattr(row, part) for row in rows]):.1f}" for part in ("all", "old", "new"))
        found = "; ".join(" ".join(map(str, row.opened)) for row in rows)
        true = " ".join(map(str, rows[0].true))
        yield f"| {name} | {returning:g} | {scores} | {found} | {true} | {off_by(rows):.0f}% |"
    everything = [row for rows in outcomes.values() for row in rows]
    yield f"| all | | {np.mean([row.all for row in everything]):.1f} | | | | | {off_by(everything):.0f}% |"


def off_by(rows: list[Outcome]) -> float:
    """The median error of the number opened at a stage, in percent of the truth."""
    pairs = [(n, true) for row in rows for n, true in zip(row.opened, row.true, strict=True)]
    return 100 * float(np.median([abs(n - true) / true for n, true in pairs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="features of your own: arrays x (n, d), y (n,)")
    parser.add_argument("--sets", nargs="+", default=list(SETS), help="names, or how they begin")
    parser.add_argument("--returning", nargs="+", type=float, default=[0.1, 0.4, 0.8])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--known", type=float, default=KNOWN, help="share of the categories that is labeled at stage 0")
    parser.add_argument("--later", type=int, default=N_LATER, help="number of stages after that")
    parser.add_argument("--data", type=Path, default=SHARED_DATA)
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/igcd/panel"))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    outcomes: dict[tuple[str, float], list[Outcome]] = {}
    for name, recipe in choose(panel_recipes(options.files, options.data), options.sets).items():
        try:
            features = recipe.load(name, data=options.data, cache=options.cache.expanduser())
        except MissingDataError as missing:
            print(f"{name}: left out, {missing}", flush=True)
            continue
        for returning in options.returning:
            outcomes[name, returning] = [
                run_stream(features, returning, seed, known=options.known, n_later=options.later)
                for seed in options.seeds
            ]
            print(f"{name}, {returning:g} come back: done", flush=True)
    print("\n".join(table(outcomes)))


if __name__ == "__main__":
    main()
