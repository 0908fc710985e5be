"""Photos of a workspace seen twice (`igcd.encoders.middle`)."""

import numpy as np
import torch

from igcd.encoders.encoder import Encoder
from igcd.encoders.middle import cut, half_way, side_with_middle, smaller
from igcd.types import Pixels
from igcd.workspace.feature_store import Features
from igcd.workspace.features import PhotoEncoder


def as_seen(encoder: Encoder, once: PhotoEncoder) -> PhotoEncoder:
    """What looks at photos once, or twice where the encoder's settings ask for the middle as well."""
    return WholeAndMiddle(once) if encoder.transform.sees_middle else once


class WholeAndMiddle:
    """Both looks by the same encoder. Implements `igcd.workspace.features.PhotoEncoder`."""

    def __init__(self, once: PhotoEncoder) -> None:
        self._once = once
        self.size = side_with_middle(once.size)
        self.key = f"{once.key}-middle"

    def __call__(self, pixels: Pixels) -> Features:
        """(n, size, size, 3) -> (n, d), rows of length 1."""
        looks = [self._once(view) for view in (smaller(pixels, self._once.size), cut(pixels, self._once.size))]
        return np.asarray(half_way([torch.from_numpy(look) for look in looks]).numpy(), dtype=np.float32)
