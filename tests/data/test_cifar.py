"""CIFAR from archives laid out like the official ones, and from files that try to be more than data."""

import io
import pickle
import random
import tarfile
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from igcd.data.cifar_pickle import read_pickle
from igcd.data.images import Concatenation
from igcd.data.sources import load_source
from igcd.errors import IgcdError

RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"


class Python2Pickler(pickle._Pickler):
    """Writes what Python 2 with numpy 1 wrote in 2009: protocol 2, bytes as `str`, numpy.core names."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_bytes(self, content):
        self.write(pickle.BINSTRING + len(content).to_bytes(4, "little") + content)
        self.memoize(content)

    def save_array(self, array):
        self.write(RECONSTRUCT + b"cnumpy\nndarray\n" + b"K\x00\x85U\x01b\x87R")  # _reconstruct(ndarray, (0,), 'b')
        self.memoize(array)
        self.write(b"(K\x01")  # the state: version 1, then shape, dtype, order and bytes
        self.save(array.shape)
        code = {"uint8": b"u1", "float64": b"f8", "object": b"O8"}[array.dtype.name]
        self.write(b"cnumpy\ndtype\n" + b"U\x02" + code + b"K\x00K\x01\x87R")
        self.write(b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb")
        self.save(array.flags.f_contiguous and not array.flags.c_contiguous)
        self.save(array.tobytes(order="A"))
        self.write(b"tb")

    dispatch[bytes] = save_bytes
    dispatch[np.ndarray] = save_array


def python2_pickle(record) -> bytes:
    file = io.BytesIO()
    Python2Pickler(file, 2).dump(record)
    return file.getvalue()


def batch(n: int, seed: int, labels: dict[bytes, list[int]]) -> dict[bytes, object]:
    data = np.random.default_rng(seed).integers(0, 256, (n, 3072), dtype=np.uint8)
    return {
        b"data": data,
        b"filenames": [f"picture_s_{seed:03d}{i:03d}.png".encode() for i in range(n)],
        b"batch_label": b"a batch",
        **labels,
    }


def cifar100_members() -> dict[str, dict[bytes, object]]:
    return {
        "train": batch(6, 1, {b"fine_labels": [2, 0, 1, 0, 2, 1], b"coarse_labels": [1, 0, 0, 0, 1, 0]}),
        "test": batch(3, 2, {b"fine_labels": [0, 1, 2], b"coarse_labels": [0, 0, 1]}),
        "meta": {b"fine_label_names": [b"apple", b"bear", b"cloud"], b"coarse_label_names": [b"alive", b"other"]},
    }


def cifar10_members() -> dict[str, dict[bytes, object]]:
    members = {f"data_batch_{i}": batch(2, i, {b"labels": [0, 1]}) for i in range(1, 6)}
    return members | {
        "test_batch": batch(2, 9, {b"labels": [1, 0]}),
        "batches.meta": {b"label_names": [b"cat", b"dog"]},
    }


def write_folder(folder: Path, members) -> Path:
    folder.mkdir(parents=True)
    for name, record in members.items():
        (folder / name).write_bytes(python2_pickle(record))
    return folder


def write_tar(path: Path, folder: str, members, extra: list[tarfile.TarInfo] = ()) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, record in members.items():
            content = python2_pickle(record)
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for info in extra:
            tar.addfile(info, io.BytesIO(bytes(info.size)))
    return path


@pytest.fixture
def cifar100_folder(tmp_path) -> Path:
    return write_folder(tmp_path / "cifar-100-python", cifar100_members())


def same(left, right) -> bool:
    return (
        left.images.ids == right.images.ids
        and left.category_names == right.category_names
        and np.array_equal(left.categories, right.categories)
        and np.array_equal(left.is_test, right.is_test)
        and all(np.array_equal(left.images.pixels(i), right.images.pixels(i)) for i in range(len(left)))
    )


def test_the_test_pickles_are_read_by_the_real_unpickler_as_numpy_arrays():
    record = pickle.loads(python2_pickle(cifar100_members()["train"]), encoding="bytes")
    np.testing.assert_array_equal(record[b"data"], cifar100_members()["train"][b"data"])


def test_cifar100_from_the_unpacked_folder(cifar100_folder):
    dataset = load_source("cifar100", cifar100_folder)
    assert dataset.category_names == ("apple", "bear", "cloud")
    assert dataset.images.ids == (
        "test/apple/picture_s_002000.png", "test/bear/picture_s_002001.png", "test/cloud/picture_s_002002.png",
        "train/apple/picture_s_001001.png", "train/apple/picture_s_001003.png", "train/bear/picture_s_001002.png",
        "train/bear/picture_s_001005.png", "train/cloud/picture_s_001000.png", "train/cloud/picture_s_001004.png",
    )  # fmt: skip
    assert dataset.categories.tolist() == [0, 1, 2, 0, 0, 1, 1, 2, 2]
    assert dataset.is_test.tolist() == [True] * 3 + [False] * 6
    stored = cifar100_members()["train"][b"data"][5]  # red plane, green plane, blue plane, each row by row
    pixels = dataset.images.pixels(6)
    assert pixels[2, 7].tolist() == [stored[2 * 32 + 7], stored[1024 + 2 * 32 + 7], stored[2048 + 2 * 32 + 7]]


def test_packed_unpacked_and_parent_folder_are_the_same(cifar100_folder, tmp_path):
    unpacked = load_source("cifar100", cifar100_folder)
    elsewhere = tmp_path / "packed"
    elsewhere.mkdir()
    tar = write_tar(elsewhere / "cifar-100-python.tar.gz", "cifar-100-python", cifar100_members())
    assert same(unpacked, load_source("cifar100", tmp_path))
    assert same(unpacked, load_source("cifar100", elsewhere))
    assert same(unpacked, load_source("cifar100", tar))


def test_coarse_categories(cifar100_folder):
    fine, coarse = load_source("cifar100", cifar100_folder), load_source("cifar100", cifar100_folder, labels="coarse")
    assert coarse.category_names == ("alive", "other")
    assert coarse.categories.tolist() == [0, 0, 1, 0, 0, 0, 0, 1, 1]
    assert coarse.images.ids == fine.images.ids
    with pytest.raises(IgcdError, match="fine or coarse, got 'rough'"):
        load_source("cifar100", cifar100_folder, labels="rough")


def test_cifar10(tmp_path):
    unpacked = load_source("cifar10", write_folder(tmp_path / "cifar-10-batches-py", cifar10_members()))
    tar = write_tar(tmp_path / "cifar-10-python.tar.gz", "cifar-10-batches-py", cifar10_members())
    assert same(unpacked, load_source("cifar10", tar))
    assert len(unpacked) == 12
    assert unpacked.category_names == ("cat", "dog")
    assert unpacked.is_test.sum() == 2


def test_repeated_file_names_fall_back_to_numbers(tmp_path):
    members = cifar10_members()
    members["data_batch_2"][b"filenames"] = members["data_batch_1"][b"filenames"]
    dataset = load_source("cifar10", write_folder(tmp_path / "cifar-10-batches-py", members))
    assert "train/00009" in dataset.images.ids


class Opener:
    """What an attacker would pickle: an object whose rebuilding calls a function."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_runs_nothing(tmp_path, protocol):
    target = tmp_path / "written by the pickle"
    attack = pickle.dumps({"data": Opener(Path.touch, target)}, protocol)
    pickle.loads(attack)
    assert target.exists(), "the attack works on an open unpickler"
    target.unlink()
    with pytest.raises(IgcdError, match="was refused"):
        read_pickle(attack, origin="train")
    assert not target.exists()


