"""Sources of files in their official layouts: CUB, Stanford Cars, ImageNet and Tiny-ImageNet, in miniature."""

import numpy as np
import pytest
from scipy.io import savemat

from igcd.data.sources import load_source
from igcd.errors import IgcdError


def levels(dataset) -> list[int]:
    """The brightness each picture was painted with, as far as JPEG keeps it."""
    return [int(dataset.images.pixels(i)[5, 5, 0]) for i in range(len(dataset))]


@pytest.fixture
def cub(tmp_path, paint):
    root = tmp_path / "CUB_200_2011"
    rows = [("1", "001.Owl/b.jpg", "1", "1"), ("2", "001.Owl/a.jpg", "1", "0"), ("3", "002.Fox/c.jpg", "2", "1")]
    for number, path, _, _ in rows:
        paint(root / "images" / path, 50 * int(number))
    (root / "images.txt").write_text("".join(f"{number} {path}\n" for number, path, _, _ in rows))
    (root / "image_class_labels.txt").write_text("".join(f"{number} {label}\n" for number, _, label, _ in rows))
    (root / "train_test_split.txt").write_text("".join(f"{number} {split}\n" for number, _, _, split in rows))
    (root / "classes.txt").write_text("1 001.Owl\n2 002.Fox\n")
    return root


def test_cub(cub):
    for root in (cub, cub.parent):
        dataset = load_source("cub", root)
        assert dataset.images.ids == ("001.Owl/a.jpg", "001.Owl/b.jpg", "002.Fox/c.jpg")
        assert dataset.category_names == ("001.Owl", "002.Fox")
        assert dataset.categories.tolist() == [0, 0, 1]
        assert dataset.is_test.tolist() == [True, False, False]
        assert levels(dataset) == [100, 50, 150]


@pytest.mark.parametrize("name", ["images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt"])
def test_cub_names_the_missing_file(cub, name):
    (cub / name).unlink()
    with pytest.raises(IgcdError, match=f"CUB-200-2011 is incomplete.*missing: {name};.*CUB_200_2011.tgz"):
        load_source("cub", cub)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("image_class_labels.txt", "1 1\n2 1\n", "image 3 .* got None and 1"),
        ("image_class_labels.txt", "1 1\n2 1\n3 9\n", "image 3 .* got 9 and 1"),
        ("train_test_split.txt", "1 1\n2 7\n3 1\n", "image 2 .* got 1 and 7"),
        ("images.txt", "1 a.jpg\n2\n", "2 columns, got 1 in row 2"),
        ("images.txt", "1 ../../secret.jpg\n", "leaves the image folder"),
        ("images.txt", "1 001.Owl/a.jpg\n2 001.Owl/a.jpg\n", "'001.Owl/a.jpg' twice"),
    ],
)
def test_cub_lists_that_do_not_fit_are_refused(cub, name, text, sentence):
    (cub / name).write_text(text)
    with pytest.raises(IgcdError, match=sentence):
        load_source("cub", cub)


