"""What is behind and before the subject: six continents, each seen over land, among branches, from above, in water.

The background is painted on a small canvas and enlarged: out of focus, as behind a subject in a photograph.
"""

import math
from dataclasses import dataclass

from PIL import Image, ImageDraw

from igcd.data.fieldguide.brush import Color, darker, lighter, mix
from igcd.data.fieldguide.dice import Dice

FAR_SIZE = 72
"""Side of the small canvas, the same at every size of picture, so that a sighting always shows the same scene.

It is reduced before it is enlarged: that smooths its edges and puts it out of focus."""
SOFTNESS = 2
_RAMP = Image.linear_gradient("L").resize((FAR_SIZE, FAR_SIZE))


@dataclass(frozen=True)
class Landscape:
    """The colors of a continent and what grows there."""

    sky: Color
    horizon: Color
    hills: Color
    ground: Color
    soil: Color
    leaves: tuple[Color, Color, Color]
    blossoms: tuple[Color, ...]
    water: tuple[Color, Color]  # near the surface, in the deep
    trees: str


LANDSCAPES: dict[str, Landscape] = {
    "North America": Landscape(
        sky=(126, 172, 214), horizon=(236, 230, 212), hills=(116, 138, 164), ground=(164, 158, 92), soil=(122, 104, 82),
        leaves=((52, 88, 76), (84, 116, 74), (148, 140, 76)), blossoms=((244, 214, 110), (190, 150, 210)),
        water=((124, 184, 206), (24, 66, 104)), trees="conifer",
    ),
    "Europe": Landscape(
        sky=(150, 192, 226), horizon=(236, 238, 222), hills=(140, 168, 156), ground=(138, 164, 78), soil=(118, 110, 78),
        leaves=((88, 128, 66), (122, 154, 74), (164, 178, 96)),
        blossoms=((222, 84, 70), (250, 246, 236), (120, 130, 210)),
        water=((164, 196, 152), (40, 84, 74)), trees="round",
    ),
    "Oceania": Landscape(
        sky=(96, 178, 226), horizon=(244, 230, 206), hills=(84, 158, 184), ground=(196, 112, 70), soil=(178, 92, 56),
        leaves=((118, 140, 116), (150, 160, 120), (190, 168, 110)), blossoms=((246, 208, 96), (236, 236, 226)),
        water=((126, 222, 218), (16, 104, 140)), trees="gum",
    ),
    "Asia": Landscape(
        sky=(198, 210, 212), horizon=(238, 232, 218), hills=(150, 174, 176), ground=(104, 128, 82), soil=(92, 96, 82),
        leaves=((92, 134, 70), (126, 160, 84), (70, 108, 84)), blossoms=((244, 182, 198), (250, 232, 234)),
        water=((150, 206, 178), (22, 86, 86)), trees="bamboo",
    ),
    "Africa": Landscape(
        sky=(236, 184, 122), horizon=(250, 228, 174), hills=(186, 154, 118), ground=(210, 172, 94), soil=(164, 122, 76),
        leaves=((118, 116, 62), (168, 148, 78), (204, 176, 98)), blossoms=((240, 120, 60), (250, 220, 120)),
        water=((204, 190, 136), (78, 88, 66)), trees="acacia",
    ),
    "South America": Landscape(
        sky=(112, 168, 148), horizon=(196, 222, 182), hills=(72, 124, 100), ground=(62, 88, 52), soil=(70, 60, 46),
        leaves=((28, 78, 58), (46, 110, 66), (84, 140, 70)), blossoms=((236, 84, 120), (250, 176, 60)),
        water=((142, 150, 92), (44, 46, 40)), trees="palm",
    ),
}  # fmt: skip


