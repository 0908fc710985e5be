"""Butterflies, from above with open wings."""

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import ALL_PIGMENTS, BRIGHT, Brush, Color, Ribbon, curve, darker, lighter, points
from igcd.data.fieldguide.dice import Dice
from igcd.types import FloatArray

_FORE_ANGLES = np.radians(np.array([8.0, 18, 28, 38, 48, 58, 68, 78]))
_FORE = {
    "rounded": np.array([0.62, 0.82, 0.95, 1.02, 1.03, 0.96, 0.78, 0.46]),
    "pointed": np.array([0.58, 0.72, 0.86, 1.02, 1.22, 1.08, 0.74, 0.4]),
    "hooked": np.array([0.74, 0.76, 0.78, 0.9, 1.22, 1.2, 0.86, 0.42]),
    "narrow": np.array([0.4, 0.7, 1.1, 1.25, 1.1, 0.75, 0.5, 0.3]),
}
_HIND_ANGLES = np.radians(np.array([2.0, -10, -22, -34, -46, -58, -70, -82]))
_HIND = {
    "rounded": np.array([0.62, 0.74, 0.82, 0.86, 0.86, 0.8, 0.68, 0.4]),
    "tailed": np.array([0.58, 0.68, 0.74, 0.76, 0.82, 1.3, 0.66, 0.4]),
    "scalloped": np.array([0.66, 0.74, 0.68, 0.84, 0.72, 0.86, 0.66, 0.44]),
}


def _wing(angles: FloatArray, radius: FloatArray, side: int, open_share: float) -> FloatArray:
    fine = np.linspace(angles[0], angles[-1], 15)
    r = np.interp(fine, angles, radius) if angles[-1] > angles[0] else np.interp(-fine, -angles, radius)
    rim = np.stack([side * open_share * r * np.cos(fine), -r * np.sin(fine)], axis=1)
    return np.concatenate([[[0.0, 0.0]], rim])


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """Hind wings, fore wings, then the body."""
    main, rim = brush.paint(look["main"]), brush.paint(look["rim"])
    opened = dice.between(0.72, 1.0)
    openings = (opened * dice.between(0.82, 1.0), opened * dice.between(0.9, 1.0))
    for side, open_share in zip((-1, 1), openings, strict=True):
        for name, angles, forms in (("hind", _HIND_ANGLES, _HIND), ("fore", _FORE_ANGLES, _FORE)):
            wing = _wing(angles, forms[look[f"{name} wing"]], side, open_share)
            root = np.array([side * 0.05, 0.04 if name == "hind" else -0.12])
            base = lighter(main, 0.0 if name == "fore" else 0.14)
            brush.fill(wing + root, darker(rim, 0.1))
            brush.fill(wing * 0.87 + root, base)
            brush.fill(wing * 0.45 + root, darker(main, 0.25), 0.6)
            _mark(brush, look["marking"], wing, root, brush.paint(look["accent"]), name)
            for i in range(2, 15, 3):
                brush.line(points(tuple(root), tuple(wing[i] * 0.93 + root)), darker(rim, 0.3), 0.016, 0.5)
            brush.fill(np.concatenate([wing[:1], wing[9:]]) * 0.8 + root, (255, 252, 236), 0.09)
            if side > 0:
                brush.fill(wing + root, (20, 14, 40), 0.12)
    body = Ribbon(
        curve((0, -0.38), (0, 0.1), (dice.around(0, 0.03), 0.52), 8),
        np.array([0.07, 0.1, 0.1, 0.075, 0.08, 0.075, 0.06, 0.02]),
    )
    fur = darker(brush.paint(look["rim"]), 0.35)
    for side in (-1, 1):
        feeler = curve((side * 0.03, -0.42), (side * 0.1, -0.62), (side * 0.3, -0.78 + dice.around(0, 0.03)), 6)
        brush.line(feeler, fur, 0.024)
        brush.disk(feeler[-1, 0], feeler[-1, 1], 0.04, fur)
    brush.body(body, fur)
    brush.disk(0, -0.42, 0.085, fur)
    brush.light(body, 1.3)


def _mark(brush: Brush, marking: str, wing: FloatArray, root: FloatArray, accent: Color, name: str) -> None:
    middle = wing[8]
    if marking == "eyespots":
        x, y = middle * 0.62 + root
        brush.disk(x, y, 0.15, accent)
        brush.disk(x, y, 0.085, (26, 22, 34))
        brush.disk(x - 0.02, y - 0.03, 0.03, (250, 250, 250))
    elif marking == "band":
        brush.fill(np.concatenate([wing[1:] * 0.7, wing[:0:-1] * 0.52]) + root, accent)
    elif marking == "tips" and name == "fore":
        brush.fill(np.concatenate([wing[7:13] * 0.88, wing[12:6:-1] * 0.62]) + root, accent)
    elif marking == "dots":
        for i in range(2, 15, 3):
            x, y = wing[i] * 0.74 + root
            brush.disk(x, y, 0.058, accent)
    elif marking == "rays":
        for i in range(1, 14, 4):
            brush.fill(np.stack([wing[0], wing[i] * 0.82, wing[i + 1] * 0.82]) + root, accent)
    elif marking == "patch":
        brush.fill(wing * 0.55 + middle * 0.2 + root, accent)
    elif marking == "checks":
        for i in range(1, 14, 2):
            for share in (0.45, 0.66) if i % 4 == 1 else (0.56, 0.78):
                x, y = (wing[i] + wing[i + 1]) / 2 * share + root
                brush.fill(points((x - 0.05, y), (x, y - 0.05), (x + 0.05, y), (x, y + 0.05)), accent)


BUTTERFLY = BodyPlan(
    name="butterfly",
    supercategory="Insects",
    kingdom="Animalia",
    phylum="Arthropoda",
    class_name="Insecta",
    order="Velaptera",
    habitat="foliage",
    max_turn=50,
    size=0.33,
    family_traits={"fore wing": tuple(_FORE), "hind wing": tuple(_HIND)},
    species_traits={
        "main": ALL_PIGMENTS,
        "accent": (*BRIGHT, "crimson", "indigo", "charcoal"),
        "rim": ("charcoal", "chestnut", "indigo", "ivory", "crimson", "amber", "slate"),
        "marking": ("plain", "eyespots", "band", "tips", "dots", "rays", "patch", "checks"),
    },
    genus_endings=("psyche", "vanessa", "lepida", "papilia", "ptera"),
    nouns=("fritillary", "admiral", "skipper", "swallowtail", "hairstreak", "emperor", "ringlet", "sulphur"),
    draw=draw,
    hidden_when={"accent": (("marking", "plain"),)},
)
