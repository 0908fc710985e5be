"""What a `CategoryDiscoverer` tells about itself: how categories were found, and what rows are compared with."""

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from igcd.types import BoolArray


@dataclass(frozen=True)
class Discovery:
    """How a category was found. Rows are positions in the X of the call that found it."""

    id: int
    batch: int  # 0 for fit, 1 for the first partial_fit after it ...
    peak: int  # the row at the density peak
    members: tuple[int, ...]  # the peak and its nearest rows, most similar first
    density: float
    nearest_id: int | None  # the category most like it when it was found; None if there was none
    similarity: float | None  # of the peak to that category


@dataclass(frozen=True)
class Support:
    """What the classifier compares with, row by row: column j of `transform` is the similarity to row j."""

    features: npt.NDArray[Any]  # (s, c) centered, reduced, of length 1
    categories: npt.NDArray[Any]  # (s,) labels
    keys: tuple[str, ...]  # digests of the rows' content, see `CategoryDiscoverer.row_keys`
    is_pseudo: BoolArray  # (s,) whether the category of the row is a guess
