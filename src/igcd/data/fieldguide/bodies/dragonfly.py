"""Dragonflies, from above."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import ALL_PIGMENTS, BRIGHT, Brush, Color, Ribbon, darker, lighter
from igcd.data.fieldguide.dice import Dice

_U = np.linspace(0, 1, 10)
_WINGS = {
    "narrow": (1.06, 0.085),
    "broad": (0.98, 0.15),
    "paddle": (1.04, 0.12),
}


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """Four glassy wings, then the long body; the head is up."""
    main, accent, tint = brush.paint(look["main"]), brush.paint(look["accent"]), brush.paint(look["wing tint"])
    length, width = _WINGS[look["wings"]]
    widths = width * np.interp(
        _U,
        [0, 0.3, 0.7, 0.92, 1],
        [0.3, 0.85, 1.0, 0.75, 0.15] if look["wings"] != "paddle" else [0.2, 0.5, 1.0, 1.0, 0.3],
    )
    sweep = dice.around(0, 7)
    for side in (-1, 1):
        for y, angle, share in ((-0.02, -14, 0.94), (-0.2, 14, 1.0)):
            turn = math.radians(angle + sweep + dice.around(0, 4))
            tip = np.array([side * length * share * math.cos(turn), -length * share * math.sin(turn)])
            spine = np.array([side * 0.06, y]) + _U[:, None] * tip
            _wing(brush, look["wing marking"], Ribbon(spine, widths * (1.2 if angle < 0 else 1.0)), tint, side)
    _body(brush, look, main, accent, dice)


def _wing(brush: Brush, marking: str, wing: Ribbon, tint: Color, side: int) -> None:
    brush.fill(wing.outline(), lighter(tint, 0.72), 0.62)
    if marking == "tips":
        brush.fill(wing.band(0.72, 1.0, n=5), tint, 0.92)
    elif marking == "band":
        brush.fill(wing.band(0.46, 0.72, n=5), tint, 0.92)
    elif marking == "base":
        brush.fill(wing.band(0.02, 0.36, n=5), tint, 0.92)
    elif marking == "dark":
        brush.fill(wing.outline(), tint, 0.85)
    elif marking == "spots":
        for u in (0.3, 0.55, 0.8):
            x, y = wing.spot(u, 0)
            brush.disk(x, y, 0.075, tint)
    for v in (-0.5, 0.1, 0.6):
        brush.line(wing.at([0.02, 0.5, 0.95], v), darker(tint, 0.6), 0.013, 0.6)
    for u in (0.3, 0.5, 0.7, 0.86):
        brush.line(wing.at([u, u + 0.03], [-0.9, 0.9]), darker(tint, 0.6), 0.01, 0.45)
    brush.fill(wing.band(0.84, 0.92, -side, -side * 0.4, n=2), (40, 30, 36))
    brush.fill(wing.band(0.15, 0.75, -0.85, -0.35), (255, 255, 255), 0.25)


def _body(brush: Brush, look: Look, main: Color, accent: Color, dice: Dice) -> None:
    bend = dice.around(0, 0.14)
    t = np.linspace(0, 1, 18)
    spine = np.stack([bend * t**2, 0.05 + 1.0 * t], axis=1)
    widths = 0.072 * (
        np.interp(t, [0, 0.2, 0.7, 0.88, 1], [1.1, 0.7, 0.8, 1.5, 0.8])
        if look["abdomen"] == "clubbed"
        else np.interp(t, [0, 0.3, 1], [1.2, 1.0, 0.55])
    )
    if look["abdomen"] == "flat":
        widths = widths * 1.75
    tail = Ribbon(spine, widths)
    brush.body(tail, main)
    if look["marking"] == "rings":
        for i in range(6):
            brush.fill(tail.band(0.1 + 0.15 * i, 0.16 + 0.15 * i, n=2), accent)
    elif look["marking"] == "stripe":
        brush.fill(tail.stripe(-0.4, 0.4), accent)
    elif look["marking"] == "tail light":
        brush.fill(tail.band(0.7, 1.0, n=5), accent)
    elif look["marking"] == "pairs":
        for i in range(5):
            for v in (-0.5, 0.5):
                x, y = tail.spot(0.12 + 0.17 * i, v)
                brush.disk(x, y, 0.04, accent)
    brush.light(tail, 1.2)
    chest = Ribbon(
        np.stack([np.zeros(8), np.linspace(-0.36, 0.12, 8)], axis=1),
        0.15 * np.array([0.6, 0.9, 1, 1, 0.95, 0.85, 0.7, 0.5]),
    )
    brush.body(chest, darker(main, 0.15))
    for side in (-1, 1):
        brush.fill(chest.band(0.15, 0.8, side * 0.35, side * 0.65), accent, 0.9)
    brush.light(chest)
    for side in (-1, 1):
        brush.disk(side * 0.085, -0.43, 0.1, darker(accent, 0.35))
        brush.disk(side * 0.085 - 0.025, -0.46, 0.035, (255, 255, 255), 0.7)


DRAGONFLY = BodyPlan(
    name="dragonfly",
    supercategory="Insects",
    kingdom="Animalia",
    phylum="Arthropoda",
    class_name="Insecta",
    order="Vitroptera",
    habitat="foliage",
    max_turn=70,
    size=0.38,
    family_traits={"wings": tuple(_WINGS), "abdomen": ("slender", "clubbed", "flat")},
    species_traits={
        "main": ALL_PIGMENTS,
        "accent": (*BRIGHT, "charcoal"),
        "wing tint": ("azure", "amber", "chestnut", "teal", "crimson", "charcoal", "moss"),
        "wing marking": ("clear", "tips", "band", "base", "dark", "spots"),
        "marking": ("plain", "rings", "stripe", "tail light", "pairs"),
    },
    genus_endings=("libella", "aeschna", "gomphus", "nympha", "sympetra"),
    nouns=("darter", "hawker", "skimmer", "clubtail", "chaser", "meadowhawk"),
    draw=draw,
    hidden_when={"wing tint": (("wing marking", "clear"),)},
)
