"""scikit-learn's bundled digits: 1,797 handwritten digits of 8×8 (Alpaydin & Kaynak, 1998), nothing to download."""

from pathlib import Path

import numpy as np

from igcd.data.dataset import Dataset
from igcd.data.images import ArrayImages

BRIGHTEST = 16
TEST_EVERY = 4


def load(root: Path | None = None) -> Dataset:  # noqa: ARG001 (every source takes a root; this one needs none)
    """Gray levels 0 to 16 spread over 0 to 255. Every fourth image of each digit is for testing."""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]  # slow to import, only needed here

    bunch = load_digits()
    categories = np.asarray(bunch.target, dtype=np.int64)
    gray = np.rint(bunch.images * (255 / BRIGHTEST)).astype(np.uint8)
    is_test = np.zeros(len(gray), dtype=np.bool_)
    for digit in range(10):
        is_test[np.flatnonzero(categories == digit)[TEST_EVERY - 1 :: TEST_EVERY]] = True
    ids = [f"{'test' if test else 'train'}/{number:05d}" for number, test in enumerate(is_test)]
    return Dataset("digits", ArrayImages(ids, gray), categories, tuple(str(digit) for digit in range(10)), is_test)
