"""The official python archives of CIFAR, read without running anything that is in them.

They are pickles, and a pickle can name any function to be called. Here every name in it is looked up in a table of
stand-ins: numpy's three names for rebuilding an array lead to a few lines below that accept plain uint8 data, any other
name is an error. Not even numpy's own unpickling code runs.
"""

import io
import pickle
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from igcd.data.files import read_to_the_end
from igcd.data.images import ArrayImages
from igcd.data.ordering import Split, image_ids
from igcd.errors import IgcdError

MAX_BYTES = 400_000_000  # the largest official member has 155 MB; a crafted one could unpack to anything


class _Dtype:
    """Stands in for `numpy.dtype`: uint8 or nothing."""

    __slots__ = ()

    def __init__(self, code: object, *_: object) -> None:
        if code not in (b"u1", "u1"):
            raise pickle.UnpicklingError(f"arrays must be uint8, got {code!r}")

    def __setstate__(self, state: object) -> None:  # byte order and the like, which mean nothing for uint8
        pass


class _Array:
    """Stands in for `numpy.ndarray` while it is rebuilt."""

    __slots__ = ("array",)
    array: npt.NDArray[np.uint8]

    def __setstate__(self, state: object) -> None:
        match state:
            case (_, tuple(shape), _Dtype(), bool(is_fortran) | int(is_fortran), bytes(content)):
                flat = np.frombuffer(content, dtype=np.uint8)
                self.array = flat.reshape([int(length) for length in shape], order="F" if is_fortran else "C")
            case _:
                raise pickle.UnpicklingError("an array must consist of its shape, its type and its bytes")


class _Name:
    """What a name in the pickle stands for; called as the pickle asks, closed to any other use."""

    __slots__ = ("_stand_in",)

    def __init__(self, stand_in: type[_Array] | type[_Dtype] | None) -> None:
        self._stand_in = stand_in

    def __call__(self, *arguments: object) -> object:
        if self._stand_in is _Array:
            return _Array()  # the arguments are a type, an empty shape and a code; the state that follows has the rest
        if self._stand_in is _Dtype:
            return _Dtype(*arguments)
        raise pickle.UnpicklingError("a type was called where only a name is expected")

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("a name cannot have a state")


class _ArraysAndLists(pickle.Unpickler):
    """Numbers, strings, lists, dicts and uint8 arrays; everything else is refused before it is touched."""

    def find_class(self, module: str, name: str) -> object:
        match module, name:
            case (("numpy.core.multiarray" | "numpy._core.multiarray"), "_reconstruct"):
                return _Name(_Array)
            case "numpy", "ndarray":
                return _Name(None)
            case "numpy", "dtype":
                return _Name(_Dtype)
        raise pickle.UnpicklingError(f"{module}.{name} is not an array, a list or a string")


