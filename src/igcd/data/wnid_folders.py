"""ImageNet and its subsets: `train/<wnid>/` and `val/<wnid>/`, a wnid being WordNet's number of a category."""

from collections.abc import Sequence
from pathlib import Path

from igcd.data.dataset import Dataset
from igcd.data.files import image_paths, require, subfolders
from igcd.data.ordering import listed
from igcd.errors import IgcdError

REMEDY = (
    "get ILSVRC2012 from https://image-net.org and sort the validation images into a folder per wnid (val/n01440764/)"
)


def train_wnids(root: Path, *, source: str) -> list[str]:
    """The wnids that have a folder of training images."""
    require(root, ("train/", "val/"), source=source, remedy=REMEDY)
    return subfolders(root / "train")


def load_wnids(root: Path, wnids: Sequence[str], *, name: str, source: str) -> Dataset:
    """The images of these categories; those in `val/` are the test images."""
    require(root, ("train/", "val/"), source=source, remedy=REMEDY)
    wnids = sorted(wnids)
    rows = []
    for code, wnid in enumerate(wnids):
        for folder in ("train", "val"):
            if not (root / folder / wnid).is_dir():
                raise IgcdError(f"{source} expects the folder {folder}/{wnid} in {root}, it is missing; {REMEDY}")
            rows += [(path, code, folder == "val") for path in image_paths(root, f"{folder}/{wnid}")]
    return listed(name, root, rows, wnids)
