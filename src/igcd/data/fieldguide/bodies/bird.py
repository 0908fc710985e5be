"""Birds, from the side."""

import math

import numpy as np

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import ALL_PIGMENTS, BRIGHT, Brush, Color, Ribbon, curve, darker, lighter, mix, points
from igcd.data.fieldguide.dice import Dice


def _tail(brush: Brush, form: str, color: Color, lift: float) -> None:
    length = {"short": 0.42, "long": 1.0, "forked": 0.8, "fan": 0.55}[form]
    spread = {"short": (0.0,), "long": (0.0, 0.05), "forked": (-0.2, 0.22), "fan": (-0.42, -0.14, 0.14, 0.42)}[form]
    for i, angle in enumerate(spread):
        direction = math.pi - 0.55 + angle + lift
        tip = (-0.5 + length * math.cos(direction), 0.22 + length * math.sin(direction))
        spine = curve((-0.38, 0.16), (-0.6, 0.26), tip, 8)
        feather = Ribbon(spine, np.linspace(0.10, 0.075, 8) * (1.3 if form == "fan" else 1))
        brush.body(feather, darker(color, 0.12 + 0.07 * i))
        brush.line(spine, darker(color, 0.5), 0.012, 0.6)


def _beak(brush: Brush, form: str, x: float, y: float, nod: float) -> None:
    color = (72, 62, 60) if form in ("hooked", "needle") else (226, 150, 60)
    if form == "stout":
        shape = points((0.1, -0.11), (0.36, 0.02), (0.1, 0.12))
    elif form == "needle":
        shape = points((0.14, -0.04), (0.74, 0.0), (0.14, 0.05))
    elif form == "hooked":
        shape = points((0.1, -0.13), (0.3, -0.1), (0.4, 0.03), (0.36, 0.16), (0.28, 0.04), (0.1, 0.1))
    else:
        shape = np.concatenate([curve((0.12, -0.08), (0.5, -0.14), (0.68, 0.2), 6), points((0.12, 0.08))])
    cos, sin = math.cos(nod), math.sin(nod)
    brush.fill(shape @ np.array([[cos, sin], [-sin, cos]]) + (x, y), color)
    brush.line(
        np.array([[0.12, 0.0], [0.3, 0.01]]) @ np.array([[cos, sin], [-sin, cos]]) + (x, y), darker(color, 0.6), 0.014
    )


def draw(brush: Brush, look: Look, dice: Dice) -> None:
    """Tail, legs, body, wing, head."""
    back, breast, accent = brush.paint(look["back"]), brush.paint(look["breast"]), brush.paint(look["accent"])
    plump = {"round": 1.2, "slim": 0.82, "upright": 0.92}[look["figure"]]
    nod = dice.around(0.0, 0.16)
    head_x, head_y = (
        0.44 + dice.around(0, 0.03),
        (-0.62 if look["figure"] == "upright" else -0.5) + dice.around(0, 0.04),
    )
    _tail(brush, look["tail"], back, dice.around(0.0, 0.14))
    leg = 0.85 if look["figure"] == "upright" else 0.68
    for x in (-0.04, 0.12):
        brush.line(points((x, 0.3), (x + 0.06, 0.5), (x + 0.01, leg)), (120, 82, 56), 0.04)
        brush.line(points((x - 0.07, leg + 0.02), (x + 0.14, leg + 0.02)), (104, 70, 50), 0.035)
    spine = curve((-0.55, 0.26), (0.12, 0.28), (head_x, head_y), 16)
    body = Ribbon(
        spine,
        plump * np.interp(np.linspace(0, 1, 16), [0, 0.15, 0.42, 0.7, 0.9, 1], [0.08, 0.24, 0.38, 0.33, 0.24, 0.2]),
    )
    brush.body(body, back)
    brush.fill(body.band(0.1, 1, 0.12, 1, n=12), breast)
    _mark_breast(brush, body, look["breast marking"], accent)
    brush.light(body, 0.9)
    _wing(brush, look["wing"], back, accent, plump, dice)
    _crest(brush, look["crest"], accent, head_x, head_y)
    brush.disk(head_x, head_y, 0.25, back)
    _mark_head(brush, look["head"], breast, accent, head_x, head_y)
    brush.disk(head_x - 0.04, head_y - 0.1, 0.12, (255, 250, 226), 0.13)
    _beak(brush, look["beak"], head_x + 0.1, head_y + 0.02, nod)
    brush.eye(head_x + 0.09, head_y - 0.05, 0.05)


