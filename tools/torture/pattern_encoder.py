"""An encoder that sees 4 × 4 colors: enough to tell painted categories apart, and fast."""

import numpy as np
import numpy.typing as npt


class PatternEncoder:
    """Implements `igcd.workspace.features.PhotoEncoder` without a network."""

    key = "pattern"
    size = 16

    def __call__(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """(n, 16, 16, 3) -> (n, 48), rows of length 1."""
        cells = pixels.reshape(len(pixels), 4, 4, 4, 4, 3).astype(np.float32).mean(axis=(2, 4)) - 127.5
        features = cells.reshape(len(pixels), -1)
        return np.asarray(features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-6), np.float32)
