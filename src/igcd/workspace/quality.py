"""How a photo looks as such: dark, or blurred. Measured on the pixels that are embedded anyway."""

from dataclasses import dataclass

import numpy as np

from igcd.types import Pixels

LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)


@dataclass(frozen=True)
class Quality:
    """Two figures that only compare photos of one size."""

    brightness: float  # mean, from 0 (black) to 1
    sharpness: float  # variance of the Laplacian of the brightness


def quality_of(pixels: Pixels) -> Quality:
    """The figures of an image. (h, w, 3).

    >>> quality_of(np.zeros((8, 8, 3), np.uint8))
    Quality(brightness=0.0, sharpness=0.0)
    """
    gray = pixels.astype(np.float32) @ LUMA / 255
    inner = gray[1:-1, 1:-1]
    laplacian = 4 * inner - gray[:-2, 1:-1] - gray[2:, 1:-1] - gray[1:-1, :-2] - gray[1:-1, 2:]
    return Quality(float(gray.mean()), float(laplacian.var()) if laplacian.size else 0.0)
