"""Jellyfish, from the side, translucent."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import BRIGHT, Brush, Color, Ribbon, darker, lighter
from igcd.data.fieldguide.dice import Dice
from igcd.types import FloatArray

_X = np.linspace(-1, 1, 17)
_BELLS = {
    "dome": (0.66, 0.62 * np.sqrt(1 - 0.999 * _X**2)),
    "saucer": (0.82, 0.36 * np.sqrt(1 - 0.999 * _X**2)),
    "tall": (0.5, 0.86 * (1 - 0.999 * _X**4) ** 0.6),
    "acorn": (0.56, 0.6 * np.sqrt(1 - 0.999 * _X**2) + 0.26 * np.exp(-((_X / 0.22) ** 2))),
}


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """Threads behind, arms, bell with markings and a glow."""
    main, accent = brush.paint(look["main"]), brush.paint(look["accent"])
    pulse = dice.between(0.88, 1.1)
    wide, height = _BELLS[look["bell"]][0] * pulse, _BELLS[look["bell"]][1] / pulse
    sway, phase = dice.around(0, 0.3), dice.between(0, 6.28)
    _threads(brush, look["threads"], wide, lighter(main, 0.3), sway, phase)
    _arms(brush, look["arms"], wide, accent, sway, phase)
    crown = np.stack([_X * wide, -height - 0.05], axis=1)
    hem = np.stack([_X * wide, 0.03 - 0.06 * np.cos(_X * 5 * np.pi) - 0.05 * _X**2], axis=1)
    bell = np.concatenate([crown, hem[::-1]])
    for grow, alpha in ((1.22, 0.08), (1.1, 0.12)):
        brush.fill(bell * grow, lighter(main, 0.5), alpha)
    brush.fill(bell, main, 0.8)
    _mark(brush, look["marking"], crown, hem, wide, height, accent)
    brush.fill(np.concatenate([crown * (0.84, 0.9), (hem * (0.84, 1))[::-1]]), lighter(main, 0.6), 0.12)
    brush.fill(np.concatenate([crown[2:8] * 0.92, (crown[2:8] * (0.72, 0.7))[::-1]]), (255, 255, 255), 0.35)
    brush.fill(np.concatenate([crown[10:], (crown[10:] * (0.8, 0.8))[::-1]]), (14, 14, 60), 0.2)
    brush.line(hem, lighter(main, 0.6), 0.035, 0.9)


def _threads(brush: Brush, form: str, wide: float, color: Color, sway: float, phase: float) -> None:
    if form == "none":
        return
    n, length = (9, 0.55) if form == "fringe" else (6, 1.3)
    t = np.linspace(0, 1, 10)
    for i in range(n):
        x0 = wide * (-0.9 + 1.8 * i / (n - 1))
        x = x0 * (1 - 0.25 * t) + sway * t**2 + 0.07 * np.sin(phase + i + 7 * t) * t
        brush.line(np.stack([x, t * length], axis=1), color, 0.022, 0.75)


def _arms(brush: Brush, form: str, wide: float, color: Color, sway: float, phase: float) -> None:
    n, length, width = {"frilled": (3, 1.0, 0.12), "ribbons": (4, 1.15, 0.06), "clubs": (4, 0.55, 0.1)}[form]
    t = np.linspace(0, 1, 14)
    for i in range(n):
        x0 = wide * 0.5 * (-1 + 2 * i / (n - 1))
        x = x0 * (1 - 0.3 * t) + sway * t**2 + 0.08 * np.sin(phase + 1.7 * i + 6 * t) * t
        taper = {
            "frilled": (1 - 0.75 * t) * (1 + 0.35 * np.cos(t * 40 + i)),
            "ribbons": 1 - 0.8 * t,
            "clubs": 0.4 + 0.7 * t**2,
        }[form]
        arm = Ribbon(np.stack([x, t * length], axis=1), width * taper)
        brush.fill(arm.outline(), color, 0.72)
        brush.fill(arm.stripe(-0.7, 0.0), (255, 255, 255), 0.2)


def _mark(
    brush: Brush, marking: str, crown: FloatArray, hem: FloatArray, wide: float, height: FloatArray, color: Color
) -> None:
    if marking == "rays":
        for i in range(1, 16, 3):
            brush.fill(np.stack([[0.0, -float(height.max()) * 0.85], hem[i], hem[i + 1]]), color, 0.85)
    elif marking == "hem":
        brush.fill(np.concatenate([crown * (1, 0.32), hem[::-1]]), color, 0.8)
    elif marking == "clover":
        for x in (-0.42, -0.14, 0.14, 0.42):
            brush.disk(x * wide, -float(height.max()) * 0.5, 0.11, color, 0.9)
            brush.disk(x * wide, -float(height.max()) * 0.46, 0.055, darker(color, 0.3), 0.7)
    elif marking == "freckles":
        for i in range(14):
            x = 0.8 * math.sin(i * 2.4) * math.sqrt((i + 1) / 15)
            y = float(np.interp(x, _X, height)) * (0.12 + 0.75 * ((i * 0.618) % 1))
            brush.disk(x * wide, -y - 0.03, 0.045, color, 0.9)
    elif marking == "cap":
        brush.fill(crown[4:13] * (1.0, 0.98), color, 0.85)


JELLYFISH = BodyPlan(
    name="jellyfish",
    supercategory="Animalia",
    kingdom="Animalia",
    phylum="Cnidaria",
    class_name="Scyphozoa",
    order="Lucernida",
    habitat="water",
    max_turn=28,
    size=0.31,
    family_traits={"bell": tuple(_BELLS), "arms": ("frilled", "ribbons", "clubs")},
    species_traits={
        "main": (*BRIGHT, "slate", "indigo", "crimson"),
        "accent": (*BRIGHT, "crimson", "chestnut"),
        "threads": ("none", "fringe", "long"),
        "marking": ("plain", "rays", "hem", "clover", "freckles", "cap"),
    },
    genus_endings=("medusa", "nema", "aurelia", "pelagia", "lucerna"),
    nouns=("jelly", "lantern", "medusa", "parasol jelly", "nettle"),
    draw=draw,
)
