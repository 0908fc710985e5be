"""Arrays on disk that anybody may have made, .npy and .npz: read without trust, never a pickle."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


class DamagedArrayError(ValueError):
    """Why a file is not an array of plain values, or is damaged."""


def read_npy(path: Path, *, mapped: bool = False) -> Array:
    """The array of a .npy file, `mapped` where it is to stay on disk. Raises `OSError` or `DamagedArrayError`."""
    with _one_complaint():
        if mapped:
            return np.lib.format.open_memmap(path, mode="r")
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)


def read_npz(path: Path) -> dict[str, Array]:
    """The arrays of a .npz file by name. Raises `OSError` or `DamagedArrayError`."""
    with _one_complaint(), np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):  # numpy gives the bytes of whatever else is packed
                raise DamagedArrayError(f"{name} is not an array")
        return arrays


def values_of(array: Array) -> list[Any]:
    """The values of an array as Python has them. Raises `DamagedArrayError` for texts whose letters do not exist."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        letters = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).view(np.uint32)
        if letters.max() > sys.maxunicode:  # numpy would make broken texts of it
            raise DamagedArrayError("holds letters that Unicode does not have")
    return list(array.tolist())


@contextmanager
def _one_complaint() -> Iterator[None]:
    """Reports damage as one kind of error: numpy, zipfile and the parser of headers raise and warn what they like."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except OSError:
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise DamagedArrayError(reason) from None
