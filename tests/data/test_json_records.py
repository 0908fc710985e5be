"""Large JSON read element by element, against the standard library that reads it whole."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from igcd.data import json_records
from igcd.data.json_records import JsonRecords
from igcd.errors import IgcdError


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=5), st.lists(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
    ),
    st.sampled_from([None, 0, 2]),
    st.integers(1, 40),
)
def test_records_are_those_the_standard_library_reads(document: dict[str, list[Any]], indent: int | None, block: int):
    records = JsonRecords(io.StringIO(json.dumps(document, indent=indent)), "text")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_records, "BLOCK", block)
        assert {key: list(values) for key, values in records.sections()} == document


def test_objects_that_look_like_ends_of_records_are_read_right(monkeypatch: pytest.MonkeyPatch):
    document = {"images": [{"a": [{"b": "}, {"}, {"c": {}}], "d": "],"}] * 5, "categories": [{}, {"x": "}]}, "}]}
    monkeypatch.setattr(json_records, "BLOCK", 50)
    records = JsonRecords(io.StringIO(json.dumps(document)), "text")
    assert {key: list(values) for key, values in records.sections()} == document


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.integers(1, 40))
def test_every_cut_is_seen(cut: int, block: int):
    text = json.dumps({"images": [{"id": 1, "name": "a}, {b"}, {"id": 23}], "more": [1, 2, 3]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_records, "BLOCK", block)
        records = JsonRecords(io.StringIO(text[: min(cut, len(text) - 1)]), "file")
        with pytest.raises(IgcdError, match="file is damaged or cut short: it ends in the middle"):
            for _, values in records.sections():
                list(values)


def test_other_values_than_arrays_have_no_elements():
    records = JsonRecords(io.StringIO('{"info": {"a": 1}, "n": 12, "images": [], "x": null}'), "file")
    assert [(key, list(values)) for key, values in records.sections()] == [
        ("info", []),
        ("n", []),
        ("images", []),
        ("x", []),
    ]


@pytest.mark.parametrize("text", ['{"a" [1]}', '{"a": [1 2]}', '{"a": [1], , }', '{"a": [1]} {}', '{"a": [tru]}'])
def test_what_is_no_json_is_refused(text: str):
    with pytest.raises(IgcdError, match="file is damaged or cut short"):
        for _, values in JsonRecords(io.StringIO(text), "file").sections():
            list(values)
