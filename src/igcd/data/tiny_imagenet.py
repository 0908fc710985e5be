"""Tiny-ImageNet: 100,000 + 10,000 images of 64×64, 200 categories of ImageNet (Stanford CS231n)."""

from pathlib import Path

from igcd.data.dataset import Dataset
from igcd.data.files import image_paths, read_columns, read_lines, require
from igcd.data.ordering import listed
from igcd.errors import IgcdError

FOLDER = "tiny-imagenet-200"
FILES = ("wnids.txt", "words.txt", "train/", "val/val_annotations.txt", "val/images/")


def load(root: Path) -> Dataset:
    """The unpacked official archive; its validation images are the test images (the official test has no labels)."""
    root = root / FOLDER if (root / FOLDER).is_dir() else root
    require(
        root,
        FILES,
        source="Tiny-ImageNet",
        remedy="unpack http://cs231n.stanford.edu/tiny-imagenet-200.zip and give its folder",
    )
    wnids = sorted(read_lines(root / "wnids.txt"))
    words = dict(read_columns(root / "words.txt", 2))
    codes = {wnid: code for code, wnid in enumerate(wnids)}

    rows = []
    for wnid in wnids:
        if not (root / "train" / wnid / "images").is_dir():
            raise IgcdError(f"Tiny-ImageNet expects train/{wnid}/images/ in {root}, it is missing; unpack it again")
        rows += [(path, codes[wnid], False) for path in image_paths(root, f"train/{wnid}/images")]
    for file_name, wnid, _ in read_columns(root / "val" / "val_annotations.txt", 3):  # the rest is the bounding box
        if wnid not in codes:
            raise IgcdError(f"{root / 'val/val_annotations.txt'} names {wnid}, which wnids.txt lacks; unpack it again")
        rows.append((f"val/images/{file_name}", codes[wnid], True))
    return listed("tiny-imagenet", root, rows, [_category_name(wnid, words) for wnid in wnids])


def _category_name(wnid: str, words: dict[str, str]) -> str:
    """The wnid, because words repeat (two cranes), and the first word for people."""
    return f"{wnid} {words[wnid].split(',')[0].strip()}" if wnid in words else wnid
