"""iNatIGCD: stages by the year and the continent of each observation, and the split that follows from them.

The paper gives the rule in two sentences and its counts in one table; docs/inat_igcd.md says what they leave open. Its
reading is the default, the others are options of `igcd.streams.stage_rules.PlaceAndYearSpec`.
"""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from igcd.data.geography import CONTINENTS, NO_CONTINENT, continent_of, is_coordinate
from igcd.data.observations import IMPOSSIBLE_YEAR, NO_YEAR, Observations
from igcd.data.sightings import NO_NAME, NO_PHOTO, STRAY_PHOTO
from igcd.data.taxonomy import Taxon, groups_at
from igcd.errors import IgcdError
from igcd.streams.protocols import LABEL_RULES, group_of_categories, hold_out
from igcd.streams.randomness import generator, shuffled
from igcd.streams.split import Split, make_split
from igcd.streams.stage_rules import EffectiveRule, PlaceAndYearSpec, describe, effective_rules
from igcd.types import BoolArray, FloatArray, IntArray

NO_STAGE = -1
N_FAMILIES = 3

PAPER_CATEGORIES = (3_888, 972, 3_040, 4_324)
"""Categories of each stage; Zhao and Mac Aodha, "Incremental Generalized Category Discovery", ICCV 2023, table A1."""
PAPER_NEW = (None, 390, 2_625, 1_492)
"""Novel ones among them, from the same table's caption."""
PAPER_MEAN_IMAGES = 25_000
"""Images per stage on average, from the same table."""


@dataclass(frozen=True)
class Arrivals:
    """The images that arrive at each stage, as positions in the observations, and why the others do not."""

    train: tuple[IntArray, ...]  # D^0 … D^T
    test: tuple[IntArray, ...]
    skipped: Mapping[str, int]


@dataclass(frozen=True)
class StageSummary:
    """What arrives at one stage, in numbers. `new` categories were met at no earlier stage; those of stage 0 are old.

    `test_images` arrive with the stage and are of categories met by then; the stage is tested on them and on those of
    all stages before, `test_images_so_far`.
    """

    stage: int
    images: int
    test_images: int
    test_images_so_far: int
    categories: int
    old: int
    new: int
    continents: tuple[str, ...]
    years: tuple[int, ...]  # all that occur
    families: tuple[str, ...]  # with the most images


@dataclass(frozen=True)
class PlaceAndYearSplit:
    """A split with what is worth telling about it."""

    split: Split
    arrivals: Arrivals
    stages: tuple[StageSummary, ...]


def split_by_place_and_year(observations: Observations, spec: PlaceAndYearSpec, seed: int) -> PlaceAndYearSplit:
    """The split of observations by the rule of the spec: same observations, spec and seed, same split."""
    rng = generator(seed)
    arrivals = arrivals_by_place_and_year(observations, spec, rng)
    stages = LABEL_RULES[spec.protocol](arrivals.train, arrivals.test)
    split = make_split(
        name=f"{observations.name}-{spec.protocol}",
        source=observations.name,
        seed=seed,
        spec=spec.model_dump(exclude_none=True),
        stages=stages,
        groups=group_of_categories(stages, observations.categories, spec.returning),
        image_ids=observations.image_ids,
        categories=observations.categories,
        category_names=observations.category_names,
    )
    n_tested = [len(stage.test.image_ids) for stage in split.stages]
    return PlaceAndYearSplit(split, arrivals, summarize(observations, arrivals, n_tested))


def arrivals_by_place_and_year(
    observations: Observations, spec: PlaceAndYearSpec, rng: np.random.Generator
) -> Arrivals:
    """Which images arrive at which stage, with every image that does not counted under one reason."""
    rules = effective_rules(spec.stages, spec.reading)
    stage, reason = assign(observations, rules)
    skipped: Counter[str] = Counter(dict(observations.skipped))
    skipped.update({name: int((reason == code).sum()) for code, name in enumerate(REASONS)})

    is_test = observations.is_test
    if spec.held_out is not None:
        if is_test.any():
            raise IgcdError("the observations have test images of their own; leave held_out unset")
        staged = np.flatnonzero(stage != NO_STAGE)
        is_test = np.zeros(len(observations), dtype=bool)
        is_test[staged] = hold_out(
            observations.categories[staged], spec.held_out, rng, observations.sighting_codes[staged]
        )

    train, test, met = [], [], np.zeros(len(observations.taxa), dtype=bool)
    for index in range(len(rules)):
        is_here = stage == index
        train_idx = np.flatnonzero(is_here & ~is_test)
        large_idx = _of_large_categories(train_idx, observations.categories, spec.min_images)
        skipped[f"training image of a category with fewer than {spec.min_images} in its stage"] += len(train_idx) - len(
            large_idx
        )
        kept_idx = _limited(large_idx, observations.categories, spec, index, rng)
        skipped["over the limit of images per stage"] += len(large_idx) - len(kept_idx)
        met[observations.categories[kept_idx]] = True
        train.append(kept_idx)
        test.append(np.flatnonzero(is_here & is_test))
    if not len(train[0]) or not any(map(len, train[1:])):
        which = "stage 0" if not len(train[0]) else "any stage after the first"
        reasons = ", ".join(f"{name} {count:,}" for name, count in skipped.items() if count) or "none"
        remedy = _remedy(skipped, is_empty=not len(observations))
        raise IgcdError(
            f"no image arrives at {which}; {remedy}, skipped: {reasons}",
            details=[f"stage {index}: {describe(rule)}" for index, rule in enumerate(rules)],
        )
    known_test = [idx[met[observations.categories[idx]]] for idx in test]
    skipped["test image of a category that no stage has"] = sum(map(len, test)) - sum(map(len, known_test))
    return Arrivals(tuple(train), tuple(known_test), {name: count for name, count in skipped.items() if count})


