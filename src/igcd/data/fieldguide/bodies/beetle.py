"""Beetles, from above."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import ALL_PIGMENTS, UNIT_CIRCLE, Brush, Color, curve, darker, lighter, points
from igcd.data.fieldguide.dice import Dice


def _legs(brush: Brush, color: Color, dice: Dice) -> None:
    for side in (-1, 1):
        for y, reach, back in ((-0.28, 0.62, -0.3), (0.0, 0.74, 0.08), (0.3, 0.68, 0.42)):
            swing = dice.around(0, 0.08)
            knee = (side * reach * 0.75, y + back * 0.3 + swing)
            foot = (side * reach * 0.95, y + back + swing)
            brush.line(points((side * 0.2, y), knee, foot), color, 0.06)
            brush.line(points(foot, (foot[0] + side * 0.05, foot[1] + math.copysign(0.12, back))), color, 0.035)


def _antennae(brush: Brush, form: str, color: Color, dice: Dice) -> None:
    length = 0.85 if form == "long" else 0.42
    for side in (-1, 1):
        spread = dice.around(0, 0.06)
        feeler = curve(
            (side * 0.09, -0.72), (side * (0.3 + spread), -0.85), (side * (0.42 + spread), -0.74 - length * 0.62), 7
        )
        brush.line(feeler, color, 0.032)
        if form == "clubbed":
            brush.disk(feeler[-1, 0], feeler[-1, 1], 0.07, color)
        elif form == "feathered":
            for x, y in feeler[2:]:
                brush.line(points((x, y), (x + side * 0.14, y - 0.02)), color, 0.02)
                brush.line(points((x, y), (x - side * 0.06, y - 0.12)), color, 0.02)


def _horns(brush: Brush, form: str, color: Color) -> None:
    if form == "stag":
        for side in (-1, 1):
            jaw = np.concatenate(
                [
                    curve((side * 0.06, -0.72), (side * 0.38, -0.9), (side * 0.12, -1.18), 6),
                    curve((side * 0.12, -1.18), (side * 0.2, -0.9), (side * 0.14, -0.7), 6),
                ]
            )
            brush.fill(jaw, color)
    elif form == "rhino":
        brush.fill(
            np.concatenate(
                [
                    curve((-0.08, -0.7), (-0.1, -1.0), (0.04, -1.2), 5),
                    curve((0.04, -1.2), (0.06, -0.95), (0.09, -0.7), 5),
                ]
            ),
            color,
        )


def _mark(brush: Brush, marking: str, wide: float, long: float, color: Color, dice: Dice) -> None:
    """Both wing cases alike, mirrored, in shares of their width and length."""
    for side in (-1, 1):
        if marking == "spots":
            for x, y in ((0.45, -0.55), (0.3, -0.12), (0.66, 0.05), (0.4, 0.48)):
                brush.disk(side * x * wide, 0.2 + y * long, dice.between(0.085, 0.105), color)
        elif marking == "bands":
            for y in (-0.45, 0.05, 0.5):
                edge = wide * math.sqrt(1 - y * y) * 0.97
                brush.fill(
                    points(
                        (0, 0.13 + y * long),
                        (side * edge, 0.1 + y * long),
                        (side * edge, 0.25 + y * long),
                        (0, 0.28 + y * long),
                    ),
                    color,
                )
        elif marking == "stripes":
            for x in (0.3, 0.65):
                reach = math.sqrt(1 - x * x) * 0.93 * long
                brush.fill(
                    points(
                        (side * wide * (x - 0.1), 0.2 - reach),
                        (side * wide * (x + 0.1), 0.2 - reach * 0.95),
                        (side * wide * (x + 0.08), 0.2 + reach * 0.9),
                        (side * wide * (x - 0.1), 0.2 + reach),
                    ),
                    color,
                )
        elif marking == "eyespots":
            brush.disk(side * 0.5 * wide, 0.2 + 0.1 * long, 0.15, color)
            brush.disk(side * 0.5 * wide, 0.2 + 0.1 * long, 0.085, (24, 20, 30))
        elif marking == "shoulders":
            brush.disk(side * 0.52 * wide, 0.2 - 0.5 * long, 0.17, color)
        elif marking == "zigzag":
            zig = [(0.08 + 0.16 * i, -0.1 + (0.16 if i % 2 else -0.16)) for i in range(6)]
            brush.line(points(*((side * x * wide, 0.2 + y * long) for x, y in zig)), color, 0.085)
    if marking == "tip":
        angles = np.linspace(0.45, math.pi - 0.45, 12)
        brush.fill(np.stack([0.99 * wide * np.cos(angles), 0.2 + 0.99 * long * np.sin(angles)], axis=1), color)


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """Legs and feelers, head, shield, wing cases with markings and a sheen."""
    main, accent, shield = brush.paint(look["main"]), brush.paint(look["accent"]), brush.paint(look["shield"])
    wide, long = {"oval": (0.46, 0.7), "round": (0.58, 0.62), "long": (0.34, 0.8)}[look["figure"]]
    dark = darker(shield, 0.72)
    brush.disk(0.06, 0.26, wide * 1.12, (14, 12, 20), 0.28, long / wide)
    _legs(brush, dark, dice)
    _antennae(brush, look["antennae"], dark, dice)
    _horns(brush, look["horns"], darker(shield, 0.5))
    brush.disk(0, -0.64, 0.19, darker(shield, 0.45))
    for side in (-1, 1):
        brush.disk(side * 0.15, -0.68, 0.055, (18, 14, 18))
    neck = points(
        (-0.2, -0.66),
        (0.2, -0.66),
        (wide * 0.84, -0.34),
        (wide * 0.7, -0.2),
        (-wide * 0.7, -0.2),
        (-wide * 0.84, -0.34),
    )
    brush.fill(neck, shield)
    brush.fill(neck * (0.5, 0.55) + (-0.06, -0.22), (255, 252, 236), 0.2)
    cases = UNIT_CIRCLE * (wide, long) + (0, 0.2)
    brush.fill(cases, main)
    _mark(brush, look["marking"], wide, long, accent, dice)
    for share, alpha in ((0.72, 0.10), (0.5, 0.12), (0.3, 0.16)):
        brush.fill(
            UNIT_CIRCLE * (wide * share * 0.6, long * share) + (-wide * 0.38, 0.2 - long * 0.18),
            lighter(main, 0.85),
            alpha,
        )
    angles = np.linspace(-0.9, 1.4, 12)
    outer = np.stack([wide * np.cos(angles), 0.2 + long * np.sin(angles)], axis=1)
    inner = np.stack([wide * 0.72 * np.cos(angles), 0.2 + long * 0.86 * np.sin(angles)], axis=1)
    brush.fill(np.concatenate([outer, inner[::-1]]), (18, 12, 36), 0.3)
    brush.line(np.concatenate([cases, cases[:1]]), darker(main, 0.7), 0.02, 0.7)
    brush.line(points((0, 0.2 - long), (0, 0.2 + long)), darker(main, 0.7), 0.028)


BEETLE = BodyPlan(
    name="beetle",
    supercategory="Insects",
    kingdom="Animalia",
    phylum="Arthropoda",
    class_name="Insecta",
    order="Gemmoptera",
    habitat="foliage",
    max_turn=75,
    size=0.31,
    family_traits={"figure": ("oval", "round", "long"), "antennae": ("short", "clubbed", "long", "feathered")},
    species_traits={
        "horns": ("none", "stag", "rhino"),
        "main": ALL_PIGMENTS,
        "accent": ALL_PIGMENTS,
        "shield": ("charcoal", "chestnut", "emerald", "indigo", "vermilion", "amber", "ivory", "teal"),
        "marking": ("plain", "spots", "bands", "stripes", "eyespots", "shoulders", "zigzag", "tip"),
    },
    genus_endings=("carabus", "elytra", "cantharis", "scarabus", "chrysa"),
    nouns=("beetle", "chafer", "weevil", "ladybird", "longhorn", "borer", "scarab"),
    draw=draw,
    hidden_when={"accent": (("marking", "plain"),)},
)