def read_pickle(content: bytes, *, origin: str) -> dict[str, object]:
    """The dictionary in a CIFAR pickle, with text keys. `origin` names the file in errors."""
    try:
        record = _ArraysAndLists(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a crafted file can make the reader raise anything
        raise IgcdError(
            f"{origin} must be a pickle of plain arrays and lists and was refused ({error}); take the official archive"
        ) from None
    if not isinstance(record, dict):
        raise IgcdError(f"{origin} must hold a dictionary, got {type(record).__name__}; take the official archive")
    return {_text(key): value.array if isinstance(value, _Array) else value for key, value in record.items()}


def read_members(
    root: Path, folder: str, names: Sequence[str], *, archive: str, npz: str
) -> dict[str, dict[str, object]]:
    """The named pickles from the unpacked `folder` or the tar file `archive`, of which `root` is or holds either."""
    unpacked = root if root.name == folder else root / folder
    if all((unpacked / name).is_file() for name in names):
        return {name: read_pickle(_file_content(unpacked / name), origin=str(unpacked / name)) for name in names}
    packed = root if root.is_file() else root / archive
    if not packed.is_file():
        raise IgcdError(
            f"CIFAR expects {archive}, its folder {folder}, or {npz} in {root}, found none of them; download the "
            "archive from https://www.cs.toronto.edu/~kriz/cifar.html"
        )
    return {
        name: read_pickle(content, origin=f"{packed}:{folder}/{name}")
        for name, content in _tar_contents(packed, folder, names).items()
    }


def _file_content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise IgcdError(f"{path} must be below {MAX_BYTES:,} bytes; take the official archive")
        return path.read_bytes()
    except OSError as error:
        raise IgcdError(f"{path} cannot be read ({error.strerror}); check its permissions") from None


def _tar_contents(path: Path, folder: str, names: Sequence[str]) -> dict[str, bytes]:
    """Contents of the named members. Nothing is unpacked to disk, and a member that points elsewhere is refused."""
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:*") as tar:
            for member in tar:
                place = PurePosixPath(member.name)
                if place.is_absolute() or ".." in place.parts:
                    raise IgcdError(f"{path} holds {member.name!r}, outside its folder; take the official archive")
                if place.parent != PurePosixPath(folder) or place.name not in names:
                    continue
                if not member.isfile() or member.size > MAX_BYTES:
                    raise IgcdError(
                        f"{path}: {member.name} must be a file below {MAX_BYTES:,} bytes; take the official archive"
                    )
                file = tar.extractfile(member)
                contents[place.name] = file.read() if file else b""
            read_to_the_end(tar)
    except IgcdError:
        raise
    except Exception as error:  # tarfile and its decompressors raise whatever a damaged archive leads them to
        raise IgcdError(f"{path} must be a tar archive and cannot be read ({error}); download it again") from None
    missing = [name for name in names if name not in contents]
    if missing:
        raise IgcdError(f"{path} is incomplete, missing in {folder}: {', '.join(missing)}; download it again")
    return {name: contents[name] for name in names}


def read_split(
    split: str, records: Mapping[str, dict[str, object]], *, labels: str, folders: str, names: Sequence[str]
) -> Split:
    """The images of some pickles as one split, with `labels` as categories and `names[folders]` in their ids."""
    arrays, categories, folder_codes, file_names = [], [], [], []
    for origin, record in records.items():
        arrays.append(_images_of(record, origin=origin))
        categories.append(_integers_of(record, labels, origin=origin))
        folder_codes.append(_integers_of(record, folders, origin=origin))
        file_names.append(texts_of(record, "filenames", origin=origin))
        lengths = {len(arrays[-1]), len(categories[-1]), len(folder_codes[-1]), len(file_names[-1])}
        if len(lengths) > 1 or folder_codes[-1].max(initial=0) >= len(names):
            raise IgcdError(
                f"{origin} must hold a label below {len(names)} and a file name for each image; "
                "take the official archive"
            )
    image_folders = [names[code] for code in np.concatenate(folder_codes)]
    ids = image_ids(split, image_folders, [name for part in file_names for name in part])
    return Split(ArrayImages(ids, np.concatenate(arrays)), np.concatenate(categories), is_test=split == "test")


def _images_of(record: dict[str, object], *, origin: str) -> npt.NDArray[np.uint8]:
    """The pixels of one pickle, (n, 3072) by color plane -> (n, 32, 32, 3)."""
    data = record.get("data")
    if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != 3 * 32 * 32:
        raise IgcdError(f"{origin} must hold `data` of shape (n, 3072); take the official archive")
    return np.ascontiguousarray(data.reshape(len(data), 3, 32, 32).transpose(0, 2, 3, 1))


def _integers_of(record: dict[str, object], key: str, *, origin: str) -> npt.NDArray[np.int64]:
    """A list of category codes, (n,)."""
    values = record.get(key)
    if not isinstance(values, list) or not all(isinstance(value, int) and 0 <= value < 1000 for value in values):
        raise IgcdError(f"{origin} must hold a list of category numbers `{key}`; take the official archive")
    return np.array(values, dtype=np.int64)


def texts_of(record: dict[str, object], key: str, *, origin: str) -> list[str]:
    """A list of names."""
    values = record.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str | bytes) for value in values):
        raise IgcdError(f"{origin} must hold a list of names `{key}`; take the official archive")
    return [_text(value) for value in values]


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