REASONS = (
    "no date",
    "impossible date",
    "no coordinates",
    "impossible coordinates",
    "coordinates 0, 0",
    "more than 30 km from land",
    "year of no stage",
    "continent not in the stage of its year",
)
(_NO_DATE, _BAD_DATE, _NO_PLACE, _BAD_PLACE, _NULL_PLACE, _OCEAN, _OTHER_YEAR, _OTHER_PLACE) = range(len(REASONS))
_STAGED = len(REASONS)


def assign(
    observations: Observations, rules: Sequence[EffectiveRule]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The stage of each observation or `NO_STAGE`, (n,), and the position in `REASONS` why it has none, (n,).

    An observation that fits several stages goes to the first. One with several faults counts under the first of
    `REASONS`; a fault in what no rule asks for (the date, when stages go by place) does not count.
    """
    n = len(observations)
    needs_year = any(rule.years for rule in rules)
    needs_place = any(rule.continents for rule in rules)
    years, latitude, longitude = observations.years, observations.latitude, observations.longitude
    continents = continent_of(latitude, longitude) if needs_place else np.full(n, NO_CONTINENT, dtype=np.uint8)

    stage = np.full(n, NO_STAGE, dtype=np.int64)
    is_year_of_a_stage = np.zeros(n, dtype=bool)
    for index in reversed(range(len(rules))):
        rule = rules[index]
        fits = np.ones(n, dtype=bool)
        if rule.years is not None:
            fits &= (years >= rule.years[0]) & (years <= rule.years[1])
        is_year_of_a_stage |= fits
        if rule.continents is not None:
            fits &= np.isin(continents, [CONTINENTS.index(name) for name in rule.continents])
        stage[fits] = index

    reason = np.full(n, _OTHER_PLACE, dtype=np.int64)
    reason[~is_year_of_a_stage] = _OTHER_YEAR
    if needs_place:
        reason[continents == NO_CONTINENT] = _OCEAN
        is_null = (latitude == 0) & (longitude == 0)
        reason[is_null] = _NULL_PLACE
        stage[is_null] = NO_STAGE
        reason[~is_coordinate(latitude, longitude)] = _BAD_PLACE
        reason[np.isnan(latitude) | np.isnan(longitude)] = _NO_PLACE
    if needs_year:
        reason[years == IMPOSSIBLE_YEAR] = _BAD_DATE
        reason[years == NO_YEAR] = _NO_DATE
    reason[stage != NO_STAGE] = _STAGED
    return stage, reason


def summarize(observations: Observations, arrivals: Arrivals, n_tested: Sequence[int]) -> tuple[StageSummary, ...]:
    """The stages in numbers; `n_tested` is how many images each is tested on."""
    family_of, family_names = groups_at(observations.taxa, "family")
    has_family = np.asarray([bool(taxon.at("family")) for taxon in observations.taxa], dtype=bool)
    met: set[int] = set()
    summaries = []
    for index, idx in enumerate(arrivals.train):
        present = set(np.unique(observations.categories[idx]).tolist())
        new = present - met if index else set()
        met |= present
        codes = observations.categories[idx]
        counts = np.bincount(family_of[codes[has_family[codes]]], minlength=len(family_names))
        largest = sorted(np.flatnonzero(counts), key=lambda code: (-counts[code], family_names[code]))[:N_FAMILIES]
        continents = np.unique(continent_of(observations.latitude[idx], observations.longitude[idx]))
        years = np.unique(observations.years[idx])
        test_codes = observations.categories[arrivals.test[index]].tolist()
        summaries.append(
            StageSummary(
                stage=index,
                images=len(idx),
                test_images=sum(code in met for code in test_codes),
                test_images_so_far=n_tested[index],
                categories=len(present),
                old=len(present) - len(new),
                new=len(new),
                continents=tuple(CONTINENTS[code] for code in continents if code != NO_CONTINENT),
                years=tuple(int(year) for year in years if year > 0),
                families=tuple(family_names[code] for code in largest),
            )
        )
    return tuple(summaries)


def as_record(built: PlaceAndYearSplit) -> dict[str, Any]:
    """What `igcd build … --json` prints."""
    return {"stages": [asdict(stage) for stage in built.stages], "skipped": dict(built.arrivals.skipped)}


def beside_the_paper(stages: Sequence[StageSummary]) -> list[tuple[str, str, str]]:
    """Our counts beside the paper's, (what, ours, paper's), for the stages of the paper."""
    rows = []
    for stage, categories, new in zip(stages, PAPER_CATEGORIES, PAPER_NEW, strict=False):
        rows.append((f"stage {stage.stage} categories", f"{stage.categories:,}", f"{categories:,}"))
        if new is not None:
            rows.append((f"stage {stage.stage} new", f"{stage.new:,}", f"{new:,}"))
    later = [stage.images for stage in stages[1:]]
    mean = sum(later) / max(len(later), 1)
    return [*rows, ("images per stage after the first, mean", f"{mean:,.0f}", f"about {PAPER_MEAN_IMAGES:,}")]


def stage_coordinates(observations: Observations, arrivals: Arrivals) -> list[FloatArray]:
    """Where the training images of each stage were seen, (n_t, 2) latitude and longitude; without those of no place."""
    places = np.column_stack([observations.latitude, observations.longitude])
    is_place = is_coordinate(observations.latitude, observations.longitude)
    return [places[idx[is_place[idx]]] for idx in arrivals.train]


def taxa_of(observations: Observations, split: Split) -> list[Taxon]:
    """The taxa that some stage of the split has."""
    present = {name for stage in split.stages for name in (*stage.labeled.categories, *stage.unlabeled.categories)}
    return [taxon for taxon in observations.taxa if taxon.name in present]


def format_places(observations: Observations, arrivals: Arrivals, cell: float = 1.0) -> str:
    """The text of `places.csv`: images of each stage per cell of so many degrees, `stage,latitude,longitude,images`.

    Latitude and longitude are the middle of the cell. It is what the report draws its map from.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["stage", "latitude", "longitude", "images"])
    for index, places in enumerate(stage_coordinates(observations, arrivals)):
        cells, counts = np.unique(np.floor(places / cell), axis=0, return_counts=True)
        for (row, column), count in zip(((cells + 0.5) * cell).tolist(), counts.tolist(), strict=True):
            rows.writerow([index, f"{row:g}", f"{column:g}", count])
    return text.getvalue()


