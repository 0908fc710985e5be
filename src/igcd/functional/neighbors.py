"""Exact nearest neighbors by cosine similarity in bounded memory: the one graph that all about density reads."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.errors import IgcdError

SIMILARITY_STEPS = 2**20
"""Similarities are rounded to 1 / 2**20, about what float32 gets wrong in a sum of a thousand products. Copies of an
image then tie exactly, and neither the size of the chunks nor the order of the sum decides who is nearer."""

_BELOW_ANY_SIMILARITY = -2.0
_BYTES_PER_PAIR = 16  # a float32 similarity, and in the worst case an int64 key and a copy of the row


@dataclass(frozen=True)
class Neighbors:
    """The k nearest of each of n images, most similar first, equals in the order of their index."""

    idx: Tensor  # (n, k) int64
    similarity: Tensor  # (n, k) cosine, falling along each row

    def __len__(self) -> int:
        return len(self.idx)

    @property
    def k(self) -> int:
        """How many neighbors each image has here."""
        return self.idx.shape[1]

    def first(self, k: int) -> "Neighbors":
        """The same graph with the k nearest only, without a copy."""
        if not 1 <= k <= self.k:
            raise IgcdError(
                f"this graph holds {self.k} neighbors of each image, {k} were asked for; "
                "build it with the largest number needed"
            )
        return Neighbors(self.idx[:, :k], self.similarity[:, :k])


def neighbor_graph(features: Tensor, k: int, *, max_bytes: int = 2**28) -> Neighbors:
    """The k nearest other images of each image. (n, d) -> (n, k).

    An image is never its own neighbor; a copy of it is. `max_bytes` bounds what is held beside input and result.
    """
    if not 1 <= k < len(features):
        raise IgcdError(
            f"n_neighbors must be at least 1 and below the number of images, got {k} for {len(features)}; "
            "lower the number of neighbors"
        )
    return _search(features, features, k, exclude_self=True, max_bytes=max_bytes)


def nearest_neighbors(queries: Tensor, features: Tensor, k: int, *, max_bytes: int = 2**28) -> Neighbors:
    """The k nearest of `features` for each query. (n, d), (m, d) -> (n, k) with indices into `features`."""
    if not 1 <= k <= len(features):
        raise IgcdError(
            f"n_neighbors must be at least 1 and at most the number of images, got {k} for {len(features)}; "
            "lower the number of neighbors"
        )
    return _search(queries, features, k, exclude_self=False, max_bytes=max_bytes)


def _search(queries: Tensor, features: Tensor, k: int, *, exclude_self: bool, max_bytes: int) -> Neighbors:
    if queries.ndim != 2 or features.ndim != 2 or queries.shape[1] != features.shape[1]:
        raise IgcdError(
            f"features must be two tables of the same width, got {tuple(queries.shape)} and {tuple(features.shape)}; "
            "encode both with the same model"
        )
    n_rows, n_cols = _chunk_shape(len(features), k, features.shape[1], max_bytes)
    _require_finite(features, n_cols)
    if not exclude_self:
        _require_finite(queries, n_cols)
    dtype = torch.promote_types(features.dtype, torch.float32)  # half precision is for storage
    idx = torch.empty(len(queries), k, dtype=torch.int64, device=features.device)
    similarity = torch.empty(len(queries), k, dtype=dtype, device=features.device)
    for row in range(0, len(queries), n_rows):
        block = normalize(queries[row : row + n_rows].to(dtype), dim=1)
        best_idx, best = idx[:0], similarity[:0]
        for col in range(0, len(features), n_cols):
            # Normalising a chunk again for every row chunk costs little and spares a copy of all features.
            pairs = block @ normalize(features[col : col + n_cols].to(dtype), dim=1).T
            if exclude_self:
                pairs.diagonal(row - col).fill_(_BELOW_ANY_SIMILARITY)
            near, near_idx = _most_similar(pairs, min(k, pairs.shape[1]))
            near_idx += col
            if col == 0:
                best, best_idx = near, near_idx
                continue
            # Earlier columns come first and the sort is stable, so ties stay in the order of their index.
            best, order = torch.cat([best, near], dim=1).sort(dim=1, descending=True, stable=True)
            best, order = best[:, :k], order[:, :k]
            best_idx = torch.cat([best_idx, near_idx], dim=1).gather(1, order)
        idx[row : row + n_rows], similarity[row : row + n_rows] = best_idx, best
    return Neighbors(idx, similarity)


def _chunk_shape(n_features: int, k: int, width: int, max_bytes: int) -> tuple[int, int]:
    """Rows and columns of similarities computed at a time, so that all that belongs to them fits into `max_bytes`."""
    n_pairs = max(max_bytes // _BYTES_PER_PAIR, 1)
    n_cols = min(n_features, max(k + 1, 2 * int(n_pairs**0.5)))
    n_rows = max(1, min(n_pairs // n_cols, max_bytes // (4 * width + 1)))
    return n_rows, n_cols


def _require_finite(features: Tensor, chunk: int) -> None:
    for start in range(0, len(features), chunk):
        finite = torch.isfinite(features[start : start + chunk]).all(dim=1)
        if not finite.all():
            position = start + int(finite.logical_not().nonzero()[0])
            raise IgcdError(
                f"features must be finite numbers, the one at position {position} is not; "
                "check the image or the training that led to it"
            )


def _most_similar(pairs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, rounded, falling, equals by column. (r, c) -> (r, k), (r, k)."""
    n_cols = pairs.shape[1]
    near, cols = pairs.topk(min(k + 1, n_cols), dim=1)
    near = _rounded(near)
    if n_cols > k:
        # topk is free to take any of several equals. Only rows that tie across the border need the dearer way.
        tied = (near[:, k - 1] == near[:, k]).nonzero()[:, 0]
        near, cols = near[:, :k], cols[:, :k]
        if len(tied):
            steps = (pairs[tied] * SIMILARITY_STEPS).round_().long()
            keys = steps.mul_(n_cols).sub_(torch.arange(n_cols, device=pairs.device))
            cols[tied] = keys.topk(k, dim=1).indices
            near[tied] = _rounded(pairs[tied[:, None], cols[tied]])
    cols, order = cols.sort(dim=1)
    near, by_similarity = near.gather(1, order).sort(dim=1, descending=True, stable=True)
    return near, cols.gather(1, by_similarity)


def _rounded(similarity: Tensor) -> Tensor:
    return (similarity * SIMILARITY_STEPS).round_().div_(SIMILARITY_STEPS)