def test_a_list_that_is_no_text_is_refused(cub):
    (cub / "images.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(IgcdError, match="must be UTF-8"):
        load_source("cub", cub)


def write_annotations(path, rows, with_class=True):
    fields = [("bbox_x1", "O"), ("class", "O"), ("fname", "O")] if with_class else [("bbox_x1", "O"), ("fname", "O")]
    annotations = np.zeros((1, len(rows)), dtype=fields)
    for i, (name, number) in enumerate(rows):
        annotations[0, i]["fname"] = name
        if with_class:
            annotations[0, i]["class"] = np.uint8(number)
    savemat(path, {"annotations": annotations})


@pytest.fixture
def cars(tmp_path, paint):
    for number in (1, 2, 3):
        paint(tmp_path / "cars_train" / f"{number:05d}.jpg", 50 * number)
    paint(tmp_path / "cars_test" / "00001.jpg", 200)
    (tmp_path / "devkit").mkdir()
    names = np.empty((1, 2), dtype=object)
    names[0, :] = ["AM General Hummer SUV 2000", "Ram C/V Cargo Van Minivan 2012"]
    savemat(tmp_path / "devkit" / "cars_meta.mat", {"class_names": names})
    rows = [("00003.jpg", 1), ("00001.jpg", 2), ("00002.jpg", 1)]
    write_annotations(tmp_path / "devkit" / "cars_train_annos.mat", rows)
    write_annotations(tmp_path / "cars_test_annos_withlabels.mat", [("00001.jpg", 2)])
    return tmp_path


def test_cars(cars):
    dataset = load_source("cars", cars)
    assert dataset.images.ids == (
        "cars_test/00001.jpg", "cars_train/00001.jpg", "cars_train/00002.jpg", "cars_train/00003.jpg"
    )  # fmt: skip
    assert dataset.category_names == ("AM General Hummer SUV 2000", "Ram C/V Cargo Van Minivan 2012")
    assert dataset.categories.tolist() == [1, 1, 0, 0]
    assert dataset.is_test.tolist() == [True, False, False, False]
    assert levels(dataset) == [200, 50, 100, 150]


def test_cars_names_the_missing_files(cars):
    (cars / "devkit" / "cars_meta.mat").unlink()
    (cars / "cars_test_annos_withlabels.mat").unlink()
    with pytest.raises(IgcdError, match=r"missing: cars_meta\.mat, cars_test_annos_withlabels\.mat;"):
        load_source("cars", cars)


def test_cars_without_test_labels_or_with_wrong_ones_are_refused(cars):
    write_annotations(cars / "cars_test_annos_withlabels.mat", [("00001.jpg", 0)], with_class=False)
    with pytest.raises(IgcdError, match="fields fname and class, got bbox_x1, fname"):
        load_source("cars", cars)
    write_annotations(cars / "cars_test_annos_withlabels.mat", [("00001.jpg", 3)])
    with pytest.raises(IgcdError, match="classes must be 1 to 2, got 3"):
        load_source("cars", cars)
    (cars / "cars_test_annos_withlabels.mat").write_bytes(b"no matlab file")
    with pytest.raises(IgcdError, match="must be a MATLAB file with `annotations`"):
        load_source("cars", cars)


def write_imagenet(root, paint, wnids):
    for wnid in wnids:
        paint(root / "train" / wnid / f"{wnid}_1.JPEG", 90)
        paint(root / "val" / wnid / "ILSVRC2012_val_00000001.JPEG", 30)
    return root


def wnids_of(count: int) -> list[str]:
    return [f"n{10_000_000 + 7 * number}" for number in range(count)]


def test_imagenet100_from_exactly_100_folders(tmp_path, paint):
    dataset = load_source("imagenet100", write_imagenet(tmp_path, paint, wnids_of(100)))
    assert len(dataset) == 200
    assert dataset.category_names == tuple(wnids_of(100))
    assert dataset.images.ids[0] == "train/n10000000/n10000000_1.JPEG"
    assert dataset.is_test.tolist() == [False] * 100 + [True] * 100
    assert levels(dataset.take([0, 150])) == [90, 30]


def test_imagenet100_from_a_list(tmp_path, paint):
    root = write_imagenet(tmp_path / "imagenet", paint, wnids_of(103))
    with pytest.raises(IgcdError, match=r"expects 100 different wnids in .*train, got 103 .*option wnids"):
        load_source("imagenet100", root)
    chosen = tmp_path / "list.txt"
    chosen.write_text("".join(f"{wnid} some name\n" for wnid in reversed(wnids_of(103)[3:])))
    dataset = load_source("imagenet100", root, wnids=chosen)
    assert dataset.category_names == tuple(wnids_of(103)[3:])
    chosen.write_text("\n".join([*wnids_of(99), wnids_of(1)[0]]))
    with pytest.raises(IgcdError, match=r"got 99 of 100 entries"):
        load_source("imagenet100", root, wnids=chosen)
    chosen.write_text("\n".join(wnids_of(104)[4:]))
    with pytest.raises(IgcdError, match=r"expects the folder train/n10000721"):
        load_source("imagenet100", root, wnids=chosen)


def test_imagenet_names_what_is_missing(tmp_path, paint):
    (tmp_path / "train").mkdir()
    for source in ("imagenet100", "imagenet1k"):
        with pytest.raises(IgcdError, match=r"is incomplete in .*, missing: val/; get ILSVRC2012"):
            load_source(source, tmp_path)
    write_imagenet(tmp_path, paint, wnids_of(3))
    with pytest.raises(IgcdError, match=r"expects 1,000 folders in .*, got 3"):
        load_source("imagenet1k", tmp_path)


def test_imagenet1k(tmp_path):
    for wnid in wnids_of(1000):  # empty files: nothing is opened before it is asked for
        for folder in ("train", "val"):
            (tmp_path / folder / wnid).mkdir(parents=True)
            (tmp_path / folder / wnid / "1.JPEG").touch()
    dataset = load_source("imagenet1k", tmp_path)
    assert (len(dataset), len(dataset.category_names), int(dataset.is_test.sum())) == (2000, 1000, 1000)


@pytest.fixture
def tiny(tmp_path, paint):
    root = tmp_path / "tiny-imagenet-200"
    for level, (wnid, number) in enumerate([("n02", 0), ("n02", 1), ("n01", 0)], start=1):
        paint(root / "train" / wnid / "images" / f"{wnid}_{number}.JPEG", 40 * level)
        (root / "train" / wnid / f"{wnid}_boxes.txt").write_text("a.JPEG\t0\t0\t63\t63\n")
    for number in range(2):
        paint(root / "val" / "images" / f"val_{number}.JPEG", 160 + 40 * number)
    (root / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn02\t0\t0\t9\t9\nval_1.JPEG\tn01\t0\t0\t9\t9\n")
    (root / "wnids.txt").write_text("n02\nn01\n")
    (root / "words.txt").write_text("n00\tentity\nn01\tcrane\nn02\tgoldfish, Carassius auratus\n")
    return root


def test_tiny_imagenet(tiny):
    for root in (tiny, tiny.parent):
        dataset = load_source("tiny-imagenet", root)
        assert dataset.images.ids == (
            "train/n01/images/n01_0.JPEG", "train/n02/images/n02_0.JPEG", "train/n02/images/n02_1.JPEG",
            "val/images/val_0.JPEG", "val/images/val_1.JPEG",
        )  # fmt: skip
        assert dataset.category_names == ("n01 crane", "n02 goldfish")
        assert dataset.categories.tolist() == [0, 1, 1, 1, 0]
        assert dataset.is_test.tolist() == [False, False, False, True, True]
        assert levels(dataset) == [120, 40, 80, 160, 200]


def test_tiny_imagenet_names_what_is_missing(tiny):
    (tiny / "words.txt").rename(tiny / "elsewhere.txt")
    with pytest.raises(IgcdError, match=r"missing: words.txt; unpack"):
        load_source("tiny-imagenet", tiny)
    (tiny / "elsewhere.txt").rename(tiny / "words.txt")
    (tiny / "wnids.txt").write_text("n01\n")
    with pytest.raises(IgcdError, match=r"names n02, which wnids.txt lacks"):
        load_source("tiny-imagenet", tiny)
    (tiny / "wnids.txt").write_text("n01\nn02\nn03\n")
    with pytest.raises(IgcdError, match="expects train/n03/images/"):
        load_source("tiny-imagenet", tiny)
