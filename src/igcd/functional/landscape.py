"""The map: rows in the plane, alike ones close together."""

import numpy as np
import numpy.typing as npt
import torch
from sklearn.manifold import TSNE  # type: ignore[import-untyped]

from igcd.functional.neighbors import nearest_neighbors
from igcd.functional.novelty import fit_projection
from igcd.types import FloatArray

Rows = npt.NDArray[np.float32]

N_DRAWN = 2_000
"""So many rows are laid out by t-SNE, in a few seconds; the others go between those they are most like."""
N_COMPONENTS = 50
N_AROUND = 3


def lay_out(features: Rows, *, seed: int = 0) -> FloatArray:
    """Places in the unit square, (n, d) -> (n, 2). The same features give the same map."""
    if len(features) < 2:
        return np.full((len(features), 2), 0.5)
    h = torch.from_numpy(np.asarray(features, dtype=np.float32))
    reduced = fit_projection(h, n_components=N_COMPONENTS)(h)
    if len(features) < 8:  # too few for neighborhoods
        flat = fit_projection(h, n_components=2)
        return _to_unit_square(((h - flat.mean) @ flat.components.T).numpy())
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(features))[:N_DRAWN]
    chosen = reduced[torch.from_numpy(drawn)]
    perplexity = min(30.0, (len(drawn) - 1) / 3)
    layout = TSNE(
        perplexity=perplexity, init=_start(chosen.numpy(), rng), random_state=seed, max_iter=500
    ).fit_transform(chosen.numpy())
    places = np.empty((len(features), 2))
    places[drawn] = layout
    others = np.setdiff1d(np.arange(len(features)), drawn)
    if len(others):
        near = nearest_neighbors(reduced[torch.from_numpy(others)], chosen, N_AROUND)
        weights = (near.similarity.double() / 0.1).softmax(dim=1).numpy()
        places[others] = (layout[near.idx.numpy()] * weights[:, :, None]).sum(axis=1)
    return _to_unit_square(places)


def _start(reduced: Rows, rng: np.random.Generator) -> Rows:
    """Where t-SNE begins: the first two components, very small, and no two rows at one spot.

    scikit-learn's own start divides by the spread, and its tree of points then ends the process where all are equal.
    """
    flat = np.zeros((len(reduced), 2), dtype=np.float32)
    flat[:, : min(2, reduced.shape[1])] = reduced[:, :2]
    spread = float(flat[:, 0].std())
    scaled = flat / spread if spread > 0 else flat
    return np.asarray(1e-4 * (scaled + rng.normal(0, 0.01, flat.shape)), dtype=np.float32)


def _to_unit_square(places: FloatArray) -> FloatArray:
    """Shifted and scaled alike in both directions."""
    if places.shape[1] < 2:
        places = np.concatenate([places, np.zeros((len(places), 2 - places.shape[1]))], axis=1)
    low, high = places.min(axis=0), places.max(axis=0)
    side = max(float((high - low).max()), 1e-12)
    return np.asarray((places - (low + high) / 2) / side + 0.5, dtype=np.float64)