class _Pane:
    """The small canvas, drawn on in shares of its side."""

    def __init__(self, top: Color, bottom: Color) -> None:
        self.image = Image.new("RGB", _RAMP.size, top)
        self.image.paste(bottom, mask=_RAMP)
        self._opaque = ImageDraw.Draw(self.image)  # much faster than blending
        self._translucent = ImageDraw.Draw(self.image, "RGBA")

    def _pen(self, alpha: float) -> ImageDraw.ImageDraw:
        return self._opaque if alpha == 1 else self._translucent

    def fill(self, corners: list[tuple[float, float]], color: Color, alpha: float = 1.0) -> None:
        placed = [(x * FAR_SIZE, y * FAR_SIZE) for x, y in corners]
        self._pen(alpha).polygon(placed, fill=(*color, int(255 * alpha)))

    def disk(self, x: float, y: float, width: float, height: float, color: Color, alpha: float = 1.0) -> None:
        box = ((x - width) * FAR_SIZE, (y - height) * FAR_SIZE, (x + width) * FAR_SIZE, (y + height) * FAR_SIZE)
        self._pen(alpha).ellipse(box, fill=(*color, int(255 * alpha)))

    def line(self, corners: list[tuple[float, float]], width: float, color: Color, alpha: float = 1.0) -> None:
        placed = [(x * FAR_SIZE, y * FAR_SIZE) for x, y in corners]
        self._pen(alpha).line(placed, fill=(*color, int(255 * alpha)), width=max(1, round(width * FAR_SIZE)))


def background(continent: str, habitat: str, dice: Dice) -> Image.Image:
    """The scene behind a subject, RGB, small and soft."""
    land = LANDSCAPES[continent]
    view = {"land": _over_land, "perch": _among_branches, "foliage": _from_above, "water": _in_water}[habitat]
    return view(land, dice).image.reduce(SOFTNESS)


def _over_land(land: Landscape, dice: Dice) -> _Pane:
    pane = _Pane(land.sky, land.horizon)
    horizon = dice.between(0.34, 0.66)
    if dice.chance(0.4):
        pane.disk(dice.share(), dice.between(0.05, horizon), 0.09, 0.09, lighter(land.horizon, 0.7), 0.7)
    _ridge(pane, land, horizon, dice)
    _tree_line(pane, land, horizon, dice)
    far, near = mix(land.ground, land.horizon, 0.3), darker(land.ground, 0.28)
    for step in range(6):
        y = horizon + (1 - horizon) * step / 6
        wave = dice.between(-0.03, 0.03)
        pane.fill([(0, y + wave), (0.5, y - wave), (1, y + wave), (1, 1), (0, 1)], mix(far, near, step / 6))
    for _ in range(dice.whole(4, 9)):
        y = dice.between(horizon + 0.06, 1)
        size = 0.05 * (y - horizon) + 0.008
        pane.disk(dice.share(), y, size, size, dice.pick(land.blossoms), 0.75)
    for _ in range(7):
        x, y = dice.share(), dice.between(horizon + 0.15, 1.05)
        height = dice.between(0.1, 0.3)
        pane.line([(x, y), (x + dice.around(0, 0.05), y - height)], 0.02, dice.pick(land.leaves), 0.6)
    return pane


def _ridge(pane: _Pane, land: Landscape, horizon: float, dice: Dice) -> None:
    for depth in (0.65, 0.3):
        height = dice.between(0.05, 0.2) * (1.3 if land.trees in ("bamboo", "conifer") else 0.7)
        phase, pace = dice.between(0, 6.3), dice.between(4, 9)
        crest = [(x / 8, horizon - height * depth * (1.1 + math.sin(phase + pace * x / 8))) for x in range(9)]
        pane.fill([(0, 1), *crest, (1, 1)], mix(land.hills, land.horizon, depth))


def _tree_line(pane: _Pane, land: Landscape, horizon: float, dice: Dice) -> None:
    for _ in range(dice.whole(4, 8)):
        _tree(pane, land, dice.share(), horizon + dice.between(0.0, 0.1), dice.between(0.12, 0.34), dice)


