"""Where to cut the tree of a later batch, as labels of earlier rows asked for (`hidden_categories`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

HIDDEN = 1 / 7
"""Share of the categories that are new in the scenes from which heights come."""
TREE_OFF = 0.25
"""How far off the logarithm of the tree's number is: one standard deviation."""


@dataclass(frozen=True)
class Heights:
    """Heights to cut the tree at, by what a batch brings back of the known categories."""

    returning: tuple[float, ...]  # rows that come back, as a share of those that were labeled, rising
    heights: tuple[float, ...]  # in units of the mean join, see `discovery.Scene`
    n_labeled: float  # rows of a labeled category, in the mean
    n_parts: float = 1.0  # groups that a tree without labels finds in a labeled category, in the mean; 1 at least

    def for_batch(self, n_unlabeled: int, n_known: int) -> float:
        """The height for a batch of so many rows, if it holds new categories in the proportion of the scenes.

        >>> heights = Heights((0.1, 0.2, 0.6), (1.0, 1.5, 3.5), n_labeled=10.0)
        >>> round(heights.for_batch(100 + 240, n_known=60), 3)  # 10 new categories; of 600 labeled rows 40% come back
        2.5
        """
        returning = n_unlabeled / (n_known * self.n_labeled) - HIDDEN / (1 - HIDDEN)
        return float(np.interp(returning, self.returning, self.heights))

    def like_scenes(self, n_groups: int, n_known: int) -> float:
        """How much a batch is like the scenes, from 1 to 0, if the tree finds so many groups with the known.

        Fewer new ones than in the scenes are like them: one too many is better than one too few. A tree that sees parts
        in labeled categories is less sure.

        >>> heights = Heights((0.2,), (1.0,), n_labeled=10.0)
        >>> [round(heights.like_scenes(n, n_known=60), 2) for n in (60, 70, 90, 120)]
        [1.0, 1.0, 0.6, 0.1]
        """
        more = np.log(max(1.0, n_groups / self.n_parts * (1 - HIDDEN) / n_known))
        return float(np.exp(-((more / (TREE_OFF + np.log(self.n_parts))) ** 2) / 2))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`, also after JSON has made lists of tuples."""
        return cls(tuple(values["returning"]), tuple(values["heights"]), values["n_labeled"], values["n_parts"])
