"""CIFAR-100: 50,000 + 10,000 images of 32×32, 100 fine or 20 coarse categories (Krizhevsky, 2009)."""

from pathlib import Path

from igcd.data.cifar_pickle import read_members, read_split, texts_of
from igcd.data.dataset import Dataset
from igcd.data.encoded_archive import find_archive, load_archive
from igcd.data.ordering import joined
from igcd.errors import IgcdError

ARCHIVE = "cifar-100-python.tar.gz"
FOLDER = "cifar-100-python"
NPZ = "cifar100.npz"


def load(root: Path, *, labels: str = "fine") -> Dataset:
    """The official archive, packed or unpacked, or `cifar100.npz`: `root` is one of them or the folder it is in.

    `labels` are "fine" (100 categories) or "coarse" (20).
    """
    if labels not in ("fine", "coarse"):
        raise IgcdError(f"labels of CIFAR-100 must be fine or coarse, got {labels!r}; choose one of them")
    npz = find_archive(root, NPZ)
    if npz is not None:
        return load_archive(npz, name="cifar100", coarse=labels == "coarse")
    members = read_members(root, FOLDER, ("train", "test", "meta"), archive=ARCHIVE, npz=NPZ)
    fine_names = texts_of(members["meta"], "fine_label_names", origin="meta")
    names = texts_of(members["meta"], f"{labels}_label_names", origin="meta")
    splits = [
        read_split(split, {split: members[split]}, labels=f"{labels}_labels", folders="fine_labels", names=fine_names)
        for split in ("train", "test")
    ]
    return joined("cifar100", splits, names)
