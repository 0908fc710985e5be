"""Clusters to categories: the one-to-one matching that makes most images right (the Hungarian matching)."""

from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, eye_array, hstack
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from igcd.types import UNLABELED, IntArray

Solver = Literal["dense", "sparse"]

MAX_DENSE_CELLS = 40_000
"""Up to so many cells the dense solver is the faster one, see benchmarks/matching.py."""


def contingency(clusters: IntArray, categories: IntArray) -> csr_array:
    """Number of images of each category in each cluster, (n,), (n,) -> (clusters, categories), sparse.

    Images without a prediction (cluster -1) are in no cluster.

    >>> contingency(np.array([0, 0, 1, -1]), np.array([1, 1, 0, 0])).toarray()
    array([[0, 2],
           [1, 0]])
    """
    shape = (int(clusters.max(initial=-1)) + 1, int(categories.max(initial=-1)) + 1)
    predicted = clusters != UNLABELED
    cells, counts = np.unique(clusters[predicted] * shape[1] + categories[predicted], return_counts=True)
    row_starts = np.searchsorted(cells, np.arange(shape[0] + 1) * shape[1])
    return csr_array((counts, cells % max(shape[1], 1), row_starts), shape=shape)


def canonical_order(counts: csr_array) -> IntArray:
    """An order of the rows that depends on what is in them and not on where they stand; equal rows keep their order."""
    columns, values, starts = counts.indices.astype(">i8"), counts.data.astype(">i8"), counts.indptr
    content = [columns[start:end].tobytes() + values[start:end].tobytes() for start, end in pairwise(starts)]
    return np.array(sorted(range(len(content)), key=content.__getitem__), dtype=np.int64)


def match(counts: csr_array, *, solver: Solver | None = None) -> IntArray:
    """The category of each cluster, or -1, so that the matched counts sum to the most possible.

    (clusters, categories) -> (clusters,). Each category is given to one cluster at most. Without a solver named, the
    faster one for the size is taken; both are exact.

    >>> match(csr_array(np.array([[5, 4], [4, 0], [1, 1]])))
    array([ 1,  0, -1])
    """
    # Several matchings can be best. They agree on the sum, not on which categories are right, so a solver that sees
    # the clusters in another order may move the accuracy of a group. In the canonical order it always sees the same.
    order = canonical_order(counts)
    order = order[np.diff(counts.indptr)[order] > 0]  # a cluster without images takes no part
    taken_columns, columns = np.unique(counts.indices, return_inverse=True)
    compact = csr_array((counts.data, columns, counts.indptr), shape=(counts.shape[0], len(taken_columns)))[order]

    if solver is None:
        solver = "dense" if compact.shape[0] * compact.shape[1] <= MAX_DENSE_CELLS else "sparse"
    rows, matched = _match_dense(compact) if solver == "dense" else _match_sparse(compact)

    category_of = np.full(counts.shape[0], UNLABELED, dtype=np.int64)
    category_of[order[rows]] = taken_columns[matched]
    return category_of


def _match_dense(counts: csr_array) -> tuple[IntArray, IntArray]:
    """Matched rows and columns, by scipy's solver for full matrices."""
    full = counts.toarray()
    rows, columns = linear_sum_assignment(full, maximize=True)
    shared = full[rows, columns] > 0
    return rows[shared].astype(np.int64), columns[shared].astype(np.int64)


def _match_sparse(counts: csr_array) -> tuple[IntArray, IntArray]:
    """Matched rows and columns, touching only pairs that share an image.

    The solver must give every row a column. So each row gets a column of its own that is worth nothing, and to
    take it means to stay unmatched. Rows are the smaller side: the solver's time grows with both sides of its graph.
    """
    n_rows, n_columns = counts.shape
    if n_rows > n_columns:
        return _match_sparse(counts.T.tocsr())[::-1]
    if n_rows == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    worth_nothing = int(counts.data.max()) + 1  # above every count, as the solver drops edges of weight 0
    cost = csr_array((worth_nothing - counts.data, counts.indices, counts.indptr), shape=counts.shape)
    unmatched = eye_array(n_rows, dtype=np.int64, format="csr") * worth_nothing
    matched = min_weight_full_bipartite_matching(hstack([cost, unmatched], format="csr"))
    rows, columns = (side.astype(np.int64) for side in matched)
    return rows[columns < n_columns], columns[columns < n_columns]
