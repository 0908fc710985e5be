"""A photo seen twice: as a whole, and its middle enlarged.

Who takes a photo mostly points at what it is of, so the middle shows it larger. The feature points half-way between
those of both looks: what they agree on counts, and what only one of them sees counts for less.
"""

import numpy as np
import torch
from torch.nn.functional import interpolate, normalize

from igcd.encoders.encoder import Encoder
from igcd.types import Pixels
from igcd.workspace.feature_store import Features
from igcd.workspace.features import PhotoEncoder

SHARE = 0.75
"""Of each side of the photo that the middle has."""


def as_seen(encoder: Encoder, once: PhotoEncoder) -> PhotoEncoder:
    """What looks at photos once, or twice where the encoder's settings ask for the middle as well."""
    return WholeAndMiddle(once) if encoder.sees_middle else once


class WholeAndMiddle:
    """Both looks by the same encoder. Implements `igcd.workspace.features.PhotoEncoder`."""

    def __init__(self, once: PhotoEncoder) -> None:
        self._once = once
        self.size = round(once.size / SHARE)  # the middle needs no enlarging then, and the whole is made smaller
        self.key = f"{once.key}-middle"

    def __call__(self, pixels: Pixels) -> Features:
        """(n, size, size, 3) -> (n, d), rows of length 1."""
        whole, middle = (self._once(view) for view in (smaller(pixels, self._once.size), cut(pixels, self._once.size)))
        return np.asarray(normalize(torch.from_numpy(whole + middle), dim=1).numpy(), dtype=np.float32)


def smaller(pixels: Pixels, size: int) -> Pixels:
    """All of each image. (n, s, s, 3) -> (n, size, size, 3).

    >>> smaller(np.array([0, 100, 100, 0], dtype=np.uint8).reshape(1, 2, 2, 1), 1).tolist()
    [[[[50]]]]
    """
    channels_first = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    shrunk = interpolate(channels_first, size=(size, size), mode="bilinear", antialias=True)
    return np.ascontiguousarray(shrunk.permute(0, 2, 3, 1).numpy())


def cut(pixels: Pixels, size: int) -> Pixels:
    """The middle of each image. (n, s, s, 3) -> (n, size, size, 3).

    >>> cut(np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1), 2)[..., 0].tolist()
    [[[5, 6], [9, 10]]]
    """
    margin = (pixels.shape[1] - size) // 2
    return np.ascontiguousarray(pixels[:, margin : margin + size, margin : margin + size])
