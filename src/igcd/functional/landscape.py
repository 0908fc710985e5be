"""The map: rows in the plane, alike ones close together."""

import numpy as np
import numpy.typing as npt
import torch
from sklearn.manifold import TSNE  # type: ignore[import-untyped]
from torch import Tensor

from igcd.functional.neighbors import nearest_neighbors
from igcd.functional.projection import fit_projection
from igcd.types import FloatArray

Rows = npt.NDArray[np.float32]

N_DRAWN = 2_000
"""So many rows are laid out by t-SNE, in a few seconds; the others go between those they are most like."""
N_COMPONENTS = 50
N_AROUND = 3
MIN_PLACED = 20
"""With fewer photos on the map there is nothing to keep in place."""


def lay_out(features: Rows, places: FloatArray | None = None, *, seed: int = 0) -> FloatArray:
    """Places in the unit square, (n, d) -> (n, 2). The same features give the same map.

    `places` are those that rows have already, NaN where they have none, (n, 2): these stay, and the others go between
    the placed rows they are most like. With fewer than `MIN_PLACED` placed rows all are laid out.
    """
    if len(features) < 2:
        return np.full((len(features), 2), 0.5)
    h = torch.from_numpy(np.asarray(features, dtype=np.float32))
    reduced = fit_projection(h, n_components=N_COMPONENTS)(h)
    if places is not None and (~np.isnan(places[:, 0])).sum() >= MIN_PLACED:
        return _fill_in(reduced, places)
    if len(features) < 8:  # too few for neighborhoods
        return _to_unit_square(fit_projection(h, n_components=2).coordinates(h).numpy())
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
        places[others] = _between(reduced[torch.from_numpy(others)], chosen, layout)
    return _to_unit_square(places)


def _fill_in(reduced: Tensor, places: FloatArray) -> FloatArray:
    """The places there are, and for the other rows places between them. (n, c), (n, 2) -> (n, 2)."""
    is_placed = ~np.isnan(places[:, 0])
    filled = places.copy()
    if not is_placed.all():
        new, old = (reduced[torch.from_numpy(np.flatnonzero(rows))] for rows in (~is_placed, is_placed))
        filled[~is_placed] = _between(new, old, places[is_placed])
    return filled


def _between(rows: Tensor, placed: Tensor, places: FloatArray) -> FloatArray:
    """For each row the weighted mean of the places of the rows it is most like. (n, c), (m, c), (m, 2) -> (n, 2)."""
    near = nearest_neighbors(rows, placed, min(N_AROUND, len(placed)))
    weights = (near.similarity.double() / 0.1).softmax(dim=1).numpy()
    return np.asarray((places[near.idx.numpy()] * weights[:, :, None]).sum(axis=1))


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
