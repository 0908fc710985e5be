"""Snails, from the side."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import ALL_PIGMENTS, UNIT_CIRCLE, Brush, Color, Ribbon, curve, darker, points
from igcd.data.fieldguide.dice import Dice
from igcd.types import FloatArray


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """Foot, feelers, shell."""
    skin = brush.paint(look["skin"])
    stretch = dice.between(0.85, 1.08)
    rise = dice.between(0.0, 0.16)
    spine = np.concatenate(
        [
            curve((-0.98 * stretch, 0.62), (0.1, 0.5), (0.55, 0.46), 10),
            curve((0.6, 0.44), (0.85, 0.4), (0.92 * stretch, 0.12 - rise), 6),
        ]
    )
    foot = Ribbon(spine, np.interp(np.linspace(0, 1, 16), [0, 0.3, 0.6, 0.85, 1], [0.01, 0.12, 0.17, 0.14, 0.11]))
    head_x, head_y = float(spine[-1, 0]), float(spine[-1, 1])
    for reach, lean in ((0.4, 0.1), (0.36, 0.26)):
        tip = (head_x + lean + dice.around(0, 0.05), head_y - reach)
        brush.line(points((head_x, head_y), tip), skin, 0.05)
        brush.disk(tip[0], tip[1], 0.05, darker(skin, 0.7))
    brush.line(points((head_x, head_y + 0.06), (head_x + 0.2, head_y + 0.12)), skin, 0.04)
    brush.body(foot, skin)
    brush.disk(head_x, head_y, 0.115, skin)
    for i in range(9):
        x, y = foot.spot(0.2 + 0.08 * i, 0.3 * (-1) ** i)
        brush.disk(x, y, 0.02, darker(skin, 0.4), 0.6)
    brush.light(foot)
    {"coiled": _coiled, "spire": _spire, "turban": _turban}[look["shell"]](brush, look, dice)


def _whorl_marks(brush: Brush, marking: str, whorl: Ribbon, color: Color) -> None:
    if marking == "bands":
        brush.fill(whorl.stripe(-0.55, -0.2), color)
        brush.fill(whorl.stripe(0.15, 0.45), color)
    elif marking == "flames":
        for u in np.linspace(0.06, 0.94, 9):
            brush.fill(whorl.at([u - 0.03, u + 0.035, u + 0.05], [-1, -1, 0.8]), color)
    elif marking == "dots":
        for u in np.linspace(0.06, 0.94, 10):
            x, y = whorl.spot(u, 0.3 if int(u * 20) % 2 else -0.35)
            brush.disk(x, y, 0.046, color)
    elif marking == "keel":
        brush.fill(whorl.stripe(-1, -0.6), color)
    elif marking == "lip":
        brush.fill(whorl.band(0.0, 0.16), color)


def _coiled(brush: Brush, look: Look, dice: Dice) -> None:
    main, accent = brush.paint(look["shell color"]), brush.paint(look["accent"])
    x0, y0, size = -0.12, -0.08, dice.between(0.97, 1.05)
    brush.fill(UNIT_CIRCLE * 0.6 * size + (x0, y0), darker(main, 0.35))
    turns = np.linspace(0.35, 0.35 + 4.4 * math.pi, 44)
    share = 1 - (turns - 0.35) / (4.4 * math.pi)
    radius = 0.5 * size * share**0.9 + 0.02
    spine = np.stack([x0 + radius * np.cos(turns), y0 - radius * np.sin(turns) * -1], axis=1)
    whorl = Ribbon(spine[::-1].copy(), (0.17 * size * share**0.8 + 0.025)[::-1].copy())
    outer = Ribbon(spine, 0.17 * size * share**0.8 + 0.025)
    brush.fill(whorl.outline(), main)
    _whorl_marks(brush, look["marking"], outer, accent)
    brush.line(spine + (spine - (x0, y0)) * -0.32, darker(main, 0.65), 0.03, 0.8)
    brush.fill(UNIT_CIRCLE * (0.5 * size, 0.36 * size) + (x0 + 0.04, y0 + 0.28), (20, 12, 40), 0.18)
    for share_of_light, alpha in ((0.3, 0.14), (0.17, 0.22)):
        brush.disk(x0 - 0.16, y0 - 0.26, share_of_light, (255, 252, 236), alpha)


def _tower(brush: Brush, look: Look, widths: FloatArray, heights: FloatArray, tilt: float) -> None:
    main, accent = brush.paint(look["shell color"]), brush.paint(look["accent"])
    cos, sin = math.cos(tilt), math.sin(tilt)
    rotate = np.array([[cos, sin], [-sin, cos]])
    depths = np.linspace(0.15, 0.12 + 0.4 / len(widths), len(widths))
    for width, height, depth in zip(widths, heights, depths, strict=True):
        x = np.linspace(-width, width, 9)
        spine = np.stack([x, height + 0.05 * (1 - (x / width) ** 2)], axis=1) @ rotate + (-0.1, 0.1)
        whorl = Ribbon(spine, depth * np.sqrt(1.01 - np.linspace(-1, 1, 9) ** 2))
        brush.body(whorl, main, rim=0.7)
        _whorl_marks(brush, look["marking"], whorl, accent)
        brush.fill(whorl.band(0.66, 1.0, -0.9, 0.9), (20, 12, 40), 0.24)
        brush.fill(whorl.band(0.14, 0.36, -0.8, 0.5), (255, 252, 236), 0.3)


def _spire(brush: Brush, look: Look, dice: Dice) -> None:
    _tower(
        brush,
        look,
        np.array([0.11, 0.2, 0.3, 0.4, 0.48]),
        np.array([-0.92, -0.7, -0.44, -0.15, 0.16]),
        -0.55 + dice.around(0, 0.08),
    )


def _turban(brush: Brush, look: Look, dice: Dice) -> None:
    _tower(brush, look, np.array([0.16, 0.4, 0.6]), np.array([-0.56, -0.36, -0.02]), -0.25 + dice.around(0, 0.08))


SNAIL = BodyPlan(
    name="snail",
    supercategory="Mollusks",
    kingdom="Animalia",
    phylum="Mollusca",
    class_name="Gastropoda",
    order="Spiralida",
    habitat="land",
    max_turn=14,
    size=0.34,
    family_traits={"shell": ("coiled", "spire", "turban")},
    species_traits={
        "shell color": ALL_PIGMENTS,
        "accent": ALL_PIGMENTS,
        "skin": ("sand", "slate", "charcoal", "chestnut", "ivory", "rose", "moss"),
        "marking": ("plain", "bands", "flames", "dots", "keel", "lip"),
    },
    genus_endings=("helix", "cochlea", "concha", "limax", "turbo"),
    nouns=("snail", "whorl", "turret", "glasssnail", "ramshorn", "topshell"),
    draw=draw,
    hidden_when={"accent": (("marking", "plain"),)},
)
