"""A brush that knows where the subject stands: shapes in the subject's own coordinates, colors from one paint box.

A subject lives in about [-1, 1] x [-1, 1], x to the right and y down. The brush turns, scales and places it.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from igcd.types import FloatArray

Color = tuple[int, int, int]
Place = tuple[float, float] | FloatArray
"""A point, x and y."""

PIGMENTS: dict[str, Color] = {
    "vermilion": (212, 74, 48),
    "crimson": (158, 36, 56),
    "rose": (226, 126, 150),
    "coral": (240, 146, 108),
    "amber": (232, 160, 44),
    "lemon": (242, 216, 92),
    "moss": (128, 146, 60),
    "emerald": (40, 132, 88),
    "teal": (30, 126, 138),
    "azure": (66, 144, 206),
    "indigo": (58, 66, 148),
    "violet": (132, 88, 170),
    "chestnut": (136, 76, 44),
    "sand": (208, 174, 122),
    "ivory": (242, 233, 212),
    "slate": (98, 112, 128),
    "charcoal": (46, 44, 54),
}

ALL_PIGMENTS = tuple(PIGMENTS)
BRIGHT = ("vermilion", "rose", "coral", "amber", "lemon", "emerald", "teal", "azure", "violet", "ivory")
FOLIAGE = ("moss", "emerald", "teal", "amber", "crimson", "chestnut")

_ANGLES = np.linspace(0, 2 * math.pi, 32, endpoint=False)
UNIT_CIRCLE: FloatArray = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)


_MIDDLING_CIRCLE, _SMALL_CIRCLE = UNIT_CIRCLE[::2], UNIT_CIRCLE[::4]


def mix(a: Color, b: Color, share_of_b: float) -> Color:
    """A color between two others.

    >>> mix((0, 0, 0), (100, 200, 50), 0.5)
    (50, 100, 25)
    """
    rest = 1 - share_of_b
    return (
        int(a[0] * rest + b[0] * share_of_b),
        int(a[1] * rest + b[1] * share_of_b),
        int(a[2] * rest + b[2] * share_of_b),
    )


def darker(color: Color, share: float) -> Color:
    """The color mixed with a bluish black, as in a shadow."""
    return mix(color, (22, 18, 38), share)


def lighter(color: Color, share: float) -> Color:
    """The color mixed with a warm white, as in the sun."""
    return mix(color, (255, 250, 232), share)


def points(*coordinates: tuple[float, float]) -> FloatArray:
    """Corners of a shape, (n, 2)."""
    return np.array(coordinates, dtype=np.float64)


def curve(start: Place, bend: Place, end: Place, n: int = 10) -> FloatArray:
    """A smooth line from start to end, pulled toward `bend`: a quadratic Bezier curve, (n, 2)."""
    w0, w1, w2 = _bezier_weights(n)
    return w0 * start + w1 * bend + w2 * end


class Ribbon:
    """A shape along a spine: `u` runs from 0 to 1 along it, `v` from -1 to 1 across it.

    Markings given in (u, v) stay inside the shape however the spine bends.
    """

    def __init__(self, spine: FloatArray, half_width: FloatArray) -> None:
        along = np.empty_like(spine)
        along[1:-1] = spine[2:] - spine[:-2]
        along[0] = spine[1] - spine[0]
        along[-1] = spine[-1] - spine[-2]
        along *= (half_width / np.hypot(along[:, 0], along[:, 1]))[:, None]
        across = along[:, ::-1] * _QUARTER_TURN
        self._spine, self._across = spine, across
        self._both = np.concatenate([spine, across], axis=1)

    def outline(self) -> FloatArray:
        """The whole shape, (2n, 2)."""
        return self.stripe(-1, 1)

    def at(self, u: FloatArray | Sequence[float], v: FloatArray | Sequence[float] | float) -> FloatArray:
        """Points inside the shape, (n,), (n,) -> (n, 2)."""
        place = np.asarray(u) * (len(self._both) - 1)
        left = np.minimum(place.astype(np.int64), len(self._both) - 2)
        share = (place - left)[:, None]
        both = self._both[left]
        both = both + share * (self._both[left + 1] - both)
        sides: FloatArray = np.asarray(v, dtype=np.float64).reshape(-1, 1)
        inside: FloatArray = both[:, :2] + sides * both[:, 2:]
        return inside

    def spot(self, u: float, v: float) -> tuple[float, float]:
        """One point inside the shape."""
        place = u * (len(self._both) - 1)
        left = min(int(place), len(self._both) - 2)
        share = place - left
        x0, y0, across_x0, across_y0 = self._both[left].tolist()
        x1, y1, across_x1, across_y1 = self._both[left + 1].tolist()
        return (
            x0 + share * (x1 - x0) + v * (across_x0 + share * (across_x1 - across_x0)),
            y0 + share * (y1 - y0) + v * (across_y0 + share * (across_y1 - across_y0)),
        )

    def band(self, u0: float, u1: float, v0: float = -1, v1: float = 1, n: int = 5) -> FloatArray:
        """The part between two places along and two across, (2n, 2)."""
        there_and_back, sides = _band_steps(n)
        return self.at(u0 + (u1 - u0) * there_and_back, v0 + (v1 - v0) * sides)

    def stripe(self, v0: float, v1: float) -> FloatArray:
        """A band along the whole shape, (2n, 2)."""
        return np.concatenate([self._spine + v0 * self._across, (self._spine + v1 * self._across)[::-1]])


_QUARTER_TURN = np.array([-1.0, 1.0])


@functools.cache
def _band_steps(n: int) -> tuple[FloatArray, FloatArray]:
    """Shares along and across for the corners of a band: there on one side, back on the other."""
    u = np.linspace(0, 1, n)
    return np.concatenate([u, u[::-1]]), np.repeat([0.0, 1.0], n)


@functools.cache
def _bezier_weights(n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    t = np.linspace(0, 1, n)[:, None]
    return (1 - t) ** 2, 2 * t * (1 - t), t**2


class Brush:
    """Draws on an RGB canvas, with translucent paint where asked."""

    def __init__(
        self,
        canvas: Image.Image,
        *,
        center: tuple[float, float],
        scale: float,
        turn: float = 0.0,
        stretch: tuple[float, float] = (1.0, 1.0),
        flip: bool = False,
        shade: tuple[float, float, float] = (1.0, 1.0, 1.0),
    ) -> None:
        """`center` and `scale` in shares of the canvas; `turn` in radians; `shade` multiplies the subject's colors."""
        size = canvas.size[0]
        cos, sin = math.cos(turn), math.sin(turn)
        x, y = stretch[0] * scale * size * (-1 if flip else 1), stretch[1] * scale * size
        self._matrix = np.array([[cos * x, sin * x], [-sin * y, cos * y]])
        self._offset = np.array([center[0] * size, center[1] * size])
        self._unit = scale * size
        self._opaque = ImageDraw.Draw(canvas)  # much faster than blending
        self._translucent = ImageDraw.Draw(canvas, "RGBA")
        self._shade = shade

    def paint(self, pigment: str) -> Color:
        """A color of the paint box, as this individual wears it."""
        r, g, b = PIGMENTS[pigment]
        return (
            min(255, int(r * self._shade[0])),
            min(255, int(g * self._shade[1])),
            min(255, int(b * self._shade[2])),
        )

    def _pen(self, alpha: float) -> ImageDraw.ImageDraw:
        return self._opaque if alpha == 1 else self._translucent

    def fill(self, shape: FloatArray, color: Color, alpha: float = 1.0) -> None:
        """A filled polygon, (n, 2)."""
        placed: list[float] = (shape @ self._matrix + self._offset).ravel().tolist()
        self._pen(alpha).polygon(placed, fill=(*color, int(255 * alpha)))

    def line(self, shape: FloatArray, color: Color, width: float, alpha: float = 1.0) -> None:
        """An open line, (n, 2), `width` in the subject's units."""
        placed: list[float] = (shape @ self._matrix + self._offset).ravel().tolist()
        self._pen(alpha).line(placed, fill=(*color, int(255 * alpha)), width=max(1, round(width * self._unit)))

    def disk(self, x: float, y: float, radius: float, color: Color, alpha: float = 1.0, flatness: float = 1.0) -> None:
        """A filled ellipse; `flatness` is its height in widths."""
        circle = UNIT_CIRCLE if radius > 0.2 else _MIDDLING_CIRCLE if radius > 0.05 else _SMALL_CIRCLE
        self.fill(circle * (radius, radius * flatness) + (x, y), color, alpha)

    def body(self, ribbon: Ribbon, color: Color, *, rim: float = 0.35) -> None:
        """A rounded body: filled, with a thin dark rim. Markings go on it before `light`."""
        outline = ribbon.outline()
        self.fill(outline, color)
        self.line(np.concatenate([outline, outline[:1]]), darker(color, 0.75), 0.018, rim)

    def light(self, ribbon: Ribbon, strength: float = 1.0) -> None:
        """Sun from above and shadow below along a body, over its markings."""
        shadow, sun = (24, 18, 44), (255, 250, 226)
        self.fill(ribbon.stripe(0.25, 1), shadow, 0.13 * strength)
        self.fill(ribbon.stripe(0.5, 1), shadow, 0.14 * strength)
        self.fill(ribbon.stripe(0.76, 1), shadow, 0.16 * strength)
        self.fill(ribbon.stripe(-0.8, -0.2), sun, 0.10 * strength)
        self.fill(ribbon.stripe(-0.66, -0.36), sun, 0.16 * strength)

    def eye(self, x: float, y: float, radius: float, ring: Color = (240, 226, 190)) -> None:
        """An eye with a ring and a glint."""
        self.disk(x, y, radius * 1.35, ring)
        self.disk(x, y, radius, (20, 16, 20))
        self.disk(x + radius * 0.3, y - radius * 0.35, radius * 0.36, (255, 255, 255))