def _tree(pane: _Pane, land: Landscape, x: float, foot: float, height: float, dice: Dice) -> None:
    """One tree of the continent, small and far away."""
    leaf = mix(dice.pick(land.leaves), land.horizon, dice.between(0.1, 0.45))
    trunk = mix(darker(land.soil, 0.3), land.horizon, 0.25)
    top = foot - height
    if land.trees == "conifer":
        pane.fill([(x - height * 0.22, foot), (x, top - height * 0.2), (x + height * 0.22, foot)], leaf)
    elif land.trees == "bamboo":
        for stem in range(3):
            pane.line([(x + 0.05 * stem, foot + 0.3), (x + 0.05 * stem + 0.02, top - 0.5)], 0.018, leaf, 0.8)
        pane.fill([(x, top), (x + 0.16, top - 0.03), (x + 0.05, top + 0.05)], leaf, 0.8)
    elif land.trees == "acacia":
        pane.line([(x, foot), (x + 0.02, top)], 0.02, trunk)
        pane.disk(x, top, height * 0.75, height * 0.2, leaf)
    elif land.trees == "palm":
        pane.line([(x, foot + 0.05), (x + 0.03, top)], 0.02, trunk)
        for side in (-1, 1):
            pane.fill([(x + 0.03, top), (x + side * 0.16, top - 0.05), (x + side * 0.24, top + 0.08)], leaf)
            pane.disk(x + side * 0.14, foot - 0.05, 0.16, 0.13, darker(leaf, 0.15), 0.8)
    elif land.trees == "gum":
        pane.line([(x, foot), (x + 0.03, top)], 0.022, lighter(trunk, 0.45))
        for _ in range(3):
            pane.disk(x + dice.around(0.03, 0.05), top + dice.around(0, 0.04), 0.09, 0.05, leaf, 0.85)
    else:
        pane.line([(x, foot), (x, top)], 0.025, trunk)
        pane.disk(x, top, height * 0.42, height * 0.5, leaf)
        pane.disk(x - height * 0.1, top - height * 0.1, height * 0.25, height * 0.28, lighter(leaf, 0.2), 0.7)


def _among_branches(land: Landscape, dice: Dice) -> _Pane:
    pane = _Pane(
        mix(land.sky, land.leaves[1], dice.between(0, 0.5)), mix(land.horizon, land.leaves[2], dice.between(0.1, 0.7))
    )
    if dice.chance(0.6):
        _ridge(pane, land, dice.between(0.6, 0.95), dice)
    for _ in range(dice.whole(2, 5)):
        _tree(pane, land, dice.share(), dice.between(0.7, 1.1), dice.between(0.3, 0.7), dice)
    for _ in range(dice.whole(9, 16)):
        size = dice.between(0.05, 0.17)
        color = dice.pick(land.leaves)
        color = lighter(color, dice.between(0, 0.5)) if dice.chance(0.5) else darker(color, dice.between(0, 0.3))
        pane.disk(dice.share(), dice.share(), size, size, color, dice.between(0.25, 0.6))
    for _ in range(dice.whole(0, 4)):
        pane.disk(dice.share(), dice.share(), 0.05, 0.05, dice.pick(land.blossoms), 0.6)
    return pane


def _from_above(land: Landscape, dice: Dice) -> _Pane:
    leafy = dice.chance(0.6)
    base = dice.pick(land.leaves) if leafy else dice.pick((land.soil, land.ground))
    pane = _Pane(lighter(base, dice.between(0, 0.25)), darker(base, dice.between(0.05, 0.3)))
    if leafy:
        for _ in range(dice.whole(5, 8)):
            _broad_leaf(pane, dice.pick(land.leaves), dice)
    else:
        for _ in range(14):
            size = dice.between(0.02, 0.09)
            color = lighter(base, dice.between(0, 0.3)) if dice.chance(0.5) else darker(base, dice.between(0, 0.4))
            pane.disk(dice.share(), dice.share(), size * 1.3, size, color, 0.7)
        for _ in range(3):
            _broad_leaf(pane, mix(dice.pick(land.leaves), land.soil, 0.5), dice, dice.between(0.15, 0.3))
    for _ in range(dice.whole(0, 5)):
        pane.disk(dice.share(), dice.share(), 0.03, 0.03, dice.pick(land.blossoms), 0.7)
    return pane


