"""Lizards, from above."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import SKIN_MARKINGS, BodyPlan, Look, mark
from igcd.data.fieldguide.brush import ALL_PIGMENTS, Brush, Color, Ribbon, darker, lighter, points
from igcd.data.fieldguide.dice import Dice

_TAILS = {
    "whip": np.interp(
        np.linspace(0, 1, 26),
        [0, 0.3, 0.42, 0.6, 0.78, 0.84, 0.9, 0.97, 1],
        [0.015, 0.06, 0.13, 0.24, 0.2, 0.12, 0.17, 0.13, 0.05],
    ),
    "stout": np.interp(
        np.linspace(0, 1, 26),
        [0, 0.12, 0.3, 0.4, 0.6, 0.78, 0.84, 0.92, 0.97, 1],
        [0.03, 0.13, 0.19, 0.14, 0.26, 0.22, 0.14, 0.21, 0.16, 0.06],
    ),
    "leaf": np.interp(
        np.linspace(0, 1, 26),
        [0, 0.14, 0.32, 0.38, 0.6, 0.78, 0.84, 0.9, 0.97, 1],
        [0.01, 0.22, 0.1, 0.1, 0.25, 0.2, 0.13, 0.19, 0.14, 0.05],
    ),
}


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """A wavy body with four legs; the head points to the right."""
    main, accent = brush.paint(look["main"]), brush.paint(look["accent"])
    t = np.linspace(0, 1, 26)
    wave, phase = dice.between(0.1, 0.24), dice.between(0, 2 * math.pi)
    curl = dice.pick((-0.5, 0.5)) * dice.share()
    spine = np.stack([-1.05 + 2.1 * t, wave * np.sin(phase + 4.6 * t) + curl * (1 - t) ** 2], axis=1)
    body = Ribbon(spine, _TAILS[look["tail"]])
    brush.fill(body.outline() + np.array([0.05, 0.07]), (14, 12, 20), 0.25)
    _legs(brush, body, main, dice)
    if look["crest"] == "frill":
        x, y = body.spot(0.84, 0)
        for i, angle in enumerate(np.linspace(0.55, 2 * math.pi - 0.55, 11)):
            nxt = angle + 0.55
            brush.fill(
                points(
                    (x, y),
                    (x + 0.4 * math.cos(angle), y + 0.4 * math.sin(angle)),
                    (x + 0.4 * math.cos(nxt), y + 0.4 * math.sin(nxt)),
                ),
                darker(accent, 0.12 * (i % 2)),
            )
    brush.body(body, main)
    mark(brush, body, look["marking"], accent, dice, 0.22, 0.84)
    if look["tail tip"] != "plain":
        for u in (0.02, 0.1, 0.18) if look["tail tip"] == "ringed" else (0.0,):
            brush.fill(body.band(u, u + (0.045 if look["tail tip"] == "ringed" else 0.24), n=6), accent)
    brush.light(body, 0.9)
    if look["crest"] == "spines":
        for u in np.linspace(0.2, 0.86, 13):
            x, y = body.spot(u, 0)
            brush.fill(points((x - 0.03, y - 0.03), (x + 0.05, y), (x - 0.03, y + 0.03)), lighter(accent, 0.35))
            brush.fill(points((x - 0.03, y), (x + 0.05, y), (x - 0.03, y + 0.03)), darker(accent, 0.4))
    for v in (-0.72, 0.72):
        x, y = body.spot(0.93, v)
        brush.eye(x, y, 0.042, ring=lighter(main, 0.4))


def _legs(brush: Brush, body: Ribbon, color: Color, dice: Dice) -> None:
    for u, forward in ((0.74, 0.22), (0.48, -0.22)):
        for side in (-1, 1):
            root = np.array(body.spot(u, side * 0.8))
            stride = forward + dice.around(0, 0.12)
            knee = root + np.array([stride * 0.8, side * 0.2])
            foot = knee + np.array([stride * 0.2 + 0.08, side * 0.18])
            brush.line(np.stack([root, knee, foot]), darker(color, 0.3), 0.1)
            brush.line(np.stack([root, knee, foot]) - (0.0, 0.015), darker(color, 0.08), 0.055)
            for toe in (-0.5, 0.0, 0.5):
                claw = foot + np.array([0.11 * math.cos(toe), side * 0.06 + 0.12 * math.sin(toe)])
                brush.line(np.stack([foot, claw]), darker(color, 0.25), 0.026)


LIZARD = BodyPlan(
    name="lizard",
    supercategory="Reptiles",
    kingdom="Animalia",
    phylum="Chordata",
    class_name="Reptilia",
    order="Rupicola",
    habitat="foliage",
    max_turn=80,
    size=0.37,
    family_traits={"tail": tuple(_TAILS), "crest": ("none", "frill", "spines")},
    species_traits={
        "main": ALL_PIGMENTS,
        "accent": ALL_PIGMENTS,
        "marking": SKIN_MARKINGS,
        "tail tip": ("plain", "ringed", "bright"),
    },
    genus_endings=("saurus", "lacerta", "gekko", "scincus", "draco"),
    nouns=("gecko", "skink", "agama", "anole", "lizard", "racerunner", "whiptail"),
    draw=draw,
    hidden_when={"accent": (("marking", "plain"), ("tail tip", "plain"), ("crest", "none"))},
)
