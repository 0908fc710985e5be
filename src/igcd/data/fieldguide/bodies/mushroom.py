"""Mushrooms, from the side, alone or in small groups."""

from collections.abc import Callable

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import ALL_PIGMENTS, Brush, Color, Ribbon, darker, lighter, points
from igcd.data.fieldguide.dice import Dice
from igcd.types import FloatArray

_X = np.linspace(-1, 1, 15)
_TOPS = {
    "dome": np.sqrt(1 - _X**2 * 0.999) * 0.72,
    "cone": (1 - np.abs(_X) ** 1.3) * 0.95,
    "flat": np.minimum(1, (1 - _X**4) * 1.2) * 0.3,
    "bell": np.exp(-(_X**2) * 3.2) * 0.95 + 0.06 - 0.1 * _X**2,
    "funnel": -0.62 * (1 - 0.999 * _X**2) ** 0.8,  # its crown hangs down, one looks into it from above
}


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """One to three fruiting bodies, the largest in front."""
    for i in range(dice.whole(0, 2)):
        side = -1 if (i + dice.whole(0, 1)) % 2 else 1
        _one(brush, look, dice, side * dice.between(0.55, 0.8), dice.between(0.42, 0.62))
    _one(brush, look, dice, dice.around(0, 0.05), 1.0)


def _one(brush: Brush, look: Look, dice: Dice, x0: float, size: float) -> None:
    cap, accent, flesh = brush.paint(look["cap color"]), brush.paint(look["accent"]), brush.paint(look["stem color"])
    lean = dice.around(0, 0.12)
    foot, neck = 0.85, 0.85 - 0.85 * size

    def place(shape: FloatArray) -> FloatArray:
        return shape * size + (x0 + lean * size, neck)

    thick = {"slim": 0.09, "stout": 0.2, "bulbous": 0.13}[look["stem"]] * size
    y = np.linspace(foot, neck - 0.1 * size, 9)
    spine = np.stack([x0 + lean * size * ((foot - y) / (foot - neck)) ** 2, y], axis=1)
    swell = (
        np.array([2.3, 1.8, 1.25, 1, 0.95, 0.9, 0.9, 0.9, 0.9])
        if look["stem"] == "bulbous"
        else np.linspace(1.15, 0.9, 9)
    )
    stem = Ribbon(spine, thick * swell)
    brush.body(stem, flesh)
    brush.light(stem)
    if look["ring"] == "skirt":
        ring = np.array([[-1.0, 0.0], [1.0, 0.0], [1.9, 0.22], [0.9, 0.16], [0.0, 0.26], [-0.9, 0.16], [-1.9, 0.22]])
        brush.fill(
            ring * (thick * 1.1, 0.55 * size) + (x0 + lean * size * 0.55, neck + 0.24 * size), lighter(flesh, 0.3)
        )
        brush.line(
            ring[2:] * (thick * 1.1, 0.55 * size) + (x0 + lean * size * 0.55, neck + 0.24 * size),
            darker(flesh, 0.5),
            0.015,
            0.7,
        )
    wide = {"dome": 0.72, "cone": 0.56, "flat": 0.86, "bell": 0.62, "funnel": 0.74}[look["cap"]] * dice.between(
        0.93, 1.05
    )
    top = _TOPS[look["cap"]]
    droop = -0.2 if look["cap"] == "funnel" else 0.1
    under = np.stack([_X * wide * 0.97, droop * (1 - _X**2) + 0.0], axis=1)
    crown = np.stack([_X * wide, -top], axis=1)
    brush.fill(place(np.concatenate([crown * (0.98, 0.2), under[::-1] * (1, 1.4)])), darker(flesh, 0.35))
    for i in range(1, 14):
        brush.line(place(np.stack([np.array([_X[i] * 0.25, 0.1]), under[i]])), darker(flesh, 0.65), 0.014 * size, 0.6)
    shape = np.concatenate([crown, under[::-1] * (1, 0.35)])
    brush.fill(place(shape), cap)
    _mark(brush, look["marking"], place, crown, top, wide, accent, size)
    brush.fill(place(np.concatenate([crown[8:], (crown[8:] * (0.72, 0.75))[::-1]])), (22, 14, 40), 0.22)
    brush.fill(place(np.concatenate([crown[9:], (crown[9:] * (0.86, 0.85))[::-1]])), (22, 14, 40), 0.2)
    brush.fill(place(np.concatenate([crown[2:7] * 0.9, (crown[2:7] * (0.7, 0.6))[::-1]])), (255, 252, 236), 0.26)
    brush.line(place(shape), darker(cap, 0.65), 0.02 * size, 0.55)


def _mark(
    brush: Brush,
    marking: str,
    place: Callable[[FloatArray], FloatArray],
    crown: FloatArray,
    top: FloatArray,
    wide: float,
    color: Color,
    size: float,
) -> None:
    if marking == "warts":
        for x, share in (
            (-0.7, 0.5),
            (-0.42, 0.75),
            (-0.3, 0.3),
            (0.0, 0.82),
            (0.1, 0.45),
            (0.42, 0.72),
            (0.55, 0.3),
            (0.78, 0.5),
        ):
            height = float(np.interp(x, _X, top))
            px, py = place(np.array([[x * wide, -height * share]]))[0]
            brush.disk(px, py, 0.07 * size, color, flatness=0.8)
    elif marking == "zones":
        brush.fill(place(np.concatenate([crown * (0.93, 0.62), (crown * (0.93, 0.4))[::-1]])), color)
    elif marking == "rim":
        brush.fill(place(np.concatenate([crown * (1, 0.3), (crown * (1, 0.0))[::-1]])), color)
    elif marking == "eye":
        brush.fill(place(crown[4:11] * (0.9, 1.0)), color)
    elif marking == "streaks":
        for x in np.linspace(-0.85, 0.85, 8):
            height = float(np.interp(x * 0.8, _X, top))
            brush.line(place(points((x * wide * 0.35, -height * 0.95), (x * wide * 0.97, -0.02))), color, 0.036 * size)


MUSHROOM = BodyPlan(
    name="mushroom",
    supercategory="Fungi",
    kingdom="Fungi",
    phylum="Basidiomycota",
    class_name="Agaricomycetes",
    order="Pileales",
    habitat="land",
    max_turn=8,
    size=0.36,
    family_traits={"cap": tuple(_TOPS), "stem": ("slim", "stout", "bulbous")},
    species_traits={
        "ring": ("none", "skirt"),
        "cap color": ALL_PIGMENTS,
        "accent": ("ivory", "lemon", "amber", "coral", "charcoal", "violet", "azure", "chestnut"),
        "stem color": ("ivory", "sand", "rose", "slate", "lemon", "chestnut"),
        "marking": ("plain", "warts", "zones", "rim", "eye", "streaks"),
    },
    genus_endings=("myces", "boletus", "porus", "pileus", "mycena"),
    nouns=("bonnet", "cap", "bolete", "waxcap", "parasol", "funnel", "webcap", "brittlegill"),
    draw=draw,
    hidden_when={"accent": (("marking", "plain"),), "ring": (("cap", "funnel"),)},
)