def _mark_breast(brush: Brush, body: Ribbon, marking: str, color: Color) -> None:
    if marking == "spots":
        for i in range(6):
            for v in (0.38, 0.68):
                x, y = body.spot(0.24 + 0.1 * i + 0.05 * (v > 0.5), v)
                brush.disk(x, y, 0.038, darker(color, 0.15))
    elif marking == "streaks":
        for i in range(8):
            brush.line(body.at([0.2 + 0.08 * i, 0.16 + 0.08 * i], [0.3, 0.95]), darker(color, 0.15), 0.034)
    elif marking == "band":
        brush.fill(body.band(0.62, 0.74, 0.0, 1), color)
    elif marking == "bib":
        brush.fill(body.band(0.66, 1.0, -0.1, 1, n=8), color)


def _wing(brush: Brush, marking: str, color: Color, accent: Color, plump: float, dice: Dice) -> None:
    lift = dice.between(-0.05, 0.16)
    spine = curve((0.22, -0.16), (-0.2, -0.16 - lift), (-0.78, 0.24 - lift), 12)
    half_width = plump * np.interp(np.linspace(0, 1, 12), [0, 0.25, 0.6, 1], [0.06, 0.2, 0.17, 0.02])
    wing = Ribbon(spine, half_width)
    base = darker(color, 0.22)
    brush.body(wing, base, rim=0.7)
    if marking == "bars":
        for u in (0.26, 0.44):
            brush.fill(wing.band(u, u + 0.08), lighter(accent, 0.25))
    elif marking == "patch":
        brush.fill(wing.band(0.28, 0.62, -0.8, 0.75, n=7), accent)
    elif marking == "speckled":
        for i in range(5):
            for v in (-0.45, 0.3):
                x, y = wing.spot(0.16 + 0.13 * i + 0.06 * (v > 0), v)
                brush.disk(x, y, 0.034, lighter(accent, 0.2))
    elif marking == "tip":
        brush.fill(wing.band(0.6, 1.0, n=7), accent)
    for v in (-0.3, 0.2, 0.6):
        brush.line(wing.band(0.42, 0.97, v, v, n=4)[:4], darker(color, 0.6), 0.014, 0.7)
    brush.fill(wing.stripe(-1, -0.55), (255, 250, 226), 0.2)


def _crest(brush: Brush, form: str, color: Color, x: float, y: float) -> None:
    if form == "tuft":
        brush.fill(points((x - 0.16, y - 0.12), (x - 0.42, y - 0.42), (x - 0.02, y - 0.2)), color)
    elif form == "fan":
        for angle in (0.5, 0.8, 1.1, 1.4):
            tip = (x - 0.52 * math.cos(angle), y - 0.52 * math.sin(angle))
            brush.fill(
                Ribbon(
                    curve((x - 0.05, y - 0.1), (x - 0.15, y - 0.3), tip, 5), np.array([0.03, 0.05, 0.06, 0.06, 0.02])
                ).outline(),
                mix(color, (255, 255, 255), 0.25 * angle - 0.1),
            )


def _mark_head(brush: Brush, marking: str, breast: Color, accent: Color, x: float, y: float) -> None:
    if marking == "cap":
        angles = np.linspace(math.pi * 0.98, 2 * math.pi - 0.15, 12)
        brush.fill(np.stack([x + 0.25 * np.cos(angles), y - 0.03 + 0.23 * np.sin(angles)], axis=1), accent)
    elif marking == "mask":
        brush.fill(
            points((x - 0.2, y - 0.1), (x + 0.2, y - 0.13), (x + 0.23, y + 0.03), (x - 0.1, y + 0.07)),
            darker(accent, 0.55),
        )
    elif marking == "cheek":
        brush.disk(x + 0.02, y + 0.09, 0.115, accent)
    elif marking == "hood":
        brush.disk(x, y, 0.25, accent)
    brush.disk(x + 0.1, y + 0.17, 0.07, breast, 0.5)


BIRD = BodyPlan(
    name="bird",
    supercategory="Birds",
    kingdom="Animalia",
    phylum="Chordata",
    class_name="Aves",
    order="Pictorniformes",
    habitat="perch",
    max_turn=14,
    size=0.33,
    family_traits={
        "figure": ("round", "slim", "upright"),
        "beak": ("stout", "needle", "hooked", "curved"),
        "tail": ("short", "long", "forked", "fan"),
    },
    species_traits={
        "crest": ("none", "tuft", "fan"),
        "back": ALL_PIGMENTS,
        "breast": ("ivory", "sand", "lemon", "coral", "vermilion", "slate", "rose", "amber"),
        "accent": (*BRIGHT, "charcoal", "crimson"),
        "head": ("plain", "cap", "mask", "cheek", "hood"),
        "breast marking": ("plain", "spots", "streaks", "band", "bib"),
        "wing": ("plain", "bars", "patch", "speckled", "tip"),
    },
    genus_endings=("ornis", "avis", "ptila", "passer", "cissa"),
    nouns=("finch", "wren", "warbler", "piper", "thrush", "jay", "robin", "lark", "tanager", "flycatcher"),
    draw=draw,
    hidden_when={"accent": (("crest", "none"), ("head", "plain"), ("breast marking", "plain"), ("wing", "plain"))},
)
