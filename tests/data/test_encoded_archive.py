"""Archives of encoded images: small ones made here, and the real ones where they are."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from igcd.data.encoded_archive import load_archive
from igcd.data.sources import load_source
from igcd.errors import IgcdError


def arrays(form: str = "webp", with_files: bool = True) -> dict[str, np.ndarray]:
    result = {"class_names": np.array(["owl", "fox"])}
    for split, codes in (("train", [0, 0, 1]), ("test", [1])):
        blobs = []
        for i, code in enumerate(codes):
            file = io.BytesIO()
            Image.new("RGB", (4, 4), (50 * code, 10 * i, 7)).save(file, "PNG")
            blobs.append(file.getvalue())
        result[f"{form}_{split}"] = np.frombuffer(b"".join(blobs), np.uint8)
        result[f"off_{split}"] = np.cumsum([0, *map(len, blobs)]).astype(np.uint32)
        result[f"y_{split}"] = np.array(codes, np.uint8)
        if with_files:
            result[f"file_{split}"] = np.array([f"z{9 - i}.png".encode() for i in range(len(codes))])
    return result


def write(path, contents):
    np.savez(path, **contents)
    return path


@pytest.mark.parametrize("form", ["webp", "jpg", "png"])
def test_images_ids_and_categories(tmp_path, form):
    dataset = load_archive(write(tmp_path / "x.npz", arrays(form)), name="x")
    assert dataset.images.ids == ("test/fox/z9.png", "train/fox/z7.png", "train/owl/z8.png", "train/owl/z9.png")
    assert dataset.categories.tolist() == [1, 1, 0, 0]
    assert dataset.is_test.tolist() == [True, False, False, False]
    assert [dataset.images.pixels(i)[0, 0].tolist() for i in range(4)] == [
        [50, 0, 7],
        [50, 20, 7],
        [0, 10, 7],
        [0, 0, 7],
    ]


def test_numbers_are_the_ids_where_there_are_no_file_names(tmp_path):
    dataset = load_archive(write(tmp_path / "x.npz", arrays(with_files=False)), name="x")
    assert dataset.images.ids == ("test/00000", "train/00000", "train/00001", "train/00002")


def test_missing_arrays_are_named(tmp_path):
    contents = arrays()
    del contents["off_test"]
    with pytest.raises(IgcdError, match="missing: off_test"):
        load_archive(write(tmp_path / "x.npz", contents), name="x")
    with pytest.raises(IgcdError, match="missing: coarse_names, fine_to_coarse"):
        load_archive(write(tmp_path / "y.npz", arrays()), name="x", coarse=True)


def test_labels_without_a_name_are_refused(tmp_path):
    with pytest.raises(IgcdError, match="y_test must lie between 0 and 1"):
        load_archive(write(tmp_path / "x.npz", arrays() | {"y_test": np.array([2])}), name="x")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("y_train", np.zeros((3, 1), np.int64), r"y_train must be a row of whole numbers, got int64 of shape \(3, 1\)"),
        ("y_train", np.array([0.0, np.nan, 1.0]), "y_train must be a row of whole numbers, got float64"),
        ("y_train", np.array([0, -1, 1]), "y_train must lie between 0 and 1"),
        ("y_train", np.array([0, 2**64 - 1, 1], np.uint64), "y_train must lie between 0 and 1"),
        ("y_train", np.array("text"), "y_train must be a row of whole numbers"),
        ("class_names", np.array(5), "class_names must be a row of names, got int64"),
        ("class_names", np.array([b"\xff\xff\xff\x7f"]).view("<U1"), "class_names must be a row of names"),
        ("file_train", np.array(["a.png"]), "file_train must be a row of 3 names"),
        ("off_train", np.array([0, 1]), "off_train must be a row of 4 whole numbers"),
        ("webp_train", np.array([1.5]), "webp_train must be a row of bytes"),
        ("coarse_names", np.array([["a"]]), "coarse_names must be a row of names"),
        ("fine_to_coarse", np.array([0]), "fine_to_coarse must be a row of 2 whole numbers"),
        ("fine_to_coarse", np.array([0, 7]), "fine_to_coarse must lie between 0 and 0"),
    ],
)
def test_arrays_of_other_kinds_are_refused_in_one_sentence(tmp_path, key, value, message):
    contents = arrays() | {"coarse_names": np.array(["animal"]), "fine_to_coarse": np.array([0, 0])}
    assert load_archive(write(tmp_path / "sound.npz", contents), name="x", coarse=True).category_names == ("animal",)
    with pytest.raises(IgcdError, match=message):
        load_archive(write(tmp_path / "x.npz", contents | {key: value}), name="x", coarse=True)


def test_a_member_that_is_no_array_is_refused(tmp_path):
    path = write(tmp_path / "x.npz", arrays())
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("more.npy", b"text")
    with pytest.raises(IgcdError, match="more is not an array"):
        load_archive(path, name="x")


def test_pickled_objects_are_refused(tmp_path):
    with pytest.raises(IgcdError, match="plain arrays"):
        load_archive(write(tmp_path / "x.npz", arrays() | {"class_names": np.array([None, 1], dtype=object)}), name="x")


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 broken"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(IgcdError, match=r"must be an \.npz archive"):
        load_archive(tmp_path / "x.npz", name="x")


def test_real_cifar100(shared_data):
    dataset = load_source("cifar100", shared_data)
    assert (len(dataset), int(dataset.is_test.sum()), len(dataset.category_names)) == (60_000, 10_000, 100)
    assert np.bincount(dataset.categories[~dataset.is_test]).tolist() == [500] * 100
    assert np.bincount(dataset.categories[dataset.is_test]).tolist() == [100] * 100
    assert list(dataset.images.ids) == sorted(dataset.images.ids)
    for idx in (0, 30_000, 59_999):
        assert dataset.images.pixels(idx).shape == (32, 32, 3)
        assert dataset.images.ids[idx].split("/")[1] == dataset.category_names[dataset.categories[idx]]
    coarse = load_source("cifar100", shared_data / "cifar100.npz", labels="coarse")
    assert np.bincount(coarse.categories).tolist() == [3000] * 20
    assert coarse.images.ids == dataset.images.ids


def test_real_cub(shared_data):
    dataset = load_source("cub", shared_data)
    assert (len(dataset), int(dataset.is_test.sum()), len(dataset.category_names)) == (11_788, 5_794, 200)
    assert dataset.category_names[0] == "001.Black_footed_Albatross"
    assert dataset.images.pixels(11_787).shape == (128, 128, 3)
