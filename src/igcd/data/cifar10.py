"""CIFAR-10: 50,000 + 10,000 images of 32×32, 10 categories (Krizhevsky, 2009)."""

from pathlib import Path

from igcd.data.cifar_pickle import read_members, read_split, texts_of
from igcd.data.dataset import Dataset
from igcd.data.encoded_archive import find_archive, load_archive
from igcd.data.ordering import joined

ARCHIVE = "cifar-10-python.tar.gz"
FOLDER = "cifar-10-batches-py"
NPZ = "cifar10.npz"
TRAIN_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))


def load(root: Path) -> Dataset:
    """The official archive, packed or unpacked, or `cifar10.npz`: `root` is one of them or the folder it is in."""
    npz = find_archive(root, NPZ)
    if npz is not None:
        return load_archive(npz, name="cifar10")
    members = read_members(root, FOLDER, (*TRAIN_BATCHES, "test_batch", "batches.meta"), archive=ARCHIVE, npz=NPZ)
    names = texts_of(members["batches.meta"], "label_names", origin="batches.meta")
    splits = [
        read_split(split, {batch: members[batch] for batch in batches}, labels="labels", folders="labels", names=names)
        for split, batches in (("train", TRAIN_BATCHES), ("test", ("test_batch",)))
    ]
    return joined("cifar10", splits, names)
