import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from igcd.errors import IgcdError
from igcd.metrics import predictions as module
from igcd.metrics.predictions import (
    COLUMNS,
    MAX_LINE_BYTES,
    MAX_NAMES,
    code_predictions,
    parse_predictions,
    read_predictions,
    write_predictions,
)
from igcd.metrics.scorecard import scorecard
from igcd.types import Predictions

HEADER = ",".join(COLUMNS)
GOOD = "0,test,img-1,cat,7,Old"


def rows_of(predictions):
    return list(zip(predictions.stage.tolist(), *(getattr(predictions, name) for name in COLUMNS[1:]), strict=True))


def test_a_file_is_read_as_it_stands(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text(f'{HEADER}\n{GOOD}\n1,unlabeled,"a, b",São Tomé,-1,S-0\n')
    assert rows_of(read_predictions(path)) == [
        (0, "test", "img-1", "cat", "7", "Old"),
        (1, "unlabeled", "a, b", "São Tomé", "-1", "S-0"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        f"\ufeff{HEADER}\n{GOOD}\n",  # the mark that spreadsheets put first
        f"{HEADER}\r\n{GOOD}\r\n",
        f"{HEADER}\n{GOOD}",
        f"{HEADER}\n{GOOD}\n\n\n",
        "group,cluster,category,image_id,split,stage\nOld,7,cat,img-1,test,0\n",
        f"confidence,{HEADER}\n0.5,{GOOD}\n",
    ],
    ids=["byte order mark", "CRLF", "no last newline", "empty lines at the end", "other order", "further column"],
)
def test_the_same_rows_in_another_dress(tmp_path, content):
    path = tmp_path / "predictions.csv"
    path.write_bytes(content.encode())
    assert rows_of(read_predictions(path)) == [(0, "test", "img-1", "cat", "7", "Old")]


BAD = {
    "empty file": (b"", "is empty"),
    "only a header": (HEADER, "has no rows"),
    "missing column": ("stage,split,image_id,category,cluster\n0,test,a,b,c", "line 1: .* missing group"),
    "column twice": (f"{HEADER},group\n{GOOD},Old", "line 1: column group appears twice"),
    "one column and a semicolon": (
        f"stage;split\n{GOOD}",
        "line 1: expected commas between the columns, got semicolons",
    ),
    "a name with a semicolon": (f"stage;s,{HEADER.removeprefix('stage,')}\n{GOOD}", "line 1: .* missing stage"),
    "unknown group": (f"{HEADER}\n{GOOD}\n0,test,b,cat,7,Novel", "line 3: .* got 'Novel'"),
    "group of no number": (f"{HEADER}\n1,test,b,cat,7,S-x", "line 2: .* got 'S-x'"),
    "group of a later stage": (f"{HEADER}\n{GOOD}\n1,test,b,dog,7,S-1", "line 3: group S-1 .* stage 1"),
    "unknown split": (f"{HEADER}\n0,train,b,cat,7,Old", "line 2: expected split test or unlabeled, got 'train'"),
    "stage of NaN": (f"{HEADER}\nnan,test,b,cat,7,Old", "line 2: expected a whole number .* got 'nan'"),
    "fractional stage": (f"{HEADER}\n{GOOD}\n1.5,test,b,cat,7,Old", "line 3: expected a whole number .* got '1.5'"),
    "negative stage": (f"{HEADER}\n-1,test,b,cat,7,Old", "line 2: expected a whole number .* got '-1'"),
    "absurd stage": (f"{HEADER}\n99999999999999999999,test,b,cat,7,Old", "line 2: expected a whole number"),
    "empty category": (f"{HEADER}\n{GOOD}\n0,test,b,,7,Old", "line 3: expected a name in column category, got ''"),
    "blank image": (f"{HEADER}\n0,test,  ,cat,7,Old", "line 2: expected a name in column image_id"),
    "empty cluster": (f"{HEADER}\n{GOOD}\n0,test,b,cat,,Old", "line 3: .* column cluster, got ''; write -1"),
    "NaN cluster": (f"{HEADER}\n{GOOD}\n0,test,b,cat,NaN,Old", "line 3: .* column cluster, got 'NaN'; write -1"),
    "NaN category": (f"{HEADER}\n0,test,b,nan,7,Old", "line 2: .* column category, got 'nan'"),
    "fractional no prediction": (f"{HEADER}\n0,test,b,cat,-1.0,Old", "line 2: cluster '-1.0' .* write it as -1"),
    "image twice": (f"{HEADER}\n{GOOD}\n0,test,b,cat,7,Old\n{GOOD}", "line 4: image 'img-1' is already in line 2"),
    "two groups": (f"{HEADER}\n{GOOD}\n0,test,b,cat,7,New", "line 3: category 'cat' is New here and Old in line 2"),
    "two categories": (
        f"{HEADER}\n{GOOD}\n0,test,b,hen,7,Old\n1,unlabeled,img-1,hen,7,Old",
        "line 4: image 'img-1' is of category 'hen' here and of 'cat' in line 2",
    ),
    "semicolons": (f"{HEADER}\n{GOOD}".replace(",", ";"), "line 1: expected commas .* got semicolons"),
    "quoted semicolons": ('"stage";"split";"image_id"\n"0";"test";"a"', "line 1: expected commas .* got semicolons"),
    "tabs": (f"{HEADER}\n{GOOD}".replace(",", "\t"), "line 1: expected commas .* got tabs"),
    "short row": (f"{HEADER}\n{GOOD}\n0,test,b,cat", "line 3: expected 6 cells as in the header, got 4"),
    "long row": (f"{HEADER}\n{GOOD},Old", "line 2: expected 6 cells as in the header, got 7"),
    "empty line": (f"{HEADER}\n\n{GOOD}", "line 2 is empty"),
    "open quote": (f'{HEADER}\n{GOOD}\n0,test,"b,cat,7,Old\n1,test,b,cat,7,Old', "line 3 is not valid CSV"),
    "stray quote": (f'{HEADER}\n0,test,"b"c,cat,7,Old', "line 2 is not valid CSV"),
    "line break in a cell": (f'{HEADER}\n0,test,"b\nc",cat,7,Old\n{GOOD}', "line 2: a quoted cell does not end"),
    "carriage return in a cell": (f'{HEADER}\n0,test,"b\rc",cat,7,Old', "line 2: .* holds a line break"),
    "NUL byte": (f"{HEADER}\n{GOOD}\n0,test,b\0,cat,7,Old", "line 3 holds a NUL byte"),
    "not UTF-8": (f"{HEADER}\n{GOOD}\n0,test,b,S\xe3o,7,Old".encode("latin-1"), "line 3 is not UTF-8"),
    "UTF-16": (f"{HEADER}\n{GOOD}".encode("utf-16"), "line 1 (is not UTF-8|holds a NUL byte)"),
    "long line": (f"{HEADER}\n0,test,{'b' * 10**6},cat,7,Old", "line 2 is longer than 65,536 bytes"),
    "binary": (bytes(range(256)) * 300, "line 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence_with_its_line(tmp_path, name):
    content, sentence = BAD[name]
    path = tmp_path / "predictions.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(IgcdError, match=sentence) as error:
        read_predictions(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(IgcdError, match="cannot be read"):
            read_predictions(path)


@pytest.mark.parametrize("column", ["category", "cluster"])
def test_too_many_names_are_refused_where_the_limit_is_passed(tmp_path, make_table, column):
    most = MAX_NAMES[column]
    rows = [(0, "test", str(i), str(i) if column == "category" else "cat", str(i), "Old") for i in range(most + 5)]
    path = tmp_path / "predictions.csv"
    path.write_text("\n".join([HEADER, *(",".join(map(str, row)) for row in rows)]))
    sentence = f"line {most + 2}: expected at most {most:,} names in column {column}"
    with pytest.raises(IgcdError, match=sentence):
        parse_predictions(path)
    with pytest.raises(IgcdError, match=sentence):
        code_predictions(make_table(*rows))


def test_errors_escape_what_a_terminal_would_obey(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text(f"{HEADER}\n0,test,b,cat,7,\x1b[31m{'x' * 1000}\n")
    with pytest.raises(IgcdError) as error:
        read_predictions(path)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < len(str(path)) + 200


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(IgcdError, match="equally long"):
        code_predictions(Predictions(np.array([0]), ("test",), ("a", "b"), ("cat",), ("1",), ("Old",)))


def test_what_cannot_be_read_back_is_not_written(tmp_path, make_table):
    path = tmp_path / "predictions.csv"
    for image_id in ("a\nb", "a\rb", "a\0b", "\udcff"):
        with pytest.raises(IgcdError, match="line 2"):
            write_predictions(make_table((0, "test", image_id, "cat", "1", "Old")), path)
    assert not list(tmp_path.iterdir())


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), min_size=1, max_size=8).filter(
    lambda name: name.strip() and name.strip().lower() != "nan"
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["test", "unlabeled"]), names, names, names, st.just("Old")),
        min_size=1,
        max_size=8,
        unique_by=lambda row: row[:3],
    )
)
def test_any_names_survive_writing_and_reading(tmp_path, make_table, rows):
    path = tmp_path / "run" / "predictions.csv"
    category_of = {image_id: category for _, _, image_id, category, _, _ in rows}  # an image has one
    rows = [(*row[:3], category_of[row[2]], *row[4:]) for row in rows]
    rows = [(*row[:4], row[4] if row[4].strip("-−.01") else "-1", row[5]) for row in rows]
    write_predictions(make_table(*rows), path)
    first_bytes = path.read_bytes()
    assert rows_of(read_predictions(path)) == rows
    write_predictions(read_predictions(path), path)
    assert path.read_bytes() == first_bytes
    assert [file.name for file in path.parent.iterdir()] == ["predictions.csv"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: f"{HEADER}\n{text}".encode())))
