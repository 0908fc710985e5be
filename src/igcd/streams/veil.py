"""Images without their names: what a method is handed, so that nothing but the pixels speaks of the category.

A file name often is the category (`Vulpes vulpes/0012.jpg`), and so may be a position in a sorted data set. A
`VeiledImages` carries digests instead of names, in an order that was shuffled, and holds no reference to the images
behind it: those lie in a registry of this module. Code that goes out of its way to import the registry can still cheat,
as it could open the data set itself; code that only uses what it was given cannot, not even by walking attributes.
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from igcd.data.images import ImageSet, digest
from igcd.types import IntArray, Pixels

_behind: "WeakKeyDictionary[VeiledImages, tuple[ImageSet, IntArray]]" = WeakKeyDictionary()


class VeiledImages(ImageSet):
    """Some images of a set under opaque ids: an image has the same id at every stage and in every run."""

    def __init__(self, images: ImageSet, idx: Sequence[int] | IntArray, salt: str) -> None:
        positions = np.asarray(idx, dtype=np.int64)
        super().__init__(digest(f"{salt}\0{images.ids[i]}".encode())[:16] for i in positions.tolist())
        _behind[self] = (images, positions)

    def pixels(self, idx: int) -> Pixels:  # noqa: D102
        images, positions = _behind[self]
        return images.pixels(int(positions[idx]))

    def pixels_at_least(self, idx: int, size: int) -> Pixels:  # noqa: D102
        images, positions = _behind[self]
        return images.pixels_at_least(int(positions[idx]), size)

    def at_size(self, idx: IntArray, size: int) -> Pixels | None:  # noqa: D102
        images, positions = _behind[self]
        return images.at_size(positions[idx], size)

    def key(self, idx: int) -> str:  # noqa: D102
        images, positions = _behind[self]
        return images.key(int(positions[idx]))
