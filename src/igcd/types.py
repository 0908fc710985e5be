"""The nouns every layer shares. Frozen: a stage is handed over, never edited."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint8]
"""One image, (height, width, 3), or a batch of equal size, (n, height, width, 3): RGB, 0 to 255."""

UNLABELED = -1
"""In an array of categories: not labeled. In an array of clusters: no prediction."""


class Images(Protocol):
    """Images that are decoded when asked for: what the outside may know of a set of images."""

    @property
    def ids(self) -> Sequence[str]:
        """A name for each image, unique in the set and the same as long as a run lasts, also when it is resumed."""
        ...

    def __len__(self) -> int: ...

    def pixels(self, idx: int) -> Pixels:
        """The image at a position, (height, width, 3). Raises `BrokenImageError` where it cannot be decoded."""
        ...

    def pixels_at_least(self, idx: int, size: int) -> Pixels:
        """The image, where that is cheaper reduced while decoding, with both sides still >= size."""
        ...

    def square(self, idx: int, size: int) -> Pixels:
        """The center square of the image, resized, (size, size, 3)."""
        ...

    def at_size(self, idx: IntArray, size: int) -> Pixels | None:
        """The images at these positions, (n, size, size, 3), if they lie in memory at that size; else None."""
        ...

    def key(self, idx: int) -> str:
        """A digest of what the image at a position shows, not of what it is called: what caches go by."""
        ...

    def take(self, idx: Sequence[int] | IntArray) -> "Images":
        """The images at these positions, in this order."""
        ...


@dataclass(frozen=True)
class Stage:
    """All that a method may see at stage t. The truth about the unlabeled images is not in it.

    Categories are numbered in the order in which their labels arrive: after a stage with 70 labeled categories they
    are 0 to 69, so that a gap in the numbers cannot betray how many more there are.
    """

    index: int
    labeled: Images
    labels: IntArray  # (len(labeled),)
    unlabeled: Images
    category_names: tuple[str, ...]  # of every category labeled so far; labels point into it


@dataclass(frozen=True)
class Truth:
    """What is true of some images, position by position."""

    image_ids: tuple[str, ...]
    categories: tuple[str, ...]
    groups: tuple[str, ...]  # Old, New or S-t, see docs/protocol.md


@dataclass(frozen=True)
class StageTruth:
    """What the scorer knows about a stage: the hidden categories, and the test images of all categories so far."""

    index: int
    labeled: Truth  # aligned with Stage.labeled
    unlabeled: Truth  # aligned with Stage.unlabeled
    test_images: Images
    test: Truth  # aligned with test_images


@dataclass(frozen=True)
class Predictions:
    """One system's answers, row by row: the interchange file `predictions.csv` in memory."""

    stage: IntArray  # (n,)
    split: tuple[str, ...]  # "test" or "unlabeled"
    image_id: tuple[str, ...]
    category: tuple[str, ...]
    cluster: tuple[str, ...]
    group: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.image_id)


@dataclass(frozen=True)
class StageScores:
    """The accuracies of one stage in percent; None where there is no image to score."""

    stage: int
    scores: Mapping[str, float | None]  # All, Old, New, and S-t for each group of the stage


class Stream(Protocol):
    """A sequence of stages, each with the truth that only the scorer is given."""

    @property
    def name(self) -> str:
        """What the stream is called in records and tables."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[Stage, StageTruth]]: ...
