"""Names and order of images: the same wherever and from whichever archive they are read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from igcd.data.dataset import Dataset
from igcd.data.images import Concatenation, FileImages, ImageSet
from igcd.types import IntArray


@dataclass(frozen=True)
class Split:
    """The training or the test images of a source."""

    images: ImageSet
    categories: IntArray  # (len(images),)
    is_test: bool


def image_ids(split: str, categories: Sequence[str], file_names: Sequence[str] | None) -> list[str]:
    """`split/category/file name` where the archive has file names, else `split/number`.

    The category is in it because CIFAR-100 has one file name twice, in two categories.

    >>> image_ids("train", ["owl", "fox"], ["a.png", "a.png"])
    ['train/owl/a.png', 'train/fox/a.png']
    >>> image_ids("test", ["owl", "fox"], None)
    ['test/00000', 'test/00001']
    """
    if file_names is not None:
        ids = [f"{split}/{category}/{name}" for category, name in zip(categories, file_names, strict=True)]
        if len(set(ids)) == len(ids):
            return ids
    return [f"{split}/{number:05d}" for number in range(len(categories))]


def listed(name: str, root: Path, rows: Iterable[tuple[str, int, bool]], category_names: Sequence[str]) -> Dataset:
    """Files below `root` from rows of (path, category code, is test), in the order of their paths."""
    rows = sorted(rows)
    return Dataset(
        name,
        FileImages(root, [path for path, _, _ in rows]),
        np.array([code for _, code, _ in rows], dtype=np.int64),
        tuple(category_names),
        np.array([is_test for _, _, is_test in rows], dtype=np.bool_),
    )


def joined(name: str, splits: Sequence[Split], category_names: Sequence[str]) -> Dataset:
    """One data set in the order of the image ids, so that two archives of the same images give the same order."""
    images = Concatenation([split.images for split in splits])
    categories = np.concatenate([split.categories for split in splits])
    is_test = np.repeat([split.is_test for split in splits], [len(split.images) for split in splits])
    order = sorted(range(len(images)), key=images.ids.__getitem__)
    return Dataset(name, images, categories, tuple(category_names), is_test).take(order)
