"""A data set as one .npz file of encoded images: small on disk, quick to open, decoded on demand.

Arrays, for `train` and `test`: `<format>_train` (bytes of all images back to back), `off_train` (n + 1 boundaries),
`y_train` (n category codes), optionally `file_train` (n file names); and `class_names`. CIFAR-100 has `coarse_names`
and `fine_to_coarse` besides.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from igcd.array_files import Array, DamagedArrayError, read_npz, values_of
from igcd.data.dataset import Dataset
from igcd.data.images import ArchiveImages
from igcd.data.ordering import Split, image_ids, joined
from igcd.errors import IgcdError
from igcd.types import IntArray

FORMATS = ("webp", "jpg", "png")
SPLITS = ("train", "test")


def find_archive(root: Path, pattern: str) -> Path | None:
    """`root` itself if it is an .npz file, else the first file in it whose name matches."""
    if root.is_file():
        return root if root.suffix == ".npz" else None
    return next(iter(sorted(root.glob(pattern))), None)


def load_archive(path: Path, *, name: str, coarse: bool = False) -> Dataset:
    """Read such a file. With `coarse`, the categories are the coarse ones."""
    arrays = _arrays(path)
    encoding = next((form for form in FORMATS if f"{form}_train" in arrays), FORMATS[0])
    expected = ["class_names", *(f"{part}_{split}" for split in SPLITS for part in (encoding, "off", "y"))]
    expected += ["coarse_names", "fine_to_coarse"] if coarse else []
    missing = [key for key in expected if key not in arrays]
    if missing:
        raise IgcdError(f"{path} must hold the arrays {', '.join(expected)}, missing: {', '.join(missing)}")

    archive = _Archive(path, arrays)
    names = archive.texts("class_names")
    coarse_names = archive.texts("coarse_names") if coarse else names
    coarse_of = archive.integers("fine_to_coarse", len(names), below=len(coarse_names)) if coarse else None
    splits = []
    for split in SPLITS:
        codes = archive.integers(f"y_{split}", below=len(names))
        files = archive.texts(f"file_{split}", len(codes)) if f"file_{split}" in arrays else None
        images = ArchiveImages(
            image_ids(split, [names[code] for code in codes], files),
            archive.bytes(f"{encoding}_{split}"),
            archive.integers(f"off_{split}", len(codes) + 1),
        )
        splits.append(Split(images, codes if coarse_of is None else coarse_of[codes], is_test=split == "test"))
    return joined(name, splits, coarse_names)


@dataclass(frozen=True)
class _Archive:
    """The arrays of a file, each checked when it is taken."""

    path: Path
    arrays: Mapping[str, Array]

    def bytes(self, key: str) -> npt.NDArray[np.uint8]:
        """A row of bytes."""
        array = self.arrays[key]
        if array.ndim != 1 or array.dtype != np.uint8:
            raise self._damaged(key, "a row of bytes")
        return array.astype(np.uint8, copy=False)

    def integers(self, key: str, n: int | None = None, *, below: int = 2**63) -> IntArray:
        """A row of n whole numbers from 0 on."""
        array: npt.NDArray[Any] = self.arrays[key]
        if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) != (len(array) if n is None else n):
            raise self._damaged(key, f"a row of {'' if n is None else f'{n:,} '}whole numbers")
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < below:
            raise IgcdError(f"{self.path}: {key} must lie between 0 and {below - 1}; it is damaged, download it again")
        return array.astype(np.int64)

    def texts(self, key: str, n: int | None = None) -> list[str]:
        """A row of n names."""
        array: npt.NDArray[Any] = self.arrays[key]
        if array.ndim != 1 or array.dtype.kind not in "US" or len(array) != (len(array) if n is None else n):
            raise self._damaged(key, f"a row of {'' if n is None else f'{n:,} '}names")
        try:
            values = values_of(array)
        except DamagedArrayError:
            raise self._damaged(key, "a row of names") from None
        return [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values]

    def _damaged(self, key: str, expected: str) -> IgcdError:
        array = self.arrays[key]
        return IgcdError(
            f"{self.path}: {key} must be {expected}, got {array.dtype} of shape {array.shape}; download it again"
        )


def _arrays(path: Path) -> dict[str, Array]:
    try:
        return read_npz(path)
    except (OSError, DamagedArrayError) as error:
        raise IgcdError(f"{path} must be an .npz archive of plain arrays ({error}); download it again") from None
