"""What a `CategoryDiscoverer` accepts: its parameters, the labels it is given, and the ledger that fits them."""

import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from igcd.memory.category_ledger import LARGEST, CategoryLedger, DiscovererError, Label, label_kind
from igcd.types import UNLABELED

LARGEST_FLOAT = sys.float_info.max
MIN_TAU = 1e-6
"""Below it, similarities divided by tau are beyond what float32 can hold, and probabilities are not numbers."""
MAX_COUNT = 10**9
"""More rows than any memory holds; what is computed from such a number still fits into 64 bits."""
_COUNT = f"a whole number from 1 to {MAX_COUNT:,}"


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuses the first parameter that makes no sense, and says what would."""
    unsure, n_kept, first_novel = given["unsure"], given["n_kept"], given["first_novel"]
    is_first = isinstance(first_novel, int | np.integer) and not isinstance(first_novel, bool)
    is_first = is_first and 1 <= first_novel <= LARGEST["int"]
    checks: list[tuple[str, bool, str]] = [
        ("n_neighbors", given["n_neighbors"] == "auto" or is_count(given["n_neighbors"]), f"{_COUNT}, or 'auto'"),
        ("margin", given["margin"] == "auto" or is_finite_number(given["margin"]), "a number or 'auto'"),
        ("n_support", is_count(given["n_support"]), _COUNT),
        ("tau", is_finite_number(given["tau"]) and given["tau"] >= MIN_TAU, f"a number of {MIN_TAU} or more"),
        ("max_iou", is_finite_number(given["max_iou"]) and 0 <= given["max_iou"] <= 1, "a number from 0 to 1"),
        ("n_closest", is_count(given["n_closest"]), _COUNT),
        ("n_components", given["n_components"] is None or is_count(given["n_components"]), f"{_COUNT}, or None"),
        ("unsure", unsure in (None, "auto") or is_finite_number(unsure), "a number, 'auto' or None"),
        ("n_kept", is_count(n_kept) and n_kept >= 2, "a whole number of 2 or more"),
        ("unlabeled", isinstance(given["unlabeled"], int | str), "a whole number, a text or 'auto'"),
        ("first_novel", first_novel == "auto" or is_first, "a whole number from 1 to 2^63 - 1, or 'auto'"),
    ]
    for name, is_right, wanted in checks:
        if not is_right:
            raise DiscovererError(f"{name} must be {wanted}, got {given[name]!r}; change it")


def check_labels(
    y: npt.ArrayLike | None, classes: npt.ArrayLike | None, *, known: Iterable[Label], unlabeled: int | str
) -> None:
    """Refuses labels that are not among the given classes, known names and marks for unlabeled rows."""
    if classes is None or y is None:
        return
    allowed = {*np.asarray(classes).tolist(), *known, None, UNLABELED, "", str(UNLABELED), unlabeled}
    strange = [value for value in np.asarray(y).ravel().tolist() if value not in allowed]
    if strange:
        raise DiscovererError(f"labels must be among classes, got {strange[0]!r}; correct it, or add it to classes")


def ledger_for(y: npt.NDArray[Any], *, unlabeled: int | str, first_novel: int | str) -> CategoryLedger:
    """An empty ledger for labels like these; `unlabeled` and `first_novel` as the discoverer has them.

    >>> ledger_for(np.array([3, -1, 12]), unlabeled="auto", first_novel="auto").first_novel
    1000
    """
    mark, values = unlabeled, y.tolist()
    has_values = any(value is not None for value in values)
    kind = label_kind(values) if has_values or mark == "auto" or isinstance(mark, int) else "text"
    if kind == "text":
        return CategoryLedger(
            kind=kind,
            unlabeled=mark if isinstance(mark, str) and mark != "auto" else "",
            first_novel=1 if first_novel == "auto" else int(first_novel),
        )
    if mark == "auto":
        mark = UNLABELED
        if set(values) == {-1, 1}:
            warnings.warn(
                "labels are −1 and 1 only and are taken for two categories; set unlabeled=-1 if −1 means unlabeled",
                stacklevel=4,
            )
            mark = -2
    if isinstance(mark, str):
        raise DiscovererError(f"labels are numbers, so unlabeled must be one, got {mark!r}; set it to -1")
    if first_novel == "auto":
        sizes = (value for value in values if value is not None and abs(value) <= LARGEST[kind])
        largest = max(sizes, default=0)  # the ledger refuses those beyond
        n_digits = max(3, len(str(int(max(largest, 0)))) + 1)
        if 10**n_digits > LARGEST[kind]:
            raise DiscovererError(
                f"labels must leave room for discoveries to be counted above them, got {largest}; set first_novel, or "
                "use smaller labels or texts"
            )
        first_novel = 10**n_digits
    return CategoryLedger(kind=kind, unlabeled=mark, first_novel=int(first_novel))


def is_count(value: object) -> bool:
    """Whether a value is a whole number that can count rows."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 1 <= int(value) <= MAX_COUNT


def is_finite_number(value: object) -> bool:
    """Whether a value is a number, and neither infinite nor NaN."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_number and bool(abs(value) <= LARGEST_FLOAT)  # type: ignore[arg-type]  # a number by now
