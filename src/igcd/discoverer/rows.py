"""Rows as the discoverer takes them in: each content once, in an order that depends on content alone."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from igcd.memory.category_ledger import Label
from igcd.types import BoolArray, IntArray

_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Batch:
    """The distinct rows of one call, in an order that depends on their content alone."""

    keys: npt.NDArray[np.str_]  # (u,) rising
    first_rows: IntArray  # (u,) where in X each stands first
    h: Tensor  # (u, c) features as they are compared
    ids: Tensor  # (u,) category, −1 where unlabeled


def digests(features: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """A digest of the content of each row. (n, d) -> (n,). A row in half precision has that of the same float32."""
    dtype = np.promote_types(features.dtype, np.float32)
    found = np.empty(len(features), dtype="U32")
    for start in range(0, len(features), _ROWS_AT_A_TIME):
        part = np.ascontiguousarray(features[start : start + _ROWS_AT_A_TIME], dtype=dtype) + 0.0  # −0 is 0
        found[start : start + len(part)] = [hashlib.blake2b(row, digest_size=16).hexdigest() for row in part]
    return found


def short_keys(keys: npt.NDArray[np.str_]) -> IntArray:
    """Digests as numbers: their first eight bytes. (n,).

    >>> short_keys(np.array(["0100000000000000" + 16 * "f"]))
    array([1])
    """
    return np.frombuffer(bytes.fromhex("".join(key[:16] for key in keys.tolist())), dtype="<i8").astype(np.int64)


def are_among(keys: IntArray, held: IntArray) -> BoolArray:
    """Which of some keys are held; those are distinct and rise. (n,), (m,) -> (n,).

    >>> are_among(np.array([7, 2, 9]), np.array([2, 7]))
    array([ True,  True, False])
    """
    if not len(held):
        return np.zeros(len(keys), dtype=np.bool_)
    return np.asarray(held[np.searchsorted(held, keys).clip(max=len(held) - 1)] == keys)


@dataclass(frozen=True)
class DistinctRows:
    """Each content of some rows once, in an order that depends on content alone."""

    keys: npt.NDArray[np.str_]  # (u,) digests, rising
    first_rows: IntArray  # (u,) where each stands first
    of_row: IntArray  # (n,) which of them each row is
    labels: list[Label | None]  # u, see `one_label_each`


def distinct_rows(features: npt.NDArray[Any], labels: Sequence[Label | None]) -> DistinctRows:
    """The contents of rows, (n, d), with the label of each.

    >>> found = distinct_rows(np.array([[1.0], [2.0], [1.0]], dtype=np.float32), ["a", None, "a"])
    >>> sorted(found.first_rows.tolist()), found.first_rows[found.of_row].tolist()
    ([0, 1], [0, 1, 0])
    """
    keys, first_rows, of_row = np.unique(digests(features), return_index=True, return_inverse=True)
    return DistinctRows(keys, first_rows.astype(np.int64), of_row, one_label_each(labels, of_row, len(keys)))


def answer_in_parts(
    X: npt.ArrayLike,  # noqa: N803 - as scikit-learn calls it
    *,
    read: Callable[[npt.ArrayLike], npt.NDArray[Any]],
    answer: Callable[[npt.NDArray[Any]], Tensor],
) -> npt.NDArray[Any]:
    """What is answered about each row, with the rows of one part in memory beside the answers. (n, d) -> (n, …).

    `read` checks rows and makes them a table. A table that is there, perhaps a mapped file of any length, is read part
    by part; whatever else comes is read as a whole.
    """
    is_table = isinstance(X, np.ndarray) and X.ndim == 2 and len(X) > 0
    table: npt.NDArray[Any] = X if is_table else read(X)  # type: ignore[assignment]  # an array in either case
    answers = torch.empty(0)
    for start in range(0, len(table), _ROWS_AT_A_TIME):
        part = table[start : start + _ROWS_AT_A_TIME]
        found = answer(read(part) if is_table else part)
        if start == 0:
            answers = found.new_empty(len(table), *found.shape[1:])
        answers[start : start + len(part)] = found
    return answers.numpy()


def rising(labels: set[Label]) -> list[Label]:
    """Labels in their order; they are all numbers or all texts."""
    return sorted(labels, key=lambda label: label)


def one_label_each(labels: Sequence[Label | None], groups: IntArray, n_groups: int) -> list[Label | None]:
    """For rows that are one and the same their most frequent label, of equals the first in order; None if none has.

    >>> one_label_each(["b", None, "a", "b", None], np.array([0, 0, 0, 0, 1]), 2)
    ['b', None]
    """
    votes: dict[int, Counter[Label]] = defaultdict(Counter)
    for label, group in zip(labels, groups.tolist(), strict=True):
        if label is not None:
            votes[group][label] += 1
    most_frequent: list[Label | None] = [None] * n_groups
    for group, vote in votes.items():
        most_frequent[group] = max(rising({*vote}), key=vote.__getitem__)
    return most_frequent