def _broad_leaf(pane: _Pane, color: Color, dice: Dice, length: float = 0.6) -> None:
    x, y, angle = dice.share(), dice.share(), dice.between(0, 6.3)
    length *= dice.between(0.7, 1.1)
    width = length * dice.between(0.2, 0.36)
    cos, sin = math.cos(angle), math.sin(angle)
    color = lighter(color, dice.between(0, 0.3)) if dice.chance(0.6) else darker(color, dice.between(0, 0.35))
    shape = ((-1.0, 0.0), (-0.5, 0.75), (0.1, 0.95), (0.6, 0.55), (1.0, 0.0), (0.6, -0.55), (0.1, -0.95), (-0.5, -0.75))
    placed = [(x + length * u * cos - width * v * sin, y + length * u * sin + width * v * cos) for u, v in shape]
    pane.fill([(px + 0.025, py + 0.035) for px, py in placed], (10, 20, 20), 0.25)
    pane.fill(placed, color)
    pane.fill(placed[:5], darker(color, 0.5), 0.25)
    pane.line([placed[0], placed[4]], 0.014, lighter(color, 0.4), 0.7)


def _in_water(land: Landscape, dice: Dice) -> _Pane:
    surface, deep = land.water
    murk = dice.between(0, 0.35)
    pane = _Pane(mix(surface, deep, murk), mix(deep, surface, 0.35 * dice.share()))
    for _ in range(dice.whole(2, 4)):
        x, lean, width = dice.between(-0.1, 1.1), dice.between(-0.3, 0.3), dice.between(0.05, 0.16)
        pane.fill(
            [(x, 0), (x + width, 0), (x + lean + width * 2, 1), (x + lean - width, 1)], lighter(surface, 0.5), 0.13
        )
    floor = dice.between(0.75, 1.05)
    crest = [(x / 6, floor + 0.04 * math.sin(x * 2.1 + floor * 40)) for x in range(7)]
    pane.fill([(0, 1), *crest, (1, 1)], mix(land.soil, deep, 0.4))
    for _ in range(dice.whole(3, 8)):
        x, height = dice.share(), dice.between(0.2, 0.75)
        color = mix(dice.pick(land.leaves), deep, dice.between(0.25, 0.6))
        sway = dice.between(-0.08, 0.08)
        stem = [(x + sway * math.sin(k * 1.5), 1.02 - height * k / 5) for k in range(6)]
        pane.line(stem, dice.between(0.02, 0.05), color, 0.85)
    for _ in range(dice.whole(1, 4)):
        x, size = dice.share(), dice.between(0.05, 0.16)
        pane.disk(x, floor + 0.05, size * 1.4, size, mix(dice.pick((*land.blossoms, land.soil)), deep, 0.55))
    for _ in range(dice.whole(2, 7)):
        size = dice.between(0.008, 0.022)
        pane.disk(dice.share(), dice.share(), size, size, lighter(surface, 0.7), 0.6)
    return pane


def foreground(continent: str, habitat: str, dice: Dice) -> Image.Image:
    """Leaves and blades close to the lens, RGBA, small and soft, to be enlarged and laid over the picture."""
    land = LANDSCAPES[continent]
    layer = Image.new("RGBA", (FAR_SIZE, FAR_SIZE), (*dice.pick(land.leaves), 0))
    pen = ImageDraw.Draw(layer)
    for _ in range(dice.whole(2, 4)):
        color = lighter(dice.pick(land.leaves), 0.3 * dice.share())
        if habitat == "water":
            color = mix(color, land.water[1], 0.4)
        x, y = dice.share(), dice.pick((-0.05, 1.05)) if habitat in ("perch", "foliage") else 1.05
        toward = -1 if y > 0.5 else 1
        reach, lean, width = dice.between(0.3, 0.8), dice.around(0, 0.25), dice.between(0.02, 0.07)
        blade = ((x - width, y), (x + lean * 0.4 - width, y + toward * reach * 0.6), (x + lean, y + toward * reach),
                 (x + lean * 0.4 + width, y + toward * reach * 0.6), (x + width, y))  # fmt: skip
        pen.polygon([(px * FAR_SIZE, py * FAR_SIZE) for px, py in blade], fill=(*color, dice.whole(170, 245)))
    return layer.reduce(SOFTNESS)
