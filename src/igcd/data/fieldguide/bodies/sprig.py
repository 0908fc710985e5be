"""Sprigs: twigs with leaves and fruit."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import FOLIAGE, Brush, Color, Ribbon, curve, darker, lighter, mix
from igcd.data.fieldguide.dice import Dice
from igcd.types import FloatArray

_U = np.linspace(0, 1, 13)
_WIDTHS = {
    "oval": 0.26 * np.sin(np.pi * _U**0.85) ** 0.8,
    "lance": 0.13 * np.sin(np.pi * _U**0.7),
    "lobed": 0.27 * np.sin(np.pi * _U**0.8) ** 0.7 * (1 + 0.42 * np.cos(_U * 6 * np.pi)) * 0.85,
    "heart": 0.36 * np.interp(_U, [0, 0.08, 0.3, 0.7, 1], [0.45, 0.85, 1, 0.5, 0]),
    "fan": 0.4 * np.interp(_U, [0, 0.35, 0.8, 0.95, 1], [0.05, 0.2, 1, 0.95, 0.7]),
    "toothed": 0.24 * np.sin(np.pi * _U**0.85) ** 0.8 * (1 + 0.16 * (-1) ** np.arange(13)),
}


# Side veins drawn in one stroke: out to a rim, back to the midrib, out to the other rim.
_VEIN_U = np.array([u + step for u in (0.2, 0.42, 0.64) for step in (0.0, 0.14, 0.0, 0.14, 0.0)])
_VEIN_V = np.array([0.0, -0.75, 0.0, 0.75, 0.0] * 3)


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """The twig, its leaves from below upward, then fruit."""
    bark = (104, 78, 58)
    bow = dice.around(0, 0.25)
    twig = curve((-bow * 0.5, 1.15), (bow, 0.2), (0, -0.55), 14)
    brush.line(twig, darker(bark, 0.25), 0.07)
    brush.line(twig - (0.015, 0.0), lighter(bark, 0.25), 0.025)
    main, accent = brush.paint(look["leaf color"]), brush.paint(look["accent"])
    for node, angle, length in _leaf_places(look["order"]):
        spread = angle + dice.around(0, 9)
        _leaf(
            brush,
            look,
            twig[node],
            math.radians(spread),
            length * dice.between(0.88, 1.08),
            mix(main, (255, 246, 190), dice.between(0, 0.14)),
            accent,
        )
    _fruit(brush, look["fruit"], twig, brush.paint(look["fruit color"]), dice)


def _leaf_places(order: str) -> list[tuple[int, float, float]]:
    """Node on the twig, angle in degrees (90 is up), length of each leaf."""
    if order == "opposite":
        return [(3, 205, 0.7), (3, -25, 0.7), (8, 160, 0.78), (8, 20, 0.78), (13, 130, 0.66), (13, 50, 0.66)]
    if order == "alternate":
        return [(2, -15, 0.8), (5, 190, 0.8), (8, 15, 0.85), (11, 155, 0.8), (13, 75, 0.75)]
    return [(11, angle, 0.86) for angle in (200, -20, 160, 20, 122, 58, 90)]


def _leaf(brush: Brush, look: Look, root: FloatArray, angle: float, length: float, color: Color, accent: Color) -> None:
    tip = root + length * np.array([math.cos(angle), -math.sin(angle)])
    sag = np.array([0.0, 0.1 * length])
    spine = curve(root, (root + tip) / 2 - sag, tip + sag, 13)
    leaf = Ribbon(spine, _WIDTHS[look["leaf"]] * length * 1.15)
    if look["marking"] == "edged":
        brush.body(leaf, accent)
        brush.fill(Ribbon(spine[:-1], _WIDTHS[look["leaf"]][:-1] * length * 0.8).outline(), color)
    else:
        brush.body(leaf, color, rim=0.6)
    if look["marking"] == "midrib":
        brush.fill(leaf.band(0.02, 0.92, -0.28, 0.28, n=7), accent)
    elif look["marking"] == "blotched":
        for u, v in ((0.25, 0.4), (0.4, -0.45), (0.58, 0.4), (0.7, -0.3)):
            x, y = leaf.spot(u, v)
            brush.disk(x, y, 0.065, accent)
    elif look["marking"] == "tipped":
        brush.fill(leaf.band(0.66, 1.0, n=6), accent)
    elif look["marking"] == "ribbed":
        brush.line(leaf.at(_VEIN_U, _VEIN_V * 1.15), accent, 0.04)
    brush.fill(leaf.stripe(0, 1), (14, 24, 40), 0.2)
    brush.fill(leaf.band(0.1, 0.8, -0.8, -0.2), (255, 255, 224), 0.13)
    brush.line(spine, lighter(color, 0.45), 0.022, 0.8)
    brush.line(leaf.at(_VEIN_U, _VEIN_V), lighter(color, 0.4), 0.012, 0.5)


def _fruit(brush: Brush, form: str, twig: FloatArray, color: Color, dice: Dice) -> None:
    if form == "berries":
        for i in range(7):
            x, y = twig[9] + (
                0.13 * math.cos(i * 2.4) * (i * 0.3) ** 0.5,
                0.1 + 0.13 * math.sin(i * 2.4) * (i * 0.3) ** 0.5,
            )
            brush.disk(x, y, 0.09, darker(color, 0.3))
            brush.disk(x - 0.01, y - 0.012, 0.074, color)
            brush.disk(x - 0.03, y - 0.035, 0.024, (255, 255, 255), 0.85)
    elif form == "catkins":
        for node in (6, 9, 12):
            x, y = twig[node]
            tail = Ribbon(
                curve((x, y), (x + 0.08, y + 0.2), (x + dice.around(0.06, 0.05), y + 0.5), 8),
                0.062 * np.array([0.5, 0.9, 1, 0.85, 1, 0.85, 0.8, 0.3]),
            )
            brush.body(tail, color)
            brush.light(tail)
    elif form == "plum":
        for side, node in ((-1, 6), (1, 10)):
            x, y = twig[node] + (side * 0.2, 0.26)
            brush.line(np.stack([twig[node], np.array([x, y - 0.1])]), (104, 78, 58), 0.022)
            brush.disk(x, y, 0.16, darker(color, 0.3), flatness=1.1)
            brush.disk(x - 0.015, y - 0.02, 0.135, color, flatness=1.1)
            brush.disk(x - 0.05, y - 0.06, 0.045, (255, 255, 255), 0.6)


SPRIG = BodyPlan(
    name="sprig",
    supercategory="Plants",
    kingdom="Plantae",
    phylum="Tracheophyta",
    class_name="Magnoliopsida",
    order="Foliales",
    habitat="perch",
    max_turn=24,
    size=0.36,
    family_traits={"leaf": tuple(_WIDTHS), "order": ("opposite", "alternate", "whorled")},
    species_traits={
        "leaf color": FOLIAGE,
        "accent": ("ivory", "lemon", "rose", "crimson", "charcoal", "violet", "teal"),
        "marking": ("plain", "edged", "midrib", "blotched", "tipped", "ribbed"),
        "fruit": ("none", "berries", "catkins", "plum"),
        "fruit color": ("vermilion", "crimson", "indigo", "lemon", "ivory", "charcoal", "amber"),
    },
    genus_endings=("phyllum", "dendron", "folia", "arbuta", "xylon"),
    nouns=("alder", "laurel", "currant", "holly", "willow", "ivy", "hornbeam", "privet"),
    draw=draw,
    hidden_when={"accent": (("marking", "plain"),), "fruit color": (("fruit", "none"),)},
)