def _of_large_categories(idx: IntArray, categories: IntArray, min_images: int) -> IntArray:
    counts = np.bincount(categories[idx], minlength=1)
    return idx[counts[categories[idx]] >= min_images]


def _limited(
    idx: IntArray, categories: IntArray, spec: PlaceAndYearSpec, index: int, rng: np.random.Generator
) -> IntArray:
    """At most `images_per_stage` of these images at random, `min_images` of each category among them."""
    limit = spec.images_per_stage
    if limit is None or len(idx) <= limit:
        return idx
    drawn = idx[shuffled(len(idx), rng)]
    is_needed = _is_among_first(categories[drawn], spec.min_images)
    if is_needed.sum() > limit:
        raise IgcdError(
            f"stage {index} needs {is_needed.sum():,} images for {spec.min_images} of each of its categories, "
            f"the limit is {limit:,}; raise images_per_stage to that"
        )
    return np.sort(np.concatenate([drawn[is_needed], drawn[~is_needed][: limit - int(is_needed.sum())]]))


def _is_among_first(codes: IntArray, n_first: int) -> BoolArray:
    """Where a code stands for the first, second, … `n_first`-th time, (n,)."""
    order = np.argsort(codes, kind="stable")
    in_order = codes[order]
    is_start = np.concatenate([[True], in_order[1:] != in_order[:-1]])
    starts = np.flatnonzero(is_start)
    occurrence = np.arange(len(codes)) - starts[np.cumsum(is_start) - 1]
    is_first = np.empty(len(codes), dtype=bool)
    is_first[order] = occurrence < n_first
    return is_first


def _remedy(skipped: Mapping[str, int], *, is_empty: bool) -> str:
    """What helps when no image arrives, by what most rows were left out for."""
    counts = {reason: count for reason, count in skipped.items() if count and reason != STRAY_PHOTO}
    if is_empty and not counts:
        return "the table has no rows, give one with observations"
    main_reason = max(counts, key=lambda reason: counts[reason], default="")
    return {
        NO_PHOTO: "name photos by the id of their observation (123.jpg, 123_2.jpg, 123/any.jpg) or give their paths in "
        "a column file_name",
        NO_NAME: "give a table with the names of species",
    }.get(main_reason, "choose other stages")
