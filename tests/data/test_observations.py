"""Dates and coordinates as people write them."""

import datetime
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from igcd.data.observations import IMPOSSIBLE_YEAR, NO_YEAR, Observations, degrees_of, year_of
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
