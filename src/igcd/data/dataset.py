"""Images with their true categories: what a source gives and a stream is cut from."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from igcd.data.images import ImageSet
from igcd.errors import IgcdError
from igcd.types import BoolArray, IntArray


@dataclass(frozen=True)
class Dataset:
    """Training and test images in one sequence, each with its category.

    The order is the same in every run and on every machine: position i is always the same image.
    """

    name: str
    images: ImageSet
    categories: IntArray  # (n,), positions in category_names
    category_names: tuple[str, ...]
    is_test: BoolArray  # (n,)

    def __post_init__(self) -> None:
        for field, dtype in (("categories", np.int64), ("is_test", np.bool_)):
            values = np.asarray(getattr(self, field))
            if values.shape != (len(self.images),):
                raise IgcdError(
                    f"{field} of {self.name} must hold one value for each of the {len(self.images)} images, "
                    f"got shape {values.shape}; the source is damaged or was read wrongly"
                )
            if values.size and not np.can_cast(values.dtype, dtype, "same_kind") and values.dtype.kind != "u":
                raise IgcdError(
                    f"{field} of {self.name} must be {np.dtype(dtype).name}, got {values.dtype}; convert it"
                )
            own = values.astype(dtype)  # a copy, so that locking it locks nothing of the caller's
            own.flags.writeable = False
            object.__setattr__(self, field, own)
        object.__setattr__(self, "category_names", tuple(str(name) for name in self.category_names))
        self._check_names()
        n_categories = len(self.category_names)
        if self.categories.size and not 0 <= self.categories.min() <= self.categories.max() < n_categories:
            raise IgcdError(
                f"categories of {self.name} must lie between 0 and {n_categories - 1}, "
                f"got {self.categories.min()} to {self.categories.max()}; names and labels do not belong together"
            )

    def _check_names(self) -> None:
        seen: set[str] = set()
        for name in self.category_names:
            if name in seen:
                raise IgcdError(f"category names of {self.name} must be unique, got {name!r} twice; rename one of them")
            if not is_plain_name(name):
                raise IgcdError(
                    f"category names of {self.name} must be text without tabs, line breaks or undecodable bytes, "
                    f"got {name!r}; rename it"
                )
            seen.add(name)

    def __len__(self) -> int:
        return len(self.images)

    def take(self, idx: Sequence[int] | IntArray) -> "Dataset":
        """The images at these positions, in this order; category codes and names stay as they are."""
        idx = np.asarray(idx, dtype=np.int64)
        return Dataset(self.name, self.images.take(idx), self.categories[idx], self.category_names, self.is_test[idx])


def is_plain_name(name: str) -> bool:
    r"""Whether a name fits on a line of a tab-separated UTF-8 file.

    >>> is_plain_name("gray heron"), is_plain_name("gray\theron"), is_plain_name("h\udce9ron"), is_plain_name("")
    (True, False, False, False)
    """
    # control characters, lone surrogates (bytes that were no UTF-8), line and paragraph separators
    return bool(name.strip()) and not any(
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name
    )
