"""What every body plan defines: its place in the system, its traits, and how to draw it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from igcd.data.fieldguide.brush import Brush, Color, Ribbon, darker, lighter
from igcd.data.fieldguide.dice import Dice

Look = Mapping[str, str]
"""The traits of a species: name of the trait -> one of its options. Colors are names of pigments."""


@dataclass(frozen=True)
class BodyPlan:
    """A way of being built, shared by some families."""

    name: str
    supercategory: str
    kingdom: str
    phylum: str
    class_name: str
    order: str
    habitat: str  # "land", "perch", "foliage" or "water": which view of the landscape is behind it
    max_turn: float  # degrees an individual may be turned
    size: float  # typical half length in shares of the picture
    family_traits: Mapping[str, tuple[str, ...]]  # the same within a family, as far as its genera agree
    species_traits: Mapping[str, tuple[str, ...]]  # may tell two species of a genus apart
    genus_endings: tuple[str, ...]
    nouns: tuple[str, ...]  # what people call it
    draw: Callable[[Brush, Look, Dice], None]
    hidden_when: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """A trait that cannot be seen where all of these others have these options."""

    @property
    def traits(self) -> dict[str, tuple[str, ...]]:
        """All traits with their options."""
        return {**self.family_traits, **self.species_traits}


SKIN_MARKINGS = ("plain", "bands", "spots", "stripes", "saddles", "net", "half", "rings")


def mark(
    brush: Brush, body: Ribbon, marking: str, color: Color, dice: Dice, start: float = 0.0, end: float = 1.0
) -> None:
    """One of `SKIN_MARKINGS` on a body between two places along it. Individuals differ a little in number and place."""

    def along(share: float) -> float:
        return start + (end - start) * share

    if marking == "bands":
        n = dice.whole(4, 5)
        for i in range(n):
            u = (i + 0.6) / n + dice.around(0, 0.01)
            brush.fill(body.band(along(u - 0.055), along(u + 0.055)), color)
    elif marking == "spots":
        n = dice.whole(5, 6)
        for i in range(n):
            for v in (-0.52, 0.05, 0.6):
                u = along((i + 0.5 + 0.5 * (v == 0.05)) / (n + 0.5))
                x, y = body.spot(u, dice.around(v, 0.07))
                brush.disk(x, y, dice.between(0.045, 0.066), color)
    elif marking == "stripes":
        for v in (-0.55, -0.05, 0.45):
            brush.fill(body.band(along(0.03), along(0.97), v - 0.1, v + 0.1, n=12), color)
    elif marking == "saddles":
        n = dice.whole(3, 4)
        for i in range(n):
            u = (i + 0.5) / n
            brush.fill(body.band(along(u - 0.1), along(u + 0.1), -1, -0.1), color)
            brush.fill(body.band(along(u - 0.05), along(u + 0.05), -0.2, 0.35), color)
    elif marking == "net":
        for i in range(-2, 7):
            u = i / 6
            for slope in (0.3, -0.3):
                sides = (-1.0, -0.33, 0.33, 1.0)
                places = [u + slope * (side + 1) / 2 - min(slope, 0.0) for side in sides]
                brush.line(body.at([along(min(1.0, max(0.0, p))) for p in places], sides), color, 0.022)
    elif marking == "half":
        brush.fill(body.band(along(0.46), along(1.0), n=12), color)
    elif marking == "rings":
        n = 4
        for i in range(n):
            x, y = body.spot(along((i + 0.55) / n), -0.05)
            radius = dice.between(0.095, 0.11)
            brush.disk(x, y, radius, color)
            brush.disk(x, y, radius * 0.5, lighter(color, 0.6))
            brush.disk(x, y, radius * 0.22, darker(color, 0.7))


def polar(radius: float, angle: float) -> tuple[float, float]:
    """A point at a distance and an angle in degrees, 0 to the right, 90 up."""
    return radius * math.cos(math.radians(angle)), -radius * math.sin(math.radians(angle))
