"""Annotation files of iNat2021's layout, sound and damaged."""

import copy
import gzip
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inat2021_annotations import TRAIN, VAL, annotations

from igcd.data import json_records
from igcd.data.inat2021 import describe_missing, from_annotations, missing_files, read_annotations, read_inat2021
from igcd.data.observations import IMPOSSIBLE_YEAR, NO_YEAR
from igcd.errors import IgcdError


@pytest.fixture
def train_file(tmp_path: Path) -> Path:
    path = tmp_path / "train.json"
    path.write_text(json.dumps(annotations(TRAIN, "train")), encoding="utf-8")
    return path


def write(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def test_every_image_becomes_a_row(train_file: Path):
    observations = read_annotations(train_file, is_test=False)
    assert len(observations) == len(TRAIN)
    assert observations.image_ids[0].startswith("train/00000_Animalia_Arthropoda_Insecta_")
    assert [observations.category_names[code] for code in observations.categories[:3]] == [
        "Danaus plexippus",
        "Danaus plexippus",
        "Vanessa atalanta",
    ]
    assert observations.years[:4].tolist() == [2012, 2016, 2008, 2014]
    assert observations.years[12:15].tolist() == [NO_YEAR, IMPOSSIBLE_YEAR, IMPOSSIBLE_YEAR]
    assert np.isnan(observations.latitude[15]) and observations.latitude[17] == 95.0
    assert observations.taxa[3].at("family") == "Corvidae"
    assert observations.taxa[3].common_name == "Common Raven"


def test_file_and_memory_give_the_same_table(train_file: Path, tmp_path: Path):
    val_file = write(tmp_path / "val.json", annotations(VAL, "val"))
    from_file = read_inat2021(train_file, val_file)
    in_memory = from_annotations(annotations(TRAIN, "train"), annotations(VAL, "val"), name="inat2021")
    assert from_file.name == in_memory.name
    assert from_file.image_ids == in_memory.image_ids
    assert from_file.taxa == in_memory.taxa
    for column in ("categories", "years", "latitude", "longitude", "is_test"):
        np.testing.assert_array_equal(getattr(from_file, column), getattr(in_memory, column))
    assert from_file.is_test.sum() == len(VAL)


@pytest.mark.parametrize("block", [1, 7, 64, 1000, 1 << 20])
def test_the_size_of_the_blocks_changes_nothing(train_file: Path, block: int, monkeypatch: pytest.MonkeyPatch):
    whole = read_annotations(train_file, is_test=False)
    monkeypatch.setattr(json_records, "BLOCK", block)
    in_blocks = read_annotations(train_file, is_test=False)
    assert in_blocks.image_ids == whole.image_ids
    np.testing.assert_array_equal(in_blocks.latitude, whole.latitude)


@pytest.mark.parametrize("packed", ["train.json.gz", "train.json.tar.gz"])
def test_packed_files_are_read_as_downloaded(train_file: Path, packed: str):
    path = train_file.with_name(packed)
    if packed.endswith(".tar.gz"):
        with tarfile.open(path, "w:gz") as archive:
            archive.add(train_file, "train.json")
    else:
        path.write_bytes(gzip.compress(train_file.read_bytes()))
    assert read_inat2021(path).image_ids == read_inat2021(train_file).image_ids
    whole, flipped = path.read_bytes(), train_file.with_name(f"flipped_{packed}")
    for position in range(64, len(whole), max(1, len(whole) // 40)):  # before lies a name that nobody reads
        flipped.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        with pytest.raises(IgcdError):
            read_inat2021(flipped)
    cut_short = train_file.with_name(f"short_{packed}")
    cut_short.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(IgcdError, match="damaged or cut short"):
        read_inat2021(cut_short)


def test_a_byte_order_mark_is_no_part_of_the_file(train_file: Path, tmp_path: Path):
    marked = tmp_path / "marked.json"
    marked.write_bytes(b"\xef\xbb\xbf" + train_file.read_bytes())
    assert read_inat2021(marked).image_ids == read_inat2021(train_file).image_ids


def test_nan_is_a_missing_coordinate(tmp_path: Path):
    """The files of iNat2021 hold NaN, which is no JSON, where a place is not known."""
    document = annotations([(0, "2015-01-01", (float("nan"), float("nan"))), (0, "2015-01-01", (1.0, 2.0))], "train")
    path = write(tmp_path / "train.json", document)
    assert "NaN" in path.read_text(encoding="utf-8")
    assert np.isnan(read_annotations(path, is_test=False).latitude).tolist() == [True, False]


def test_two_categories_of_one_name_stay_two():
    document = annotations(TRAIN, "train")
    document["categories"][1]["name"] = document["categories"][0]["name"]
    observations = from_annotations(document, name="x")
    assert observations.category_names[:2] == ("Danaus plexippus [0]", "Danaus plexippus [1]")


def _damage(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    document = copy.deepcopy(annotations(TRAIN, "train"))
    change(document)
    return document


BAD = {
    "no JSON": ("hello", "not a JSON object"),
    "empty": ("", "ends in the middle"),
    "a list": ([], "not a JSON object"),
    "truncated": (json.dumps(annotations(TRAIN, "train"))[:3000], "damaged or cut short"),
    "truncated at the last brace": (json.dumps(annotations(TRAIN, "train"))[:-1], "damaged or cut short"),
    "text after the end": (json.dumps(annotations(TRAIN, "train")) + "x", "text after its end"),
    "wrong keys": ({"pictures": [], "labels": []}, "no images and no annotations and no categories"),
    "images not a list": (_damage(lambda d: d.update(images={"a": 1})), "annotations have no image"),
    "no annotations": (_damage(lambda d: d.pop("annotations")), "has no annotations, only info, images"),
    "image without annotation": (_damage(lambda d: d["annotations"].pop()), "1 images have no annotation, id 24"),
    "annotation without image": (_damage(lambda d: d["images"].pop(2)), "1 annotations have no image, image_id 2"),
    "duplicate image": (_damage(lambda d: d["images"][3].update(id=2)), "id 2 appears twice among the images"),
    "annotated twice": (
        _damage(lambda d: d["annotations"][3].update(image_id=2)),
        "image_id 2 appears twice among the annotations",
    ),
    "duplicate category": (
        _damage(lambda d: d["categories"][1].update(id=0)),
        "id 0 appears twice among the categories",
    ),
    "unknown category": (_damage(lambda d: d["annotations"][0].update(category_id=77)), "category 77 of an annotation"),
    "no category": (_damage(lambda d: d["categories"].clear()), "category 0 of an annotation is not listed"),
    "no file name": (_damage(lambda d: d["images"][1].pop("file_name")), "image number 2 has no 'file_name'"),
    "file name is a number": (
        _damage(lambda d: d["images"][1].update(file_name=5)),
        "file_name must be a path below a folder, got 5",
    ),
    "file outside": (
        _damage(lambda d: d["images"][1].update(file_name="a/../../b.jpg")),
        "must be a path below a folder",
    ),
    "file listed twice": (
        _damage(lambda d: d["images"][1].update(file_name=d["images"][0]["file_name"])),
        "0000.jpg' of inat2021 is listed twice",
    ),
    "id is text": (_damage(lambda d: d["images"][1].update(id="a")), "image number 2 has a wrong value"),
    "id too large": (_damage(lambda d: d["images"][1].update(id=10**30)), "image number 2 has a wrong value"),
    "annotated id too large": (
        _damage(lambda d: d["annotations"][1].update(category_id=-(10**30))),
        "annotation number 2 has a wrong value .an id must lie between",
    ),
    "category id too large": (
        _damage(lambda d: d["categories"][2].update(id=10**30)),
        "category number 3 has a wrong value .an id must lie between -9223372036854775808 and",
    ),
    "file name empty": (
        _damage(lambda d: d["images"][1].update(file_name="")),
        "image number 2: file_name must be a path below a folder, got ''",
    ),
    "file name with half a surrogate pair": (
        _damage(lambda d: d["images"][1].update(file_name="a/\ud800.jpg")),
        "image number 2: file_name must be a path below a folder",
    ),
    "file name with a line break": (
        _damage(lambda d: d["images"][1].update(file_name="a\nb.jpg")),
        "image number 2: file_name must be a path below a folder",
    ),
    "family with half a surrogate pair": (
        _damage(lambda d: d["categories"][2].update(family="\udfff")),
        "category number 3 has a wrong value .family .* is not Unicode text",
    ),
    "image is a number": (_damage(lambda d: d["images"].insert(0, 5)), "image number 1 has a wrong value"),
    "category without name": (_damage(lambda d: d["categories"][2].pop("name")), "category number 3 has no 'name'"),
    "category with a tab": (
        _damage(lambda d: d["categories"][2].update(name="a\tb")),
        "category number 3 has no 'name'",
    ),
    "annotation incomplete": (
        _damage(lambda d: d["annotations"][4].pop("category_id")),
        "annotation number 5 has no 'category_id'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_one_sentence(case: str, tmp_path: Path):
    document, message = BAD[case]
    with pytest.raises(IgcdError, match=message) as refused:
        read_inat2021(write(tmp_path / "bad.json", document))
    assert "\n" not in str(refused.value)


def test_other_encodings_and_missing_files_are_refused(tmp_path: Path):
    path = tmp_path / "latin.json"
    path.write_bytes('{"images": [{"rights_holder": "Zoë"}]}'.encode("latin-1"))
    with pytest.raises(IgcdError, match="not UTF-8"):
        read_annotations(path, is_test=False)
    with pytest.raises(IgcdError, match="cannot be read"):
        read_annotations(tmp_path / "absent.json", is_test=False)


def test_deep_nesting_is_refused(tmp_path: Path):
    path = write(tmp_path / "deep.json", '{"images": [' + "[" * 100_000 + "]" * 100_000 + "]}")
    with pytest.raises(IgcdError, match="damaged"):
        read_annotations(path, is_test=False)


def test_files_of_two_releases_do_not_mix():
    other = annotations(VAL, "val")
    other["categories"][0]["name"] = "Danaus erippus"
    with pytest.raises(IgcdError, match="same categories"):
        from_annotations(annotations(TRAIN, "train"), other, name="x")


def test_the_same_image_for_training_and_test_is_refused():
    with pytest.raises(IgcdError, match="is listed twice; give each image once"):
        from_annotations(annotations(TRAIN, "train"), annotations(TRAIN, "train"), name="x")


def test_missing_files_are_told_once_with_counts(tmp_path: Path, paint: Callable[..., Path]):
    ids = from_annotations(annotations(TRAIN, "train"), annotations(VAL, "val"), name="x").image_ids
    for image_id in ids[:20]:
        paint(tmp_path / image_id)
    missing = missing_files(tmp_path, ids)
    assert missing == list(ids[20:])
    line = describe_missing(tmp_path, missing, len(ids))
    assert line.startswith("12 of 32 images have no file") and "train 5, val 7" in line
