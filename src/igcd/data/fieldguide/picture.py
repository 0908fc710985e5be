"""One sighting as a picture: landscape, subject, what stands in the way, light, lens."""

import functools
import math

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from igcd.data.fieldguide.bodies.plan import BodyPlan, Look
from igcd.data.fieldguide.brush import Brush, darker, lighter, points
from igcd.data.fieldguide.dice import Dice
from igcd.data.fieldguide.landscape import LANDSCAPES, background, foreground
from igcd.types import Pixels

SUPERSAMPLING = 2
"""The subject is drawn this many times larger than the picture and reduced: smooth edges."""


def picture(plan: BodyPlan, look: Look, continent: str, hour: int, seed: str, size: int) -> Pixels:
    """The individual that `seed` stands for, (size, size, 3). Every size shows the same scene."""
    dice = Dice(seed)
    scene = background(continent, plan.habitat, dice).resize((size, size), Image.Resampling.BICUBIC)
    canvas = scene.resize((size * SUPERSAMPLING, size * SUPERSAMPLING), Image.Resampling.NEAREST)
    x, y = dice.around(0.5, 0.07), dice.around(0.5, 0.06)
    scale = plan.size * dice.log_between(0.68, 1.2)
    light = dice.around(1.0, 0.07)
    brush = Brush(
        canvas,
        center=(x, y),
        scale=scale,
        turn=math.radians(dice.around(0, plan.max_turn / 2)),
        stretch=(dice.between(0.84, 1.04), dice.between(0.9, 1.04)),
        flip=dice.chance(0.5),
        shade=(light * dice.around(1, 0.035), light * dice.around(1, 0.035), light * dice.around(1, 0.035)),
    )
    _ground(brush, continent, plan, dice)
    plan.draw(brush, look, dice)
    if dice.chance(0.45):
        _blades(canvas, continent, plan.habitat, dice)
    reduced = canvas.reduce(SUPERSAMPLING)
    if dice.chance(0.35):
        near = foreground(continent, plan.habitat, dice).resize((size, size), Image.Resampling.BICUBIC)
        reduced.paste(near, mask=near.getchannel("A"))
    if dice.chance(0.2):
        reduced = reduced.filter(ImageFilter.BoxBlur(dice.between(0.3, 0.9) * size / 96))
    return _develop(reduced, plan.habitat, hour, dice)


def _ground(brush: Brush, continent: str, plan: BodyPlan, dice: Dice) -> None:
    """What the subject sits on, and its shadow."""
    land = LANDSCAPES[continent]
    if plan.name == "bird":
        bark = darker(land.soil, dice.between(0.1, 0.4))
        sag = dice.around(0, 0.12)
        branch = points((-3, 0.86 - sag), (-1, 0.78), (0.1, 0.76), (1.2, 0.8), (3, 0.74 + sag))
        brush.line(branch, bark, 0.17)
        brush.line(branch - (0, 0.04), lighter(bark, 0.3), 0.05, 0.8)
        for side in (-1, 1):
            if dice.chance(0.6):
                x, leaf = side * dice.between(0.5, 1.3), dice.pick(land.leaves)
                brush.fill(
                    points((x, 0.78), (x + side * 0.14, 1.0), (x + side * 0.42, 1.12), (x + side * 0.26, 0.9)), leaf
                )
    elif plan.habitat == "land" and plan.name != "flower":
        shadow = darker(land.ground, 0.7)
        for share in (1.15, 0.9, 0.6):
            brush.disk(0.08, 0.84 if plan.name == "mushroom" else 0.64, share, shadow, 0.22, 0.16)


def _blades(canvas: Image.Image, continent: str, habitat: str, dice: Dice) -> None:
    """Blades of grass, twigs or weed in focus, in front of the subject."""
    land = LANDSCAPES[continent]
    brush = Brush(canvas, center=(0.0, 0.0), scale=1.0)
    for _ in range(dice.whole(2, 6)):
        leaf = dice.pick(land.leaves)
        leaf = darker(leaf, 0.3 * dice.share()) if dice.chance(0.5) else lighter(leaf, 0.3 * dice.share())
        x, lean, height = dice.between(-0.1, 1.1), dice.around(0, 0.22), dice.between(0.25, 0.62)
        if habitat in ("foliage", "perch") and dice.chance(0.5):
            x, lean = dice.pick((-0.05, 1.05)), 0.0
            lean = math.copysign(dice.between(0.3, 0.7), 0.5 - x)
            height = dice.between(-0.1, 0.8)
        width = dice.between(0.008, 0.018)
        blade = points(
            (x - width, 1.05), (x + lean * 0.35 - width, 1 - height * 0.6), (x + lean, 1 - height),
            (x + lean * 0.35 + width, 1 - height * 0.6), (x + width, 1.05),
        )  # fmt: skip
        brush.fill(blade, leaf)
        brush.line(blade[:3], lighter(leaf, 0.35), 0.004, 0.7)


@functools.lru_cache(maxsize=8)
def _lens(size: int) -> npt.NDArray[np.float32]:
    """How much light reaches each place: less toward the corners, (size, 3 size)."""
    place = (np.arange(size, dtype=np.float32) + 0.5) / size - 0.5
    return np.repeat(1.06 - 0.55 * (place[:, None] ** 2 + place**2), 3, axis=1).astype(np.float32)


@functools.lru_cache(maxsize=8)
def _grain(size: int) -> npt.NDArray[np.float32]:
    """The grain of a film, (2 size, 6 size): noise of standard deviation 1 from a formula, the same everywhere."""
    bits = np.arange(4 * size * size, dtype=np.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):  # neighbors in the count become strangers
        bits ^= bits >> np.uint32(shift)
        bits *= np.uint32(factor)
    noise = ((bits / 2**32 - 0.5) * math.sqrt(12)).astype(np.float32)
    return np.repeat(noise.reshape(2 * size, 2 * size), 3, axis=1)


def _light_of_day(hour: int, dice: Dice) -> tuple[float, float, float]:
    """Gain of red, green and blue: golden toward morning and evening, now and then gray weather."""
    low_sun = min(1.0, abs(hour - 13) / 6) ** 2
    gray = dice.chance(0.22)
    strength = dice.around(0.92 if gray else 1.08, 0.1)
    warmth = -0.05 if gray else 0.13 * low_sun
    return strength * (1 + warmth), strength * (1 + 0.1 * warmth), strength * (1 - 1.1 * warmth)


def _develop(image: Image.Image, habitat: str, hour: int, dice: Dice) -> Pixels:
    """Light of the hour, haze, falloff of the lens, grain."""
    size = image.size[0]
    haze = dice.between(0.0, 0.18) if habitat == "water" else dice.between(0, 0.12)
    light = np.array(_light_of_day(hour, dice), dtype=np.float32)
    row, column, coarseness = dice.whole(0, size - 1), dice.whole(0, size - 1), dice.between(0.5, 2.5)
    # Rows of 3 x size numbers instead of a third axis of length 3: three times as fast.
    exposed = np.asarray(image, dtype=np.float32).reshape(size, 3 * size)
    exposed = exposed * _lens(size)
    veil = exposed[: max(1, size // 8)].reshape(-1, 3).mean(axis=0)
    exposed *= np.tile((1 - haze) * light, size)
    exposed += np.tile(haze * light * veil, size)
    exposed += np.float32(coarseness) * _grain(size)[row : row + size, 3 * column : 3 * (column + size)]
    np.clip(exposed, 0, 255, out=exposed)
    return exposed.astype(np.uint8).reshape(size, size, 3)
