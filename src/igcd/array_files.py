"""Arrays on disk that anybody may have made, .npy and .npz: read without trust, never a pickle."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


class DamagedArrayError(ValueError):
    """A file that is no array of plain values, or no longer: the reason."""


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
        return {name: archive[name] for name in archive.files}


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
