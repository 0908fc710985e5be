"""Real features enlarged to any number of rows and categories: what `neighbors.py` and `scale.py` measure on.

Round clusters are too easy for an approximate graph. So the spread inside a category is that of real rows: each made-up
row is a category's center and two residuals of real rows of one real category, blended so that their covariance stays.
Centers are drawn with the covariance of the real category means. Sizes of categories fall with a long tail.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from panel_sets import SHARED_DATA, FeatureFile, MissingDataError

from igcd.types import IntArray

WIDTH = 256
TAIL = 1.0
"""The size of category i is in proportion to (i + 10) to the power of −TAIL: 200 times from the largest to the last."""
_ROWS_AT_A_TIME = 20_000


@dataclass(frozen=True)
class RealSpread:
    """What real features say: r residuals around the means of their categories, and how the means lie."""

    residuals: npt.NDArray[np.float32]  # (r, 256), rows of one category together
    starts: IntArray  # (c + 1,) where the residuals of each category begin
    mean: npt.NDArray[np.float32]  # (256,)
    factor: npt.NDArray[np.float32]  # (256, 256) standard normal numbers times this are centers


def real_spread(folder: Path = SHARED_DATA / "panel") -> RealSpread:
    """The spread of the features in a folder of .npz files with x and y, in their first 256 principal components."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise MissingDataError(f"expected .npz files of features in {folder}, found none; set IGCD_TEST_DATA")
    sets = [FeatureFile(path).load(path.stem, data=folder, cache=folder) for path in paths]
    x = np.concatenate([each.x / np.linalg.norm(each.x, axis=1, keepdims=True) for each in sets])
    y = np.concatenate([each.y + 10_000 * number for number, each in enumerate(sets)])
    y = np.unique(y, return_inverse=True)[1]
    mean = x.mean(axis=0)
    _, _, directions = np.linalg.svd(x - mean, full_matrices=False)
    x = (x - mean) @ directions[:WIDTH].T
    order = np.argsort(y, kind="stable")
    sizes = np.bincount(y)
    means = np.stack([x[y == category].mean(axis=0) for category in range(len(sizes))])
    residuals = (x - means[y])[order] * np.sqrt(sizes / np.maximum(sizes - 1, 1))[y[order], None]
    values, vectors = np.linalg.eigh(np.cov(means.T))
    factor = vectors * np.sqrt(np.maximum(values, 0))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return RealSpread(residuals.astype(np.float32), starts, means.mean(axis=0), factor.astype(np.float32))


def sizes_with_tail(n_rows: int, n_categories: int) -> IntArray:
    """So many rows shared out among categories, the largest first, 2 at least. -> (c,)."""
    shares = (np.arange(n_categories) + 10.0) ** -TAIL
    sizes = np.maximum(2, np.floor(shares / shares.sum() * n_rows)).astype(np.int64)
    sizes[0] += n_rows - sizes.sum()
    return sizes


def write_enlarged(path: Path, n_rows: int, n_categories: int, *, spread: RealSpread, seed: int = 0) -> IntArray:
    """Writes features (n, 256) as a float16 .npy file in a random order, part by part. -> (n,) categories."""
    rng = np.random.default_rng([seed, n_categories])  # the same centers for every number of rows
    centers = spread.mean + rng.normal(size=(n_categories, WIDTH)).astype(np.float32) @ spread.factor.T
    like = rng.integers(len(spread.starts) - 1, size=n_categories)  # the real category whose spread each has
    rng = np.random.default_rng([seed, n_categories, n_rows])
    y = rng.permutation(np.repeat(np.arange(n_categories), sizes_with_tail(n_rows, n_categories)))
    x = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(n_rows, WIDTH))
    for start in range(0, n_rows, _ROWS_AT_A_TIME):
        own = y[start : start + _ROWS_AT_A_TIME]
        first, last = spread.starts[like[own]], spread.starts[like[own] + 1]
        one, other = (spread.residuals[rng.integers(first, last)] for _ in range(2))
        angle = rng.uniform(0, np.pi / 2, size=(len(own), 1)).astype(np.float32)
        x[start : start + _ROWS_AT_A_TIME] = centers[own] + np.cos(angle) * one + np.sin(angle) * other
    x.flush()
    return y
