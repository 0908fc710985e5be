"""Where images with categories can come from: one record per source, its module loaded when it is asked for."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from igcd.errors import IgcdError

if TYPE_CHECKING:  # the list of sources must be at hand without loading what reads them
    from igcd.data.dataset import Dataset


@dataclass(frozen=True)
class Source:
    """A source: a module with a function `load(root, …) -> Dataset`."""

    name: str
    description: str
    expects: str  # what root must be, and where to get it
    module: str
    needs_root: bool = True
    split_sizes: tuple[int, ...] | None = None  # categories that arrive at each stage by default


SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        source.name: source
        for source in (
            Source(
                "fieldguide",
                "built-in: an invented flora and fauna with dates and coordinates, drawn by code",
                "nothing",
                "igcd.data.fieldguide.source",
                needs_root=False,
            ),
            Source(
                "cifar100",
                "CIFAR-100: 50,000 + 10,000 images of 32×32, 100 categories",
                "cifar-100-python.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html, the folder it unpacks to, "
                "or cifar100.npz",
                "igcd.data.cifar100",
                split_sizes=(70, 10, 10, 10),  # the paper's, after Grow and Merge
            ),
            Source(
                "cifar10",
                "CIFAR-10: 50,000 + 10,000 images of 32×32, 10 categories",
                "cifar-10-python.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html, the folder it unpacks to, "
                "or cifar10.npz",
                "igcd.data.cifar10",
                split_sizes=(4, 2, 2, 2),
            ),
            Source(
                "cub",
                "CUB-200-2011: 5,994 + 5,794 photographs of birds, 200 species",
                "the folder CUB_200_2011 from https://www.vision.caltech.edu/datasets/cub_200_2011/, or cub200*.npz",
                "igcd.data.cub",
                split_sizes=(140, 20, 20, 20),
            ),
            Source(
                "cars",
                "Stanford Cars: 8,144 + 8,041 photographs of cars, 196 models",
                "a folder with cars_train/, cars_test/, cars_meta.mat, cars_train_annos.mat and "
                "cars_test_annos_withlabels.mat (the last three may be in devkit/)",
                "igcd.data.cars",
                split_sizes=(136, 20, 20, 20),
            ),
            Source(
                "imagenet100",
                "ImageNet-100: 100 categories of ImageNet-1k by your list",
                "a folder with train/<wnid>/ and val/<wnid>/, and a text file of 100 wnids: wnids=FILE "
                "(igcd build: --option wnids=FILE)",
                "igcd.data.imagenet100",
                split_sizes=(70, 10, 10, 10),
            ),
            Source(
                "imagenet1k",
                "ImageNet-1k: 1.28 million + 50,000 photographs, 1,000 categories",
                "a folder with train/<wnid>/ and val/<wnid>/, from https://image-net.org",
                "igcd.data.imagenet1k",
                split_sizes=(700, 100, 100, 100),
            ),
            Source(
                "tiny-imagenet",
                "Tiny-ImageNet: 100,000 + 10,000 images of 64×64, 200 categories",
                "the folder tiny-imagenet-200 from http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                "igcd.data.tiny_imagenet",
                split_sizes=(140, 20, 20, 20),
            ),
            Source(
                "digits",
                "scikit-learn's digits: 1,797 images of 8×8, 10 categories, nothing to download",
                "nothing",
                "igcd.data.digits",
                needs_root=False,
                split_sizes=(4, 2, 2, 2),
            ),
            Source(
                "folder",
                "your images, a folder per category",
                "a folder with <category>/ folders, or with train/<category>/ and test/<category>/",
                "igcd.data.folder",
            ),
            Source(
                "table",
                "your images, listed in a CSV file",
                "a CSV file with the columns path, category and, if you like, split (train or test)",
                "igcd.data.table",
            ),
        )
    }
)


def load_source(name: str, root: Path | None = None, **options: object) -> "Dataset":
    """The data set of a source, from `root`, with the options of its `load`.

    >>> digits = load_source("digits")
    >>> len(digits), digits.category_names[:3]
    (1797, ('0', '1', '2'))
    """
    if name not in SOURCES:
        raise IgcdError(f"unknown source {name!r}; choose one of {', '.join(SOURCES)}")
    source = SOURCES[name]
    if source.needs_root and root is None:
        raise IgcdError(
            f"the source {name} needs to know where its files are; give root (igcd build: --data, a recipe: "
            f"stream.data), it expects {source.expects}"
        )
    if not source.needs_root and root is not None and not Path(root).exists():
        raise IgcdError(
            f"the source {name} reads no files, got {root}; leave root out (igcd build: --data, a recipe: stream.data)"
        )
    if root is not None and not Path(root).exists():
        raise IgcdError(f"{root} does not exist; the source {name} expects {source.expects}")
    load = import_module(source.module).load
    known = [option for option in inspect.signature(load).parameters if option != "root"]
    for option in options:
        if option not in known:
            raise IgcdError(f"the source {name} has no option {option!r}; it knows {', '.join(known) or 'none'}")
    dataset: Dataset = load(root if root is None else Path(root), **options)
    return dataset
