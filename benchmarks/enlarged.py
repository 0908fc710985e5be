"""Real features enlarged to any number of rows and categories: what `neighbors.py` and `scale.py` measure on.

    python benchmarks/enlarged.py    # how hard the rows are: k-nearest-neighbor accuracy of real and of made-up ones

Round clusters are too easy for an approximate graph. So the spread inside a category is that of real rows: each made-up
row is a category's center, a blend of residuals of one real category, and noise with the covariance of all residuals;
together they have the covariance of real residuals. Centers are drawn with the covariance of the real category means,
brought together until neighbors agree as often as among real features. Sizes of categories fall with a long tail.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from panel_sets import SHARED_DATA, FeatureFile, FeatureSet, MissingDataError

from igcd.functional.neighbors import nearest_neighbors
from igcd.types import IntArray

WIDTH = 256
TAIL = 1.0
"""The size of category i is in proportion to (i + 10) to the power of −TAIL: 200 times from the largest to the last."""
SEPARATION = 0.8
"""Centers are brought so much closer together. At 1, made-up categories are easier to tell apart than real ones, which
come in families. At 0.6, 10 neighbors name the category of 67% of 100,000 rows of 2,000 categories, as they do of 64
and 69% of real rows of 60 categories; but what they get wrong is spread over far more categories, and discovery finds
little. At 0.8 they name 81%."""
OWN_SHARE = 0.5
"""Share of the variance inside a category that has the directions of one real category; the rest is that of all."""
N_BLENDED = 8
"""Residuals of one real category in each row: two would make arcs between them, and rows that are nearly copies."""
_ROWS_AT_A_TIME = 20_000


@dataclass(frozen=True)
class RealSpread:
    """What real features say: r residuals around the means of their categories, and how the means lie."""

    residuals: npt.NDArray[np.float32]  # (r, 256), rows of one category together
    starts: IntArray  # (c + 1,) where the residuals of each category begin
    mean: npt.NDArray[np.float32]  # (256,)
    factor: npt.NDArray[np.float32]  # (256, 256) standard normal numbers times this are centers
    noise: npt.NDArray[np.float32]  # (256, 256) standard normal numbers times this have the covariance of all residuals


def real_sets(folder: Path = SHARED_DATA / "panel") -> list[FeatureSet]:
    """The features in a folder of .npz files with x and y."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise MissingDataError(f"expected .npz files of features in {folder}, found none; set IGCD_TEST_DATA")
    return [FeatureFile(path).load(path.stem, data=folder, cache=folder) for path in paths]


def real_spread() -> RealSpread:
    """The spread of the real features, in their first 256 principal components."""
    sets = real_sets()
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
    starts = np.concatenate([[0], np.cumsum(sizes)])
    factor = SEPARATION * _factor(means)
    return RealSpread(residuals.astype(np.float32), starts, means.mean(axis=0), factor, _factor(residuals))


def _factor(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """A matrix that gives standard normal numbers the covariance of rows. (n, d) -> (d, d)."""
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)), dtype=np.float32)


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
        weights = rng.normal(size=(N_BLENDED, len(own), 1)).astype(np.float32)
        weights *= np.sqrt(OWN_SHARE) / np.linalg.norm(weights, axis=0)
        rows = centers[own] + sum(weight * spread.residuals[rng.integers(first, last)] for weight in weights)
        rows += np.sqrt(1 - OWN_SHARE) * rng.normal(size=rows.shape).astype(np.float32) @ spread.noise.T
        x[start : start + _ROWS_AT_A_TIME] = rows
    x.flush()
    return y


def neighbor_accuracy(x: npt.NDArray[np.floating], y: IntArray, *, k: int = 10, n_asked: int = 2_000) -> float:
    """Share of some rows whose category most of their k nearest others have. (n, d), (n,)."""
    rows = torch.from_numpy(np.asarray(x, dtype=np.float32))
    rows -= rows.mean(dim=0)
    asked = np.random.default_rng(0).permutation(len(rows))[:n_asked]
    near = y[nearest_neighbors(rows[asked], rows, k + 1).idx[:, 1:].numpy()]
    votes = np.zeros((len(asked), int(y.max()) + 1), dtype=np.int64)
    np.add.at(votes, (np.arange(len(asked))[:, None], near), 1)
    return float((votes.argmax(axis=1) == y[asked]).mean())


def main() -> None:
    for each in real_sets():
        unit = each.x / np.linalg.norm(each.x, axis=1, keepdims=True)
        print(f"real, {each.name}: {len(each.y):,} rows, {neighbor_accuracy(unit, each.y):.3f}")
    with tempfile.TemporaryDirectory() as folder:
        for n_rows, n_categories in ((20_000, 200), (100_000, 1_000), (100_000, 2_000)):
            path = Path(folder, f"{n_rows}-{n_categories}.npy")
            y = write_enlarged(path, n_rows, n_categories, spread=real_spread())
            accuracy = neighbor_accuracy(np.load(path), y)
            print(f"made up: {n_rows:,} rows of {n_categories:,} categories, {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
