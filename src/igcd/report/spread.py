"""Means over seeds, and whether two methods differ by more than the seeds do."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy import stats

MIN_SEEDS_FOR_TEST = 3
FEW_SEEDS = 5
"""Below this many seeds even a clear difference may stay above p = 0.05."""


@dataclass(frozen=True)
class Spread:
    """The mean over seeds and the sample standard deviation, which one seed does not have."""

    mean: float
    deviation: float | None
    n: int


def spread(values: Sequence[float]) -> Spread | None:
    """The spread of some values, None of none.

    >>> spread([1.0, 3.0])
    Spread(mean=2.0, deviation=1.4142135623730951, n=2)
    >>> spread([4.0]), spread([])
    (Spread(mean=4.0, deviation=None, n=1), None)
    """
    if not values:
        return None
    return Spread(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


@dataclass(frozen=True)
class PairedTest:
    """Student's paired test over the seeds two methods share; t and p where it can be made."""

    difference: float
    """The mean of the first minus the mean of the second, over shared seeds."""
    t: float | None
    p: float | None
    n: int


def paired_test(first: Mapping[int, float], second: Mapping[int, float]) -> PairedTest | None:
    """Compares two methods on the seeds they share; None where there are none.

    A seed draws the split and the order of categories, so runs of one seed belong together. With fewer than three, or
    where all differences are the same, there is no test.

    >>> paired_test({0: 5.0, 1: 6.0, 2: 9.0}, {0: 4.0, 1: 4.0, 2: 6.0, 3: 1.0})
    PairedTest(difference=2.0, t=3.46..., p=0.074..., n=3)
    >>> paired_test({0: 5.0, 1: 6.0}, {0: 4.0, 1: 4.0})
    PairedTest(difference=1.5, t=None, p=None, n=2)
    """
    shared = sorted(set(first) & set(second))
    if not shared:
        return None
    differences = [first[seed] - second[seed] for seed in shared]
    difference = fmean(differences)
    if len(shared) < MIN_SEEDS_FOR_TEST or max(differences) - min(differences) < 1e-9:
        return PairedTest(difference, None, None, len(shared))
    result = stats.ttest_rel([first[seed] for seed in shared], [second[seed] for seed in shared])
    t, p = float(result.statistic), float(result.pvalue)
    return PairedTest(difference, t if math.isfinite(t) else None, p if math.isfinite(p) else None, len(shared))


def ranks(means: Sequence[float | None], *, lower_is_better: bool) -> list[int | None]:
    """1 for the best and 2 for the second best, compared at one decimal; with fewer than two, for none.

    >>> ranks([30.04, 31.2, 29.0, 30.0, None], lower_is_better=False)
    [2, 1, None, 2, None]
    >>> ranks([3.0], lower_is_better=True)
    [None]
    """
    printed = [None if mean is None else round(mean, 1) for mean in means]
    distinct = sorted({value for value in printed if value is not None}, reverse=not lower_is_better)
    if sum(value is not None for value in printed) < 2:
        return [None] * len(means)
    place = {value: at + 1 for at, value in enumerate(distinct[:2])}
    return [None if value is None else place.get(value) for value in printed]
