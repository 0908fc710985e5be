"""Flowers, from the front, on their stems."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import BRIGHT, Brush, Color, Ribbon, curve, darker, lighter
from igcd.data.fieldguide.dice import Dice
from igcd.types import FloatArray

_U = np.linspace(0, 1, 9)
_WIDTHS = {
    "round": np.interp(_U, [0, 0.3, 0.65, 0.9, 1], [0.08, 0.2, 0.28, 0.2, 0.06]),
    "pointed": np.interp(_U, [0, 0.4, 0.7, 1], [0.07, 0.2, 0.15, 0.0]),
    "strap": np.interp(_U, [0, 0.5, 0.9, 1], [0.06, 0.1, 0.1, 0.05]),
    "fan": np.interp(_U, [0, 0.5, 0.9, 1], [0.05, 0.15, 0.33, 0.3]),
}
_COUNT = {"four": 4, "five": 5, "six": 6, "eight": 8, "thirteen": 13}


def _petal(angle: float, length: float, widths: FloatArray, flat: float, curl: float) -> Ribbon:
    direction = np.array([math.cos(angle), math.sin(angle) * flat])
    across = np.array([-math.sin(angle), math.cos(angle) * flat])
    spine = _U[:, None] * length * direction + (curl * _U**2)[:, None] * across + 0.08 * direction
    return Ribbon(spine, widths * (0.75 + 0.25 * flat))


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """Stem and leaves, petals in one or two rings, heart."""
    main, accent = brush.paint(look["main"]), brush.paint(look["accent"])
    green = (84, 122, 58)
    bow = dice.around(0, 0.3)
    stem = curve((0, 0), (bow * 0.2, 0.8), (bow, 2.4), 10)
    brush.line(stem, darker(green, 0.35), 0.1)
    brush.line(stem - (0.02, 0), lighter(green, 0.15), 0.035)
    _leaves(brush, look["leaf"], stem, green, dice)
    count, flat = _COUNT[look["petals"]], dice.between(0.7, 1.0)
    widths = _WIDTHS[look["petal"]] * (1.25 if count <= 5 else 1.0 if count <= 8 else 0.75)
    start, curl = dice.between(0, math.pi), dice.around(0, 0.1)
    for ring, length in ((0, 0.82), (1, 0.6)) if look["rings"] == "double" else ((0, 0.82),):
        for i in range(count):
            angle = start + (i + 0.5 * ring) * 2 * math.pi / count
            petal = _petal(angle, length * dice.between(0.95, 1.04), widths, flat, curl)
            shade = darker(main, 0.16 * (0.5 + 0.5 * math.sin(angle))) if ring == 0 else lighter(main, 0.15)
            brush.body(petal, shade, rim=0.45)
            _mark(brush, look["marking"], petal, accent)
            brush.fill(petal.band(0, 0.4), darker(main, 0.6), 0.22)
            brush.fill(petal.band(0.5, 0.94, -0.7, -0.1), (255, 252, 236), 0.16)
    _heart(brush, look["heart"], accent, flat)


def _mark(brush: Brush, marking: str, petal: Ribbon, color: Color) -> None:
    if marking == "throat":
        brush.fill(petal.band(0, 0.5), color)
    elif marking == "edge":
        brush.fill(petal.band(0.78, 1.0), color)
    elif marking == "stripe":
        brush.fill(petal.band(0.1, 0.95, -0.3, 0.3), color)
    elif marking == "spots":
        for u, v in ((0.4, 0.0), (0.55, -0.4), (0.58, 0.4), (0.75, 0.0)):
            x, y = petal.spot(u, v)
            brush.disk(x, y, 0.036, color)
    elif marking == "veins":
        for v in (-0.5, 0.0, 0.5):
            brush.line(petal.at([0.1, 0.5, 0.9], [0.0, v * 0.8, v]), color, 0.024)
    elif marking == "ring":
        brush.fill(petal.band(0.42, 0.62), color)


def _heart(brush: Brush, form: str, accent: Color, flat: float) -> None:
    gold = (236, 180, 62)
    if form == "disk":
        brush.disk(0, 0, 0.26, darker(gold, 0.35), flatness=flat)
        brush.disk(-0.02, -0.03, 0.19, gold, flatness=flat)
    elif form == "dome":
        brush.disk(0, 0, 0.3, (74, 50, 40), flatness=flat)
        for i in range(9):
            brush.disk(
                0.19 * math.cos(i * 2.4) * (i / 9) ** 0.5 * 1.3,
                0.19 * math.sin(i * 2.4) * (i / 9) ** 0.5 * 1.3 * flat,
                0.035,
                lighter((150, 96, 52), 0.2),
            )
    elif form == "stamens":
        for i in range(8):
            x, y = 0.3 * math.cos(i * math.pi / 4 + 0.3), 0.3 * math.sin(i * math.pi / 4 + 0.3) * flat
            brush.line(np.array([[0, 0], [x, y]]), lighter(accent, 0.5), 0.022)
            brush.disk(x, y, 0.05, darker(gold, 0.1))
        brush.disk(0, 0, 0.08, (150, 170, 80))
    else:
        trumpet = [
            (0.3 * (1 + 0.12 * math.cos(8 * a)) * math.cos(a), 0.3 * (1 + 0.12 * math.cos(8 * a)) * math.sin(a) * flat)
            for a in np.linspace(0, 2 * math.pi, 24)
        ]
        brush.fill(np.array(trumpet), lighter(gold, 0.1))
        brush.disk(0, 0.02, 0.18, darker(gold, 0.5), flatness=flat)


def _leaves(brush: Brush, form: str, stem: FloatArray, green: Color, dice: Dice) -> None:
    for side, node in ((-1, 5), (1, 6), (-1, 8)):
        x, y = stem[node]
        reach = dice.between(0.6, 0.8) * (1.2 if form == "blade" else 1.0)
        tip = (x + side * reach, y - (0.9 if form == "blade" else 0.35) * reach)
        spine = curve((x, y), (x + side * reach * 0.4, y - 0.3), tip, 8)
        width = {"blade": 0.07, "oval": 0.2, "spear": 0.14}[form]
        leaf = Ribbon(spine, width * np.array([0.2, 0.7, 1, 1, 0.85, 0.6, 0.3, 0.0]))
        brush.body(leaf, darker(green, 0.12 if side < 0 else 0.0))
        brush.fill(leaf.stripe(-0.9, 0), (240, 255, 200), 0.14)
        brush.line(spine, lighter(green, 0.4), 0.02, 0.8)


FLOWER = BodyPlan(
    name="flower",
    supercategory="Plants",
    kingdom="Plantae",
    phylum="Tracheophyta",
    class_name="Magnoliopsida",
    order="Florales",
    habitat="land",
    max_turn=16,
    size=0.29,
    family_traits={"petals": tuple(_COUNT), "petal": tuple(_WIDTHS), "leaf": ("blade", "oval", "spear")},
    species_traits={
        "rings": ("single", "double"),
        "main": (*BRIGHT, "crimson", "indigo", "sand"),
        "accent": (*BRIGHT, "crimson", "indigo", "charcoal"),
        "heart": ("disk", "dome", "stamens", "trumpet"),
        "marking": ("plain", "throat", "edge", "stripe", "spots", "veins", "ring"),
    },
    genus_endings=("anthus", "flora", "petala", "anthemum", "lilia"),
    nouns=("bell", "aster", "daisy", "lily", "anemone", "campion", "mallow", "rockrose", "gentian"),
    draw=draw,
    hidden_when={"accent": (("marking", "plain"),)},
)