@pytest.mark.parametrize(
    "attack",
    [
        b"cos\nsystem\n(S'touch pwned'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"(S'touch pwned'\nios\nsystem\n.",  # INST
        b"(cos\nsystem\nS'touch pwned'\no.",  # OBJ
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n(S'x'\ntR.",
        b"cnumpy\nndarray.tofile\n.",
        b"c__main__\nx\n.",
        RECONSTRUCT + b"(NNtR(K\x01(K\x01tNI00\nS'a'\ntb.",  # an array whose type is no type
        RECONSTRUCT + b"}b.",  # a state for the function itself
        b"cnumpy\ndtype\n}b.",
        b"cnumpy\nndarray\n(tR.",  # calling what is only a name
        b"cnumpy\ndtype\n(S'O8'\ntR.",  # objects are pointers
        b"P0\n.",  # a persistent id
        b"\x82\x01.",  # an extension code
        b"",
        b"not a pickle at all",
        b"\x80\x02]q\x00.",  # a list, not a dictionary
    ],
)
def test_nothing_but_arrays_lists_and_strings_is_admitted(attack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IgcdError, match="official archive"):
        read_pickle(attack, origin="train")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("array", [np.zeros(2, np.float64), np.array([None, "x"], dtype=object)])
def test_arrays_of_other_types_are_refused(array):
    with pytest.raises(IgcdError, match="arrays must be uint8"):
        read_pickle(python2_pickle({b"data": array}), origin="train")


def test_an_array_shorter_than_its_shape_is_refused():
    content = python2_pickle({b"data": np.zeros((2, 3), np.uint8)}).replace(b"K\x02K\x03\x86", b"K\x7fK\x7f\x86")
    with pytest.raises(IgcdError, match="refused"):
        read_pickle(content, origin="train")


def test_numpy_2_names_and_fortran_order_are_read():
    array = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    content = python2_pickle({b"data": array})
    renamed = content.replace(b"numpy.core.multiarray", b"numpy._core.multiarray")
    for pickled in (content, renamed):
        np.testing.assert_array_equal(read_pickle(pickled, origin="train")["data"], array)


def tar_member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "cifar-100-python/../../outside"])
def test_tar_members_outside_the_folder_are_refused(tmp_path, name):
    tar = write_tar(tmp_path / "cifar-100-python.tar.gz", "cifar-100-python", cifar100_members(), [tar_member(name)])
    with pytest.raises(IgcdError, match="outside its folder"):
        load_source("cifar100", tar)


