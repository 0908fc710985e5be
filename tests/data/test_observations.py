"""Dates and coordinates as people write them."""

import datetime
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from igcd.data.observations import (
    IMPOSSIBLE_YEAR,
    NO_YEAR,
    Observations,
    degrees_of,
    is_path_below_a_folder,
    joined,
    year_of,
)
from igcd.data.taxonomy import Taxon
from igcd.errors import IgcdError

zones = st.none() | st.timedeltas(datetime.timedelta(hours=-14), datetime.timedelta(hours=14)).map(
    lambda delta: datetime.timezone(datetime.timedelta(minutes=delta.total_seconds() // 60))
)


@given(st.datetimes(datetime.datetime(1900, 1, 1), timezones=zones), st.sampled_from(["T", " "]))
def test_the_year_is_the_one_written(moment: datetime.datetime, separator: str):
    assert year_of(moment.isoformat(separator)) == moment.year
    assert year_of(moment.date().isoformat()) == moment.year


@given(st.text())
def test_any_text_has_a_year_or_none(text: str):
    assert year_of(text) in range(-1, 10_000)


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("2015-06-10 18:22:04 UTC", 2015),
        ("2015-06-10 18:22:04 +0200", 2015),
        ("2015-06-10T18:22:04.123Z", 2015),
        ("2015", 2015),
        ("2015-06", 2015),
        (2015, 2015),
        ("2015-06-10/2015-06-12", 2015),
        ("2015-12-31/2016-01-02", IMPOSSIBLE_YEAR),
        ("2015-13", IMPOSSIBLE_YEAR),
        ("2015-02-29", IMPOSSIBLE_YEAR),
        ("2016-02-29", 2016),
        ("2015-06-10 25:00:00", IMPOSSIBLE_YEAR),
        ("0000-00-00", IMPOSSIBLE_YEAR),
        ("10/06/2015", IMPOSSIBLE_YEAR),
        (True, IMPOSSIBLE_YEAR),
        ("", NO_YEAR),
        (None, NO_YEAR),
        ("  ", NO_YEAR),
    ],
)
def test_dates_are_read_or_refused_never_guessed(date: object, year: int):
    assert year_of(date) == year


@given(st.floats(allow_nan=False))
def test_coordinates_survive_as_text(value: float):
    assert degrees_of(value) == degrees_of(repr(value)) == value


def test_what_is_no_number_is_impossible_not_missing():
    assert math.isnan(degrees_of("")) and math.isnan(degrees_of(None))
    assert all(degrees_of(value) == math.inf for value in ("48°51'N", True, [1], 10**400))


def test_columns_must_be_of_one_length():
    with pytest.raises(IgcdError, match="years of x must have one value for each of the 1 images, got 2"):
        Observations(
            name="x",
            image_ids=("a",),
            categories=np.zeros(1, np.int64),
            taxa=(Taxon("t", ("",) * 6),),
            years=np.zeros(2, np.int16),
            latitude=np.zeros(1),
            longitude=np.zeros(1),
            is_test=np.zeros(1, bool),
        )


def observations(name: str, *, sightings: list[int] | None = None, n: int = 3) -> Observations:
    return Observations(
        name=name,
        image_ids=tuple(f"{name}/{i}" for i in range(n)),
        categories=np.zeros(n, np.int64),
        taxa=(Taxon("t", ("",) * 6),),
        years=np.zeros(n, np.int16),
        latitude=np.zeros(n),
        longitude=np.zeros(n),
        is_test=np.zeros(n, bool),
        **({} if sightings is None else {"sighting_codes": np.array(sightings)}),
    )


def test_each_image_is_a_sighting_of_its_own_by_default():
    assert observations("a").sighting_codes.tolist() == [0, 1, 2]
    with pytest.raises(IgcdError, match="sighting_codes of a must have one value"):
        observations("a", sightings=[0, 1])


def test_joined_tables_share_no_sighting():
    parts = [observations("a", sightings=[5, 5, -2]), observations("b", n=0), observations("c", sightings=[5, 0, 5])]
    assert joined("all", parts).sighting_codes.tolist() == [1, 1, 0, 3, 2, 3]


@pytest.mark.parametrize(
    "path", ["", " ", "../a", "a/..", "/a", "\\a", "..\\a", "c:/a", "a\tb", "a\nb", "a\u2028b", "a\ud800b", "a\x00"]
)
def test_paths_that_leave_or_break_a_line_are_errors(path: str):
    assert not is_path_below_a_folder(path)


@pytest.mark.parametrize("path", ["a", "a/b c.jpg", "..a/b..", "MVZ:Bird:1", "é/\u3000x.jpg", "#1"])
def test_other_paths_are_fine(path: str):
    assert is_path_below_a_folder(path)
