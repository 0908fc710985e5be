"""A CSV of paths and categories."""

import pytest

from igcd.data.sources import load_source
from igcd.errors import IgcdError


@pytest.fixture
def table(tmp_path, paint):
    for level, path in enumerate(["b.jpg", "sub/a.jpg", "c.jpg"], start=1):
        paint(tmp_path / path, 50 * level)

    def write(text: str | bytes):
        path = tmp_path / "labels.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_paths_categories_and_splits(table):
    path = table("path,category,split,remark\nsub/a.jpg,owl,test,\nc.jpg, fox ,train,x\n\nb.jpg,owl,,\n")
    dataset = load_source("table", path)
    assert dataset.images.ids == ("b.jpg", "c.jpg", "sub/a.jpg")
    assert dataset.category_names == ("fox", "owl")
    assert dataset.categories.tolist() == [1, 0, 1]
    assert dataset.is_test.tolist() == [False, False, True]
    assert dataset.images.pixels(2)[0, 0, 0] == 100
    assert dataset.name == "labels"


def test_line_order_bom_line_ends_and_a_missing_split_column_change_nothing(table):
    plain = load_source("table", table("path,category\nb.jpg,owl\nc.jpg,fox\n"))
    other = load_source("table", table(b"\xef\xbb\xbfcategory,path\r\nfox,c.jpg\r\nowl,b.jpg"))
    assert plain.images.ids == other.images.ids
    assert plain.categories.tolist() == other.categories.tolist()
    assert not plain.is_test.any()


def test_columns_delimiter_and_folder_can_be_named(table, tmp_path):
    path = table('file;species;part\na.jpg;"owl; gray";TEST\n')
    dataset = load_source(
        "table",
        path,
        images=tmp_path / "sub",
        path_column="file",
        category_column="species",
        split_column="part",
        delimiter=";",
    )
    assert dataset.images.ids == ("a.jpg",)
    assert dataset.category_names == ("owl; gray",)
    assert dataset.is_test.tolist() == [True]


def test_an_absolute_path_inside_the_folder_is_made_relative(table, tmp_path):
    assert load_source("table", table(f"path,category\n{tmp_path}/sub/a.jpg,owl\n")).images.ids == ("sub/a.jpg",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; write the columns path, category"),
        ("path,category\n", "lists no images"),
        ("path,label\nb.jpg,owl\n", "line 1: .* got path, label; missing: category"),
        ("path;category\nb.jpg;owl\n", "between ',', got path;category; missing: path, category"),
        ("path,category,path\nb.jpg,owl,c.jpg\n", "line 1: column names must be unique, got path twice"),
        ("path,category\nb.jpg,owl\nc.jpg\n", "line 3: expected 2 values, got 1"),
        ("path,category\nb.jpg,owl,x\n", "line 2: expected 2 values, got 3"),
        ("path,category\nb.jpg,owl\n\nb.jpg,fox\n", "line 4: each image must be listed once, got 'b.jpg' again"),
        ("path,category\nb.jpg,owl\n./b.jpg,fox\n", "line 3: each image must be listed once"),
        ("path,category\nb.jpg,\n", "line 2: expected a category, got ''"),
        ('path,category\nb.jpg,"red\tfox"\n', r"line 2: expected a category, got 'red\\tfox'"),
        ("path,category,split\nb.jpg,owl,valid\n", "line 2: split must be train or test, got 'valid'"),
        ("path,category\n../b.jpg,owl\n", "line 2: expected a path inside"),
        ("path,category\n/etc/passwd,owl\n", "line 2: expected a path inside"),
        ("path,category\n,owl\n", "line 2: expected a path inside"),
        (b"path,category\nb.jpg,owl\nc.jpg,f\xf6x\n", "line 3: expected UTF-8"),
        ('path,category\n"b.jpg"x,owl\n', "line 2: not a CSV line"),
        ('path,category\n"b.jpg,owl\n', "line 2: not a CSV line"),
    ],
)
def test_faults_are_told_with_their_line(table, text, sentence):
    with pytest.raises(IgcdError, match=sentence):
        load_source("table", table(text))


def test_a_folder_in_place_of_the_table_and_the_other_way_round(table, tmp_path):
    with pytest.raises(IgcdError, match="expected a CSV file"):
        load_source("table", tmp_path)
    with pytest.raises(IgcdError, match="must lie in a folder"):
        load_source("table", table("path,category\n"), images=tmp_path / "b.jpg")
