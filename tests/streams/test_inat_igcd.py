"""Year × continent: the paper's rule, the other readings, and what is left out with its reason."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inat2021_annotations import BOSTON, LIMA, NAIROBI, PARIS, SYDNEY, TOKYO, TRAIN, VAL, annotations

from igcd.data.fieldguide.guide import FieldGuide
from igcd.data.geography import CONTINENTS, continent_of
from igcd.data.inat2021 import from_annotations
from igcd.data.observations import Observations
from igcd.data.sightings import NO_NAME, NO_PHOTO, STRAY_PHOTO
from igcd.data.taxonomy import Taxon
from igcd.errors import IgcdError
from igcd.streams.inat_igcd import (
    PAPER_CATEGORIES,
    PAPER_NEW,
    REASONS,
    as_record,
    assign,
    beside_the_paper,
    format_places,
    split_by_place_and_year,
    stage_coordinates,
)
from igcd.streams.split import format_split
from igcd.streams.stage_rules import PAPER_STAGES, PlaceAndYearSpec, effective_rules

OBSERVATIONS = from_annotations(annotations(TRAIN, "train"), annotations(VAL, "val"), name="tiny")
GOLDEN = {
    "igcd-l": "ac6c34de27abb5fdc4c79526ff6b91203b96f5003121991748b4c166b653c47e",
    "igcd-u": "3b49f743b28d5116d04190e2b3b66a5a56e29b7867c494a7eb967062ce86d86b",
}


def table(rows: list[tuple[int, int, tuple[float, float]]], *, is_test: bool = False) -> Observations:
    """Observations from (category, year, place)."""
    n_categories = 1 + max(row[0] for row in rows)
    return Observations(
        name="t",
        image_ids=tuple(f"{i:04d}" for i in range(len(rows))),
        categories=np.array([row[0] for row in rows]),
        taxa=tuple(Taxon(f"c{i:02d}", ("", "", "", "", f"f{i // 2}", f"g{i}")) for i in range(n_categories)),
        years=np.array([row[1] for row in rows], dtype=np.int16),
        latitude=np.array([row[2][0] for row in rows], dtype=np.float64),
        longitude=np.array([row[2][1] for row in rows], dtype=np.float64),
        is_test=np.full(len(rows), is_test),
    )


def numbers(idx: np.ndarray) -> list[int]:
    return idx.tolist()


def test_the_papers_rule():
    built = split_by_place_and_year(OBSERVATIONS, PlaceAndYearSpec(), seed=0)
    n_train = len(TRAIN)
    assert [numbers(idx) for idx in built.arrivals.train] == [[0, 1, 2, 3, 11], [4, 5], [6, 7, 8], [9, 10]]
    assert [numbers(idx - n_train) for idx in built.arrivals.test] == [[0, 1], [2], [3], [4, 5]]


def test_everything_left_out_is_counted_under_one_reason():
    skipped = split_by_place_and_year(OBSERVATIONS, PlaceAndYearSpec(), seed=0).arrivals.skipped
    assert skipped == {
        "no date": 3,
        "impossible date": 2,
        "no coordinates": 2,
        "impossible coordinates": 1,
        "coordinates 0, 0": 1,
        "more than 30 km from land": 1,
        "year of no stage": 2,
        "continent not in the stage of its year": 2,
    }
    assert sum(skipped.values()) + 12 + 6 == len(OBSERVATIONS)


def test_the_record_says_what_is_in_each_stage():
    record = as_record(split_by_place_and_year(OBSERVATIONS, PlaceAndYearSpec(), seed=0))
    assert json.loads(json.dumps(record))["stages"][:2] == [
        {
            "stage": 0,
            "images": 5,
            "test_images": 2,
            "test_images_so_far": 2,
            "categories": 3,
            "old": 3,
            "new": 0,
            "continents": ["Europe", "North America"],
            "years": [2008, 2012, 2014, 2015, 2016],
            "families": ["Nymphalidae", "Rosaceae"],
        },
        {
            "stage": 1,
            "images": 2,
            "test_images": 1,
            "test_images_so_far": 3,
            "categories": 2,
            "old": 1,
            "new": 1,
            "continents": ["Oceania"],
            "years": [2017],
            "families": ["Nymphalidae"],
        },
    ]
    assert [(stage["old"], stage["new"]) for stage in record["stages"]] == [(3, 0), (1, 1), (1, 1), (1, 1)]
    assert [stage["test_images_so_far"] for stage in record["stages"]] == [2, 3, 3, 6]  # a lion waits for its stage


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u"])
def test_labels_arrive_as_the_protocol_says(protocol: str):
    split = split_by_place_and_year(OBSERVATIONS, PlaceAndYearSpec(protocol=protocol), seed=0).split
    labeled = [len(stage.labeled.image_ids) for stage in split.stages]
    assert labeled == ([5, 5, 2, 3] if protocol == "igcd-l" else [5, 0, 0, 0])
    assert [len(stage.unlabeled.image_ids) for stage in split.stages] == [0, 2, 3, 2]
    assert set(split.stages[1].unlabeled.groups) == {"Old", "New"}


@pytest.mark.parametrize("protocol", ["igcd-l", "igcd-u"])
def test_golden_split_file(protocol: str):
    split = split_by_place_and_year(OBSERVATIONS, PlaceAndYearSpec(protocol=protocol), seed=0).split
    assert hashlib.sha256(format_split(split)).hexdigest() == GOLDEN[protocol]


ROWS = [
    (0, 2016, PARIS),
    (1, 2017, BOSTON),
    (2, 2017, SYDNEY),
    (3, 2018, SYDNEY),
    (4, 2018, TOKYO),
    (5, 2019, TOKYO),
    (6, 2019, NAIROBI),
    (7, 2012, LIMA),
]


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        ("replace", [[0], [2], [4], [6]]),
        ("add", [[0], [1, 2], [3, 4], [5, 6]]),
        ("year", [[0, 7], [1, 2], [3, 4], [5, 6]]),
        ("place", [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ],
)
def test_readings(reading: str, expected: list[list[int]]):
    built = split_by_place_and_year(table(ROWS), PlaceAndYearSpec(reading=reading), seed=0)
    assert [numbers(idx) for idx in built.arrivals.train] == expected


def test_a_fault_in_what_no_rule_asks_for_is_none():
    nowhere = (float("nan"), float("nan"))
    rows = [(0, 2016, nowhere), (1, 2017, (95.0, 0.0)), (2, 2018, (0.0, 0.0))]
    built = split_by_place_and_year(table(rows), PlaceAndYearSpec(reading="year"), seed=0)
    assert [len(idx) for idx in built.arrivals.train] == [1, 1, 1, 0]
    assert not built.arrivals.skipped
    assert [len(places) for places in stage_coordinates(table(rows), built.arrivals)] == [0, 0, 1, 0]
    built = split_by_place_and_year(table([(0, 0, PARIS), (1, -1, SYDNEY)]), PlaceAndYearSpec(reading="place"), seed=0)
    assert [len(idx) for idx in built.arrivals.train] == [1, 1, 0, 0]
    assert built.stages[0].years == ()


years = st.sampled_from([0, -1, 2007, 2008, 2012, 2016, 2017, 2018, 2019, 2020])
degrees = st.sampled_from([0.0, 95.0, -200.0, float("nan"), float("inf")]) | st.floats(-180, 180)
anywhere = st.sampled_from([PARIS, BOSTON, SYDNEY, TOKYO, NAIROBI, LIMA]) | st.tuples(degrees, degrees)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), years, anywhere), min_size=1, max_size=30))
def test_assignment_agrees_with_the_rule_read_aloud(rows: list[tuple[int, int, tuple[float, float]]]):
    observations = table(rows)
    stage, reason = assign(observations, effective_rules(PAPER_STAGES, "replace"))
    for i, (_, year, place) in enumerate(rows):
        code = continent_of([place[0]], [place[1]])[0]
        continent = CONTINENTS[code] if code < len(CONTINENTS) and place != (0.0, 0.0) else None
        fitting = [
            index
            for index, rule in enumerate(PAPER_STAGES)
            if rule.years[0] <= year <= rule.years[1] and continent in rule.continents
        ]
        assert stage[i] == (fitting[0] if fitting else -1)
        assert (reason[i] == len(REASONS)) == bool(fitting)


def test_small_categories_leave_their_stage():
    rows = [(0, 2010, PARIS)] * 3 + [(1, 2010, PARIS)] + [(1, 2017, SYDNEY)] * 3 + [(0, 2017, SYDNEY)]
    built = split_by_place_and_year(table(rows), PlaceAndYearSpec(min_images=2), seed=0)
    assert [numbers(idx) for idx in built.arrivals.train] == [[0, 1, 2], [4, 5, 6], [], []]
    assert built.arrivals.skipped == {"training image of a category with fewer than 2 in its stage": 2}
    assert built.stages[1].new == 1


def test_a_limit_keeps_every_category_and_follows_the_seed():
    rows = [(i % 5 if i < 50 else 0, 2010, PARIS) for i in range(200)] + [(1, 2017, SYDNEY)]
    spec = PlaceAndYearSpec(images_per_stage=20, min_images=2)
    rows += [(1, 2017, SYDNEY)]
    first, again, other = (split_by_place_and_year(table(rows), spec, seed=seed) for seed in (0, 0, 1))
    chosen = first.arrivals.train[0]
    assert len(chosen) == 20 and first.stages[0].categories == 5
    assert min(np.bincount(table(rows).categories[chosen])) >= 2
    assert first.arrivals.skipped == {"over the limit of images per stage": 180}
    assert format_split(first.split) == format_split(again.split) != format_split(other.split)
    with pytest.raises(IgcdError, match="stage 0 needs 10 images for 2 of each of its categories, the limit is 9"):
        split_by_place_and_year(table(rows), PlaceAndYearSpec(images_per_stage=9, min_images=2), seed=0)


def test_test_images_can_be_held_out():
    rows = [(i % 3, 2010, PARIS) for i in range(30)] + [(i % 3, 2017, SYDNEY) for i in range(30)]
    built = split_by_place_and_year(table(rows), PlaceAndYearSpec(held_out=0.2), seed=0)
    train, test = (set(np.concatenate(part).tolist()) for part in (built.arrivals.train, built.arrivals.test))
    assert len(test) == 12 and not train & test and len(train | test) == 60
    with pytest.raises(IgcdError, match="test images of their own"):
        split_by_place_and_year(OBSERVATIONS, PlaceAndYearSpec(held_out=0.2), seed=0)


def test_test_images_of_unmet_categories_are_counted():
    val = [*VAL, (1, "2012-01-01", BOSTON), (3, "2012-01-01", BOSTON)]
    train = [row for row in TRAIN if row[0] != 3]
    observations = from_annotations(annotations(train, "train"), annotations(val, "val"), name="x")
    skipped = split_by_place_and_year(observations, PlaceAndYearSpec(), seed=0).arrivals.skipped
    assert skipped["test image of a category that no stage has"] == 1


def test_stages_without_images_are_refused():
    with pytest.raises(IgcdError, match=r"no image arrives at stage 0; .*year of no stage 1"):
        split_by_place_and_year(table([(0, 1999, PARIS)]), PlaceAndYearSpec(), seed=0)
    with pytest.raises(IgcdError, match="no image arrives at any stage after the first"):
        split_by_place_and_year(table([(0, 2010, PARIS)]), PlaceAndYearSpec(), seed=0)


def test_places_are_counted_per_cell():
    built = split_by_place_and_year(OBSERVATIONS, PlaceAndYearSpec(), seed=0)
    lines = format_places(OBSERVATIONS, built.arrivals).splitlines()
    assert lines[0] == "stage,latitude,longitude,images"
    assert "0,42.5,-71.5,2" in lines and "3,-12.5,-77.5,1" in lines
    assert sum(int(line.rsplit(",", 1)[1]) for line in lines[1:]) == 12


def test_the_built_in_field_guide_goes_the_same_way():
    guide = FieldGuide(n_species=18, n_images=400, n_test_per_species=4)
    observations = from_annotations(guide.annotations("train"), guide.annotations("val"), name="fieldguide")
    built = split_by_place_and_year(observations, PlaceAndYearSpec(), seed=0)
    assert [stage.continents for stage in built.stages] == [
        ("Europe", "North America"),
        ("Oceania",),
        ("Asia",),
        ("Africa", "South America"),
    ]
    assert all(stage.images and stage.test_images and stage.new for stage in built.stages[1:])


def test_the_papers_counts_stand_beside_ours():
    rows = beside_the_paper(split_by_place_and_year(OBSERVATIONS, PlaceAndYearSpec(), seed=0).stages)
    assert ("stage 1 categories", "2", "972") in rows and ("stage 3 new", "1", "1,492") in rows
    assert rows[-1][1] == "2"  # (2 + 3 + 2) / 3


def test_the_papers_numbers_fit_together():
    """What docs/inat_igcd.md concludes from them."""
    old = [n - new for n, new in zip(PAPER_CATEGORIES[1:], PAPER_NEW[1:], strict=True)]
    assert old == [582, 415, 2832]
    assert PAPER_CATEGORIES[0] + sum(PAPER_NEW[1:]) == 8395
    assert round(sum(PAPER_CATEGORIES[1:]) / 3) == 2779


def test_photos_of_one_sighting_are_not_parted_by_holding_out():
    n_sightings, n_photos = 12, 4
    rows = [
        (number % 2, year, place)
        for year, place in ((2015, PARIS), (2017, SYDNEY))
        for number in range(n_sightings)
        for _ in range(n_photos)
    ]
    codes = np.repeat(np.arange(2 * n_sightings), n_photos)
    spec = PlaceAndYearSpec(stages=PAPER_STAGES[:2], held_out=0.25)
    for seed in range(5):
        arrivals = split_by_place_and_year(replace(table(rows), sighting_codes=codes), spec, seed).arrivals
        train, test = (set(codes[np.concatenate(parts)].tolist()) for parts in (arrivals.train, arrivals.test))
        assert not train & test
        assert len(test) == 6 and len(np.concatenate(arrivals.test)) == 6 * n_photos


@pytest.mark.parametrize(
    ("skipped", "message"),
    [
        ({}, "the table has no rows, give one with observations, skipped: none"),
        ({STRAY_PHOTO: 3}, "the table has no rows"),
        ({NO_PHOTO: 5, NO_NAME: 1, STRAY_PHOTO: 9}, "name photos by the id of their observation .*file_name, skipped"),
        ({NO_NAME: 5}, "give a table with the names of species"),
    ],
)
def test_a_table_without_images_is_not_blamed_on_the_stages(skipped: dict[str, int], message: str):
    one = table([(0, 2015, PARIS)])
    columns = {name: getattr(one, name)[:0] for name in ("categories", "years", "latitude", "longitude", "is_test")}
    empty = replace(one, image_ids=(), sighting_codes=one.sighting_codes[:0], skipped=skipped, **columns)
    with pytest.raises(IgcdError, match=message) as refused:
        split_by_place_and_year(empty, PlaceAndYearSpec(held_out=0.2), seed=0)
    assert "choose other stages" not in str(refused.value)