def test_any_bytes_are_read_or_refused_in_a_sentence(tmp_path, content):
    path = tmp_path / "predictions.csv"
    path.write_bytes(content)
    try:
        scorecard(parse_predictions(path))
    except IgcdError as error:
        assert str(error)


def test_a_failed_write_leaves_the_old_file(tmp_path, make_table, monkeypatch):
    path = tmp_path / "predictions.csv"
    write_predictions(make_table((0, "test", "a", "cat", "1", "Old")), path)
    before = path.read_bytes()

    def full_disk(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(IgcdError, match="No space left"):
        write_predictions(make_table((0, "test", "b", "cat", "1", "Old")), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_codes_keep_what_the_names_mean(make_table):
    coded = code_predictions(
        make_table((0, "test", "a", "zebra", "x", "Old"), (2, "unlabeled", "b", "ant", "-1", "S-1"))
    )
    assert coded.category.tolist() == [1, 0]
    assert coded.cluster[1] == -1
    assert coded.cluster[0] >= 0
    assert coded.group.tolist() == [module.OLD, module.ABSENT + 1]
    assert coded.split.tolist() == [0, 1]


def test_a_line_may_be_as_long_as_the_limit(tmp_path):
    start, end = "0,test,", ",cat,7,Old\n"
    image = "b" * (MAX_LINE_BYTES - len(start) - len(end))
    (tmp_path / "predictions.csv").write_text(f"{HEADER}\n{start}{image}{end}")
    assert read_predictions(tmp_path / "predictions.csv").image_id == (image,)
