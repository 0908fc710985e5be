"""Chance that falls the same everywhere: only `random.Random.random`, which Python promises never to change."""

import math
import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Dice:
    """Random choices from a text seed.

    >>> Dice("a seed").whole(1, 6) == Dice("a seed").whole(1, 6)
    True
    """

    def __init__(self, seed: str) -> None:
        self.share = random.Random(seed).random  # noqa: S311 (pictures, not secrets)

    def between(self, low: float, high: float) -> float:
        """A number between two bounds, all equally likely."""
        return low + (high - low) * self.share()

    def around(self, center: float, spread: float) -> float:
        """A number near a center: bell-shaped, never farther away than 2 x `spread`."""
        return center + spread * 4 / 3 * (self.share() + self.share() + self.share() - 1.5)

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self.share() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.share() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[int(self.share() * len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """All items in a random order."""
        rest = list(items)
        for last in range(len(rest) - 1, 0, -1):
            other = self.whole(0, last)
            rest[last], rest[other] = rest[other], rest[last]
        return rest

    def log_between(self, low: float, high: float) -> float:
        """A number between two positive bounds, each doubling equally likely."""
        return math.exp(self.between(math.log(low), math.log(high)))
