"""Turtles, from above."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import (
    ALL_PIGMENTS,
    BRIGHT,
    UNIT_CIRCLE,
    Brush,
    Color,
    Ribbon,
    curve,
    darker,
    lighter,
    points,
)
from igcd.data.fieldguide.dice import Dice
from igcd.types import FloatArray

_SCUTES = [(x, 0.0, 0.21, 6) for x in (-0.46, -0.15, 0.16, 0.46)] + [
    (x, side * 0.4, 0.2, 6) for x in (-0.34, 0.0, 0.34) for side in (-1, 1)
]  # center x, center y, radius, corners: in shares of the shell


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """Limbs and head, then the shell with its scutes; the head points to the right."""
    shell, accent, skin = brush.paint(look["shell color"]), brush.paint(look["accent"]), brush.paint(look["skin"])
    long, wide = {"oval": (0.74, 0.58), "round": (0.68, 0.66), "long": (0.84, 0.48)}[look["shell"]]
    brush.fill(UNIT_CIRCLE * (long, wide) + (0.05, 0.09), (14, 12, 20), 0.25)
    _limbs(brush, look["limbs"], skin, accent, dice)
    outline = UNIT_CIRCLE * (long, wide)
    if look["rim"] == "serrated":
        outline = outline * (1 + 0.07 * (-1) ** (np.arange(32) // 2))[:, None]
    elif look["rim"] == "flared":
        outline = outline * np.where(UNIT_CIRCLE[:, 0] < -0.2, 1.12, 1.0)[:, None]
    brush.fill(outline, darker(shell, 0.35))
    if look["rim"] == "bright":
        brush.fill(outline, accent)
    brush.fill(UNIT_CIRCLE * (long * 0.9, wide * 0.88), darker(shell, 0.5))
    for x, y, radius, corners in _SCUTES:
        angles = np.linspace(0, 2 * math.pi, corners, endpoint=False) + 0.52
        scute = np.stack([np.cos(angles), np.sin(angles)], axis=1) * (radius * long * 1.05, radius * wide * 1.25)
        place = np.array([x * long * 1.12, y * wide * 1.16])
        brush.fill(scute * 0.94 + place, shell)
        _mark(brush, look["marking"], scute, place, accent)
    for share, alpha in ((0.7, 0.08), (0.45, 0.12), (0.22, 0.14)):
        brush.fill(UNIT_CIRCLE * (long * share, wide * share) + (-0.06, -0.14), (255, 252, 232), alpha)
    angles = np.linspace(0.2, 2.6, 12)
    rim = np.stack([long * np.cos(angles), wide * np.sin(angles)], axis=1)
    brush.fill(np.concatenate([rim, (rim * (0.8, 0.72))[::-1]]), (18, 12, 36), 0.28)


def _mark(brush: Brush, marking: str, scute: FloatArray, place: FloatArray, color: Color) -> None:
    if marking == "rings":
        brush.fill(scute * 0.66 + place, color)
        brush.fill(scute * 0.36 + place, darker(color, 0.55))
    elif marking == "rays":
        for i in range(0, 6, 2):
            brush.fill(np.stack([scute[i] * 0.0, scute[i] * 0.9, scute[(i + 1) % 6] * 0.9]) + place, color)
    elif marking == "hearts":
        brush.fill(scute * 0.45 + place, color)
    elif marking == "crosses":
        for i in range(3):
            brush.line(np.stack([scute[i], scute[i + 3]]) * 0.8 + place, color, 0.045)
    elif marking == "seams":
        brush.line(np.concatenate([scute, scute[:1]]) * 0.92 + place, color, 0.045)


def _limbs(brush: Brush, form: str, skin: Color, accent: Color, dice: Dice) -> None:
    turned = dice.around(0, 0.14)
    neck = Ribbon(
        curve((0.45, 0), (0.8, 0), (1.02, turned), 8), np.array([0.12, 0.12, 0.11, 0.11, 0.14, 0.16, 0.14, 0.05])
    )
    reach = 0.5 if form == "flippers" else 0.34
    for x, side, lean in ((0.42, -1, 0.5), (0.42, 1, 0.5), (-0.45, -1, -0.5), (-0.45, 1, -0.5)):
        shrink = 1.0 if x > 0 else 0.7
        swing = dice.around(0, 0.12)
        tip = (x + (lean * 0.7 if form == "feet" else -0.1 + lean * 0.5) * 0.8 + swing, side * (0.42 + reach * shrink))
        limb = Ribbon(
            curve((x, side * 0.34), (x + lean * 0.5, side * (0.4 + reach * 0.5)), tip, 8),
            0.13 * np.array([0.9, 1, 1, 1, 0.95, 0.8, 0.55, 0.1 if form == "flippers" else 0.5]),
        )
        brush.body(limb, skin)
        for u in (0.45, 0.6, 0.75):
            px, py = limb.spot(u, 0.1)
            brush.disk(px, py, 0.034, accent, 0.8)
        brush.light(limb, 0.8)
    brush.fill(points((-0.66, -0.06), (-0.92, dice.around(0, 0.06)), (-0.66, 0.06)), skin)
    brush.body(neck, skin)
    for v in (-0.5, 0.5):
        brush.fill(neck.band(0.3, 0.85, v - 0.16, v + 0.16), accent, 0.85)
    brush.light(neck, 0.8)
    for v in (-0.75, 0.75):
        x, y = neck.spot(0.78, v)
        brush.eye(x, y, 0.036, ring=lighter(skin, 0.3))


TURTLE = BodyPlan(
    name="turtle",
    supercategory="Reptiles",
    kingdom="Animalia",
    phylum="Chordata",
    class_name="Reptilia",
    order="Clipeata",
    habitat="water",
    max_turn=70,
    size=0.33,
    family_traits={"shell": ("oval", "round", "long"), "limbs": ("flippers", "feet")},
    species_traits={
        "rim": ("smooth", "serrated", "flared", "bright"),
        "shell color": ALL_PIGMENTS,
        "accent": (*BRIGHT, "crimson", "charcoal"),
        "skin": ("moss", "sand", "slate", "teal", "chestnut", "charcoal", "coral"),
        "marking": ("plain", "rings", "rays", "hearts", "crosses", "seams"),
    },
    genus_endings=("chelys", "testudo", "emys", "clemmys", "chelonia"),
    nouns=("slider", "cooter", "terrapin", "turtle", "tortoise"),
    draw=draw,
)
