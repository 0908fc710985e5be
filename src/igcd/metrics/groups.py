"""Who counts as Old: the three definitions in use, read from the file alone."""

from typing import Literal

import numpy as np

from igcd.metrics.predictions import ABSENT, NEW, OLD
from igcd.types import BoolArray, IntArray

OldDefinition = Literal["paper", "soft", "hard"]


def rows_by_code(codes: IntArray) -> dict[int, IntArray]:
    """The rows that hold each code, codes and rows ascending. (n,) -> code: rows.

    >>> rows_by_code(np.array([2, 0, 2]))
    {0: array([1]), 2: array([0, 2])}
    """
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    return dict(zip(present.tolist(), np.split(order, starts[1:]), strict=True)) if len(codes) else {}


def first_stages(stages: IntArray, codes: IntArray) -> IntArray:
    """The first stage in which each code (of a category or a cluster) has a row. (n,), (n,) -> (codes,)."""
    first = np.full(int(codes.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, codes, stages)
    return first


def regroup(stages: IntArray, categories: IntArray, groups: IntArray, *, old: OldDefinition) -> IntArray | None:
    """Each row's group under a definition of Old; None where the file does not tell. (n,), (n,), (n,) -> (n,).

    - `paper`: the groups as they are.
    - `soft` (Happy): New = the category has no earlier row and is New in its first stage; all else is Old.
    - `hard` (PromptCCD): Old = the category is Old or S-0 in its first stage, that is, labeled at stage 0; all else is
      New. This needs the rows of stage 0 or 1: a category that is Old from stage 2 on may have been labeled at stage 1.

    Under `soft` and `hard` no group S-t is left.
    """
    if old == "paper":
        return groups
    in_first_stage = stages == first_stages(stages, categories)[categories]
    if old == "soft":
        known = _categories_of(categories, in_first_stage & (groups != NEW))
        return np.where(~in_first_stage | known[categories], OLD, NEW)
    if int(stages.min()) > 1:
        return None
    base = _categories_of(categories, in_first_stage & ((groups == OLD) | (groups == ABSENT)))
    return np.where(base[categories], OLD, NEW)


def _categories_of(categories: IntArray, rows: BoolArray) -> BoolArray:
    """Whether each category has one of these rows. (n,), (n,) -> (categories,)."""
    present = np.zeros(int(categories.max()) + 1, dtype=np.bool_)
    present[categories[rows]] = True
    return present
