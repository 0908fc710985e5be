"""A data set as one .npz file of encoded images: small on disk, quick to open, decoded on demand.

Arrays, for `train` and `test`: `<format>_train` (bytes of all images back to back), `off_train` (n + 1 boundaries),
`y_train` (n category codes), optionally `file_train` (n file names); and `class_names`. CIFAR-100 has `coarse_names`
and `fine_to_coarse` besides.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from igcd.array_files import DamagedArrayError, read_npz
from igcd.data.dataset import Dataset
from igcd.data.images import ArchiveImages
from igcd.data.ordering import Split, image_ids, joined
from igcd.errors import IgcdError

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

    names = [str(name) for name in arrays["class_names"]]
    codes = [arrays[f"y_{split}"].astype(np.int64) for split in SPLITS]
    for split, of_split in zip(SPLITS, codes, strict=True):
        if of_split.size and not 0 <= of_split.min() <= of_split.max() < len(names):
            raise IgcdError(f"{path}: y_{split} must lie between 0 and {len(names) - 1}; the file is damaged")
    splits = [
        Split(
            ArchiveImages(
                image_ids(split, [names[code] for code in of_split], _file_names(arrays, split)),
                arrays[f"{encoding}_{split}"].astype(np.uint8, copy=False),
                arrays[f"off_{split}"].astype(np.int64),
            ),
            arrays["fine_to_coarse"].astype(np.int64)[of_split] if coarse else of_split,
            is_test=split == "test",
        )
        for split, of_split in zip(SPLITS, codes, strict=True)
    ]
    return joined(name, splits, [str(name) for name in arrays["coarse_names"]] if coarse else names)


def _arrays(path: Path) -> dict[str, npt.NDArray[np.generic]]:
    try:
        return read_npz(path)
    except (OSError, DamagedArrayError) as error:
        raise IgcdError(f"{path} must be an .npz archive of plain arrays ({error}); get it anew") from None


def _file_names(arrays: dict[str, npt.NDArray[np.generic]], split: str) -> list[str] | None:
    if f"file_{split}" not in arrays:
        return None
    return [
        name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
        for name in arrays[f"file_{split}"].tolist()
    ]
