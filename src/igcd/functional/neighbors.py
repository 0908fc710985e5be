"""Nearest neighbors by cosine similarity in bounded memory: the one graph that all about density reads.

Exact up to a size, because that takes the square of the number of rows; above it nearly all of the true neighbors, and
how many of them is estimated and goes with the graph.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.errors import IgcdError
from igcd.functional.approximate_neighbors import PackageMissingError, approximate_neighbors
from igcd.functional.neighbor_lists import is_another

SIMILARITY_STEPS = 2**20
"""Similarities are rounded to 1 / 2**20, about what float32 gets wrong in a sum of a thousand products. Copies of an
image then tie exactly, and neither the size of the chunks nor the order of the sum decides who is nearer."""

EXACT_UP_TO = 100_000
"""Rows up to which a graph is exact. There it takes a minute of one core; PyNNDescent takes as long to start."""
N_CHECKED = 1_000
"""Rows of an approximate graph whose true neighbors are looked up to estimate its recall."""

_BELOW_ANY_SIMILARITY = -2.0
_BYTES_PER_PAIR = 16  # a float32 similarity, and in the worst case an int64 key and a copy of the row


@dataclass(frozen=True)
class Neighbors:
    """The k nearest of each of n images, most similar first, equals in the order of their index."""

    idx: Tensor  # (n, k) int64
    similarity: Tensor  # (n, k) cosine, falling along each row
    recall: float = 1.0  # share of the true neighbors that are here: 1 where exact, else estimated on a sample

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
        return Neighbors(self.idx[:, :k], self.similarity[:, :k], self.recall)


class Search(Protocol):
    """Finds nearly the nearest other rows of each row."""

    def __call__(self, features: Tensor, k: int, *, seed: int) -> Tensor:
        """Positions of nearly the k nearest others, in no order. (n, d) -> (n, k); −1 where none was found."""
        ...


_searching: ContextVar[Search] = ContextVar("search", default=approximate_neighbors)


@contextmanager
def searching_with(search: Search) -> Iterator[None]:
    """Inside, approximate graphs are searched by another search than PyNNDescent on this machine."""
    former = _searching.set(search)
    try:
        yield
    finally:
        _searching.reset(former)


def neighbor_graph(
    features: Tensor, k: int, *, approximate_above: int = EXACT_UP_TO, seed: int = 0, max_bytes: int = 2**28
) -> Neighbors:
    """The k nearest other images of each image. (n, d) -> (n, k).

    An image is never its own neighbor; a copy of it is. With more images than `approximate_above` some neighbors are
    not the nearest: `recall` says how many are. The search starts from what `seed` draws. `max_bytes` bounds what an
    exact graph holds beside input and result; an approximate one holds a copy of the features and some 0.5 kB per row.
    """
    if not 1 <= k < len(features):
        raise IgcdError(
            f"n_neighbors must be at least 1 and below the number of images, got {k} for {len(features)}; "
            "lower the number of neighbors"
        )
    if len(features) > approximate_above:
        try:
            return _approximate(features, k, seed=seed, max_bytes=max_bytes)
        except PackageMissingError as error:
            warnings.warn(
                f"the neighbors of {len(features):,} images are searched exactly, which takes long; {error}",
                stacklevel=2,
            )
    return _search_all(features, k, max_bytes=max_bytes)


def nearest_neighbors(queries: Tensor, features: Tensor, k: int, *, max_bytes: int = 2**28) -> Neighbors:
    """The k nearest of `features` for each query. (n, d), (m, d) -> (n, k) with indices into `features`."""
    if not 1 <= k <= len(features):
        raise IgcdError(
            f"n_neighbors must be at least 1 and at most the number of images, got {k} for {len(features)}; "
            "lower the number of neighbors"
        )
    return _search(queries, features, k, max_bytes=max_bytes)


def _approximate(features: Tensor, k: int, *, seed: int, max_bytes: int) -> Neighbors:
    n_rows, n_cols = _chunk_shape(len(features), k, features.shape[1], max_bytes)
    _require_finite(features, n_cols)
    idx = _searching.get()(features.cpu(), k, seed=seed).to(features.device)
    dtype = torch.promote_types(features.dtype, torch.float32)
    similarity = torch.empty(idx.shape, dtype=dtype, device=features.device)
    n_rows = max(1, min(n_rows, max_bytes // (8 * features.shape[1] * (k + 2))))
    parts = (torch.split(table, n_rows) for table in (features, idx, similarity))
    for own, near, of_near in zip(*parts, strict=True):
        unit = normalize(own.to(dtype), dim=1)
        around = normalize(features[near.clamp(min=0).ravel()].to(dtype), dim=1).reshape(*near.shape, -1)
        pairs = _rounded((around @ unit[:, :, None])[:, :, 0])
        by_idx = near.sort(dim=1)
        pairs, order = pairs.gather(1, by_idx.indices).sort(dim=1, descending=True, stable=True)
        near.copy_(by_idx.values.gather(1, order))
        of_near.copy_(pairs)
    lost = (idx < 0).any(dim=1).nonzero()[:, 0]
    if len(lost):
        idx[lost], similarity[lost] = _others(features, lost, k, max_bytes)
    sample = torch.randperm(len(idx), generator=torch.Generator().manual_seed(seed))[:N_CHECKED].to(idx.device)
    _, true = _others(features, sample, k, max_bytes)
    # By similarity and not by position: of two that are equally far, but for the last step, either is right.
    recall = float((similarity[sample] >= true[:, -1:] - 1.5 / SIMILARITY_STEPS).double().mean())
    return Neighbors(idx, similarity, recall)


def _others(features: Tensor, rows: Tensor, k: int, max_bytes: int) -> tuple[Tensor, Tensor]:
    """The exact neighbors of some rows, and how similar they are. (n, d), (r,) -> (r, k), (r, k)."""
    found = _search(features[rows], features, k + 1, max_bytes=max_bytes)
    stays = is_another(found.idx, rows)
    return found.idx[stays].reshape(-1, k), found.similarity[stays].reshape(-1, k)


def _search_all(features: Tensor, k: int, *, max_bytes: int) -> Neighbors:
    """The k nearest others of each row. A block of similarities serves its rows and its columns. (n, d) -> (n, k)."""
    _require_table(features)
    side = max(k + 1, int((max_bytes // (2 * _BYTES_PER_PAIR)) ** 0.5))
    _require_finite(features, side)
    found = _Best.of_none(len(features), k, features)
    for first in range(0, len(features), side):
        rows = _unit(features[first : first + side])
        for second in range(first, len(features), side):
            if second == first:
                pairs = rows @ rows.T
                pairs.diagonal().fill_(_BELOW_ANY_SIMILARITY)
                found.improve(first, pairs, first)
                continue
            pairs = rows @ _unit(features[second : second + side]).T
            found.improve(first, pairs, second)
            found.improve(second, pairs.T.contiguous(), first)
    return Neighbors(found.idx, found.similarity)


def _search(queries: Tensor, features: Tensor, k: int, *, max_bytes: int) -> Neighbors:
    """The k nearest rows of each query. (q, d), (n, d) -> (q, k)."""
    _require_table(queries, features)
    n_rows, n_cols = _chunk_shape(len(features), k, features.shape[1], max_bytes)
    _require_finite(features, n_cols)
    _require_finite(queries, n_cols)
    found = _Best.of_none(len(queries), k, features)
    for row in range(0, len(queries), n_rows):
        block = _unit(queries[row : row + n_rows])
        for col in range(0, len(features), n_cols):
            # Normalising a chunk again for every row chunk costs little and spares a copy of all features.
            found.improve(row, block @ _unit(features[col : col + n_cols]).T, col)
    return Neighbors(found.idx, found.similarity)


@dataclass(frozen=True)
class _Best:
    """The most similar columns of each row among those seen so far."""

    idx: Tensor  # (n, k)
    similarity: Tensor  # (n, k)

    @classmethod
    def of_none(cls, n: int, k: int, features: Tensor) -> Self:
        """Before any column was seen."""
        dtype = torch.promote_types(features.dtype, torch.float32)  # half precision is for storage
        idx = torch.zeros(n, k, dtype=torch.int64, device=features.device)
        return cls(idx, torch.full((n, k), 2 * _BELOW_ANY_SIMILARITY, dtype=dtype, device=features.device))

    def improve(self, row: int, pairs: Tensor, col: int) -> None:
        """Takes in the similarities of some rows and columns, beginning at these numbers; columns come in order."""
        k = self.idx.shape[1]
        near, near_idx = _most_similar(pairs, min(k, pairs.shape[1]))
        rows = slice(row, row + len(pairs))
        # Earlier columns come first and the sort is stable, so ties stay in the order of their index.
        best, order = torch.cat([self.similarity[rows], near], dim=1).sort(dim=1, descending=True, stable=True)
        self.similarity[rows] = best[:, :k]
        self.idx[rows] = torch.cat([self.idx[rows], near_idx + col], dim=1).gather(1, order[:, :k])


def _unit(rows: Tensor) -> Tensor:
    return normalize(rows.to(torch.promote_types(rows.dtype, torch.float32)), dim=1)


def _require_table(*tables: Tensor) -> None:
    """Two dimensions each, all of one width."""
    if any(table.ndim != 2 or table.shape[1:] != tables[0].shape[1:] for table in tables):
        shapes = " and ".join(str(tuple(table.shape)) for table in tables)
        raise IgcdError(f"features must be tables of the same width, got {shapes}; encode all with the same model")


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
