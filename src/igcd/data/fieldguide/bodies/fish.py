"""Fish, from the side."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import SKIN_MARKINGS, BodyPlan, Look, mark
from igcd.data.fieldguide.brush import ALL_PIGMENTS, Brush, Color, Ribbon, curve, darker, lighter, mix, points
from igcd.data.fieldguide.dice import Dice


def _fin_rays(brush: Brush, root: tuple[float, float], tips: np.ndarray, color: Color) -> None:
    for x, y in tips:
        brush.line(points(root, (x, y)), darker(color, 0.45), 0.012, 0.5)


def _tail(brush: Brush, form: str, x: float, y: float, color: Color, swing: float) -> None:
    if form == "forked":
        shape = points(
            (0.06, -0.06), (-0.3, -0.34), (-0.44, -0.42), (-0.26, -0.02), (-0.44, 0.42), (-0.3, 0.34), (0.06, 0.06)
        )
    elif form == "fan":
        angles = np.linspace(2.3, 2 * math.pi - 2.3, 9)
        shape = np.concatenate(
            [
                points((0.06, -0.06)),
                np.stack([0.42 * np.cos(angles), -0.42 * np.sin(angles)], axis=1),
                points((0.06, 0.06)),
            ]
        )
    elif form == "lyre":
        shape = np.concatenate(
            [
                curve((0.06, -0.06), (-0.2, -0.4), (-0.72, -0.46), 6),
                points((-0.24, -0.1), (-0.24, 0.1)),
                curve((-0.72, 0.46), (-0.2, 0.4), (0.06, 0.06), 6),
            ]
        )
    else:
        shape = points((0.06, -0.07), (-0.3, -0.2), (-0.66, 0.0), (-0.3, 0.2), (0.06, 0.07))
    shape = shape * (1.0, 1.0 - abs(swing)) + (x, y + swing * 0.2)
    brush.fill(shape, color, 0.92)
    _fin_rays(brush, (x, y), shape[1:-1:2] * 0.94 + np.array([x, y]) * 0.06, color)


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """Fins behind, body with scales and markings, gill, eye."""
    main, accent, fin = brush.paint(look["main"]), brush.paint(look["accent"]), brush.paint(look["fins"])
    deep, long = {"torpedo": (0.33, 0.8), "disk": (0.6, 0.62), "eel": (0.2, 0.92), "humped": (0.45, 0.74)}[
        look["figure"]
    ]
    swing = dice.around(0.0, 0.16)
    x = np.linspace(-long, long, 18)
    hump = 0.08 if look["figure"] == "humped" else 0.0
    spine = np.stack([x, swing * np.cos(1.7 * x / long - 0.8) - hump * np.cos(x * 2)], axis=1)
    half_width = deep * np.interp(
        np.linspace(0, 1, 18), [0, 0.12, 0.3, 0.6, 0.85, 0.95, 1], [0.2, 0.38, 0.76, 1, 0.7, 0.4, 0.12]
    )
    body = Ribbon(spine, half_width)
    _tail(brush, look["tail"], float(spine[0, 0]), float(spine[0, 1]), fin, swing)
    _dorsal(brush, look["dorsal"], body, fin)
    brush.fill(np.concatenate([body.band(0.3, 0.52, 0.9, 0.9, n=3)[:3], body.at([0.3], [1.55])]), fin, 0.9)
    brush.body(body, main)
    brush.fill(body.stripe(0.3, 1), lighter(main, 0.55), 0.55)
    mark(brush, body, look["marking"], accent, dice, 0.06, 0.76)
    for i in range(7):
        for v in (-0.5, 0.0, 0.5):
            u = 0.16 + 0.085 * i + (0.04 if v == 0 else 0)
            brush.line(
                body.at([u + 0.012, u - 0.03, u + 0.012], [v - 0.24, v, v + 0.24]), darker(main, 0.5), 0.012, 0.28
            )
    brush.line(body.at([0.8, 0.755, 0.8], [-0.6, 0.1, 0.8]), darker(main, 0.55), 0.03, 0.7)
    brush.light(body)
    flap = dice.between(-0.12, 0.18)
    root = np.array(body.spot(0.66, 0.3))
    brush.fill(
        np.concatenate([[root], root + points((-0.2, 0.02 + flap), (-0.3, 0.16 + flap), (-0.14, 0.22 + flap * 0.5))]),
        mix(fin, (255, 255, 255), 0.15),
        0.92,
    )
    eye = body.spot(0.885, -0.22)
    brush.eye(*eye, 0.055 if look["figure"] != "eel" else 0.045)
    brush.line(body.at([1.0, 0.95], [0.2, 0.5]), darker(main, 0.7), 0.02)


def _dorsal(brush: Brush, form: str, body: Ribbon, color: Color) -> None:
    if form == "sail":
        u, height = np.linspace(0.3, 0.75, 8), np.array([1.1, 1.6, 2.0, 2.3, 2.4, 2.2, 1.7, 0.9])
    elif form == "spiny":
        u, height = np.linspace(0.3, 0.78, 9), np.array([1.0, 1.5, 1.15, 1.75, 1.25, 1.9, 1.25, 1.7, 0.9])
    elif form == "twin":
        u, height = np.linspace(0.25, 0.78, 9), np.array([0.9, 1.7, 1.5, 0.9, 0.9, 1.4, 1.9, 1.5, 0.9])
    else:
        u, height = np.linspace(0.2, 0.75, 8), np.array([1.25, 1.3, 1.35, 1.35, 1.35, 1.3, 1.2, 0.9])
    fin = np.concatenate([body.at(u, -height), body.at(u[::-1], -0.8)])
    brush.fill(fin, color, 0.93)
    for i in range(1, len(u) - 1, 2):
        brush.line(body.at([u[i], u[i]], [-0.8, -height[i] * 0.97]), darker(color, 0.45), 0.012, 0.6)


FISH = BodyPlan(
    name="fish",
    supercategory="Ray-finned Fishes",
    kingdom="Animalia",
    phylum="Chordata",
    class_name="Actinopterygii",
    order="Lucidiformes",
    habitat="water",
    max_turn=24,
    size=0.36,
    family_traits={"figure": ("torpedo", "disk", "eel", "humped"), "dorsal": ("sail", "spiny", "twin", "low")},
    species_traits={
        "tail": ("forked", "fan", "lyre", "pointed"),
        "main": ALL_PIGMENTS,
        "accent": ALL_PIGMENTS,
        "fins": ("vermilion", "amber", "lemon", "teal", "azure", "violet", "rose", "slate", "ivory"),
        "marking": SKIN_MARKINGS,
    },
    genus_endings=("ichthys", "perca", "gobius", "labrus", "cichla"),
    nouns=("perch", "darter", "wrasse", "goby", "minnow", "cichlid", "angelfish", "barb", "bream"),
    draw=draw,
    hidden_when={"accent": (("marking", "plain"),)},
)
