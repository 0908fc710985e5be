"""Stages written as text."""

import pytest

from igcd.errors import IgcdError
from igcd.streams.stage_rules import PAPER_STAGES, parse_stages


def test_stages_are_read_from_text():
    text = "2008-2016: north america, Europe; 2017:Oceania; 2018: Asia; 2019: Africa,South America"
    assert parse_stages(text) == PAPER_STAGES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2008-2016:Europe", "at least two stages"),
        ("", "at least two stages"),
        ("2008..2016:Europe;2017:Asia", "a stage is written like"),
        ("2016-2008:Europe;2017:Asia", "first year must not be after the last"),
        ("2008:Europ\udcff;2017:Asia", "bytes that are not UTF-8"),
        ("2008:Atlantis;2017:Asia", "continents are Africa.*got Atlantis"),
    ],
)
def test_bad_stages_are_refused(text: str, message: str):
    with pytest.raises(IgcdError, match=message) as refused:
        parse_stages(text)
    assert "\n" not in str(refused.value)
