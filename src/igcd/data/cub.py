"""CUB-200-2011: 5,994 + 5,794 photographs of birds, 200 species (Wah et al., 2011)."""

from pathlib import Path

from igcd.data.dataset import Dataset
from igcd.data.encoded_archive import find_archive, load_archive
from igcd.data.files import read_columns, require
from igcd.data.ordering import listed
from igcd.errors import IgcdError

FOLDER = "CUB_200_2011"
FILES = ("images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt", "images/")
NPZ_PATTERN = "cub200*.npz"


def load(root: Path) -> Dataset:
    """The unpacked official archive or an .npz of it: `root` is one of them or the folder it is in."""
    npz = find_archive(root, NPZ_PATTERN)
    if npz is not None:
        return load_archive(npz, name="cub")
    root = root / FOLDER if (root / FOLDER).is_dir() else root
    require(
        root,
        FILES,
        source="CUB-200-2011",
        remedy=f"unpack CUB_200_2011.tgz (https://www.vision.caltech.edu/datasets/cub_200_2011/) or give {NPZ_PATTERN}",
    )
    names_by_number = dict(read_columns(root / "classes.txt", 2))
    number_of_image = dict(read_columns(root / "image_class_labels.txt", 2))
    is_train_of_image = dict(read_columns(root / "train_test_split.txt", 2))
    codes = {number: code for code, number in enumerate(names_by_number)}

    rows = []
    for image, path in read_columns(root / "images.txt", 2):
        number, is_train = number_of_image.get(image), is_train_of_image.get(image)
        if number not in codes or is_train not in ("0", "1"):
            raise IgcdError(
                f"image {image} of {root / 'images.txt'} must have a category of classes.txt in image_class_labels.txt "
                f"and 0 or 1 in train_test_split.txt, got {number} and {is_train}; unpack the archive again"
            )
        rows.append((path, codes[number], is_train == "0"))
    return listed("cub", root / "images", rows, [*names_by_number.values()])
