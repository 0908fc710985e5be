"""Rows as the discoverer takes them in: each content once, in an order that depends on content alone."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from igcd.memory.category_ledger import Label
from igcd.types import IntArray


@dataclass(frozen=True)
class Batch:
    """The distinct rows of one call, in an order that depends on their content alone."""

    keys: npt.NDArray[np.str_]  # (u,) rising
    first_rows: IntArray  # (u,) where in X each stands first
    h: Tensor  # (u, c) features as they are compared
    ids: Tensor  # (u,) category, −1 where unlabeled


def digests(features: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """A digest of the content of each row. (n, d) -> (n,)."""
    rows = (row + 0.0 for row in features)  # −0 is 0
    return np.array([hashlib.blake2b(row.tobytes(), digest_size=16).hexdigest() for row in rows])


def rising(labels: set[Label]) -> list[Label]:
    """Labels in their order; they are all numbers or all texts."""
    return sorted(labels, key=lambda label: label)


def one_label_each(labels: Sequence[Label | None], groups: IntArray, n_groups: int) -> list[Label | None]:
    """For rows that are one and the same their most frequent label, of equals the first in order; None if none has.

    >>> one_label_each(["b", None, "a", "b", None], np.array([0, 0, 0, 0, 1]), 2)
    ['b', None]
    """
    votes: list[Counter[Label]] = [Counter() for _ in range(n_groups)]
    for label, group in zip(labels, groups.tolist(), strict=True):
        if label is not None:
            votes[group][label] += 1
    return [
        max(rising({*vote}), key=lambda label, vote=vote: vote[label]) if vote else None  # type: ignore[misc]
        for vote in votes
    ]