def test_a_link_in_place_of_a_member_is_refused(tmp_path):
    members = cifar100_members()
    del members["train"]
    link = tar_member("cifar-100-python/train", tarfile.SYMTYPE, "/etc/passwd")
    tar = write_tar(tmp_path / "cifar-100-python.tar.gz", "cifar-100-python", members, [link])
    with pytest.raises(IgcdError, match="must be a file"):
        load_source("cifar100", tar)


def test_damage_anywhere_in_a_tar_is_refused_in_one_sentence(tmp_path):
    path = write_tar(tmp_path / "cifar-100-python.tar.gz", "cifar-100-python", cifar100_members())
    whole, rng, n_refused = path.read_bytes(), random.Random(0), 0
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            load_source("cifar100", path)
        except IgcdError:
            n_refused += 1
    assert n_refused > 55


def test_nothing_is_unpacked_to_disk(tmp_path):
    tar = write_tar(tmp_path / "cifar-100-python.tar.gz", "cifar-100-python", cifar100_members())
    load_source("cifar100", tar)
    assert list(tmp_path.iterdir()) == [tar]


def test_missing_files_are_named(tmp_path):
    with pytest.raises(IgcdError, match=r"cifar-100-python\.tar\.gz.*cifar100\.npz.*toronto"):
        load_source("cifar100", tmp_path)
    with pytest.raises(IgcdError, match=r"cifar-10-python\.tar\.gz.*cifar-10-batches-py"):
        load_source("cifar10", tmp_path)
    members = cifar100_members()
    del members["meta"]
    tar = write_tar(tmp_path / "cifar-100-python.tar.gz", "cifar-100-python", members)
    with pytest.raises(IgcdError, match="missing in cifar-100-python: meta"):
        load_source("cifar100", tar)


@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda _: b"no tar"])
def test_a_damaged_archive_is_one_sentence(tmp_path, damage):
    tar = write_tar(tmp_path / "cifar-100-python.tar.gz", "cifar-100-python", cifar100_members())
    tar.write_bytes(damage(tar.read_bytes()))
    with pytest.raises(IgcdError, match="must be a tar archive"):
        load_source("cifar100", tar)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"data", np.zeros((6, 100), np.uint8)),
        (b"data", [1, 2]),
        (b"fine_labels", [0, 1]),
        (b"fine_labels", [0, 1, 2, 0, 1, 3]),
        (b"fine_labels", [0, 1, 2, 0, 1, b"x"]),
        (b"fine_labels", None),
        (b"filenames", [b"a"]),
    ],
)
def test_contents_that_do_not_fit_are_refused(tmp_path, key, value):
    members = cifar100_members()
    members["train"][key] = value
    with pytest.raises(IgcdError, match="train must hold"):
        load_source("cifar100", write_folder(tmp_path / "cifar-100-python", members))


def test_pixels_are_sliced_at_their_own_size(cifar100_folder):
    images = load_source("cifar100", cifar100_folder).images
    assert images.at_size(np.arange(9), 32).shape == (9, 32, 32, 3)
    assert not isinstance(images, Concatenation)
