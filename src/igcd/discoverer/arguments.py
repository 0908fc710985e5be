"""What a `CategoryDiscoverer` accepts: its parameters, the labels it takes, and the ledger that fits them."""

import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from igcd.limits import MAX_SEED
from igcd.memory.category_ledger import LARGEST, MAX_LABEL, CategoryLedger, DiscovererError, Label, label_kind
from igcd.types import UNLABELED

LARGEST_FLOAT = sys.float_info.max
MAX_COUNT = 10**9
"""More rows than any memory holds; what is computed from such a number still fits into 64 bits."""
MAX_GRANULARITY = 100
"""Heights are divided by e to this power; beyond it they are no numbers any more."""
_COUNT = f"a whole number from 1 to {MAX_COUNT:,}"
_GRANULARITY = f"a number from {-MAX_GRANULARITY} to {MAX_GRANULARITY}"


def check_parameters(params: Mapping[str, Any]) -> None:
    """Refuses the first parameter that makes no sense, and says what would."""
    unsure, n_kept, n_novel = params["unsure"], params["n_kept"], params["n_novel"]
    checks: list[tuple[str, bool, str]] = [
        ("n_novel", n_novel is None or n_novel == 0 or is_count(n_novel), "a whole number of 0 or more, or None"),
        ("granularity", _is_moderate(params["granularity"]), _GRANULARITY),
        ("n_components", params["n_components"] is None or is_count(params["n_components"]), f"{_COUNT}, or None"),
        ("unsure", unsure is None or (is_finite_number(unsure) and 0 <= unsure <= 1), "a number from 0 to 1, or None"),
        ("n_kept", is_count(n_kept) and n_kept >= 2, "a whole number of 2 or more"),
        ("unlabeled", isinstance(params["unlabeled"], int | str), "a whole number, a text or 'auto'"),
        (
            "first_novel",
            params["first_novel"] == "auto"
            or (_is_whole(params["first_novel"]) and 1 <= params["first_novel"] < MAX_LABEL),
            "a whole number from 1 to 2**62 - 1, or 'auto'",
        ),
        (
            "random_state",
            _is_whole(params["random_state"]) and 0 <= params["random_state"] <= MAX_SEED,
            "a whole number from 0 to 2**63 - 1",
        ),
    ]
    for name, is_right, wanted in checks:
        if not is_right:
            raise DiscovererError(f"{name} must be {wanted}, got {params[name]!r}; change it")


def check_grouping(n: object, granularity: object, *, n_rows: int) -> None:
    """Refuses a number of groups that so many rows cannot have, and a granularity that makes no sense."""
    if not (n is None or (is_count(n) and n <= n_rows)):  # type: ignore[operator]  # a number by now
        raise DiscovererError(
            f"n must be a whole number from 1 to the number of rows, {n_rows}, or None, got {n!r}; change it"
        )
    if not _is_moderate(granularity):
        raise DiscovererError(f"granularity must be {_GRANULARITY}, got {granularity!r}; change it")


def check_labels(
    y: npt.ArrayLike | None, classes: npt.ArrayLike | None, *, known: Iterable[Label], unlabeled: int | str
) -> None:
    """Refuses labels that are not among the classes, known names and marks for unlabeled rows."""
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
        first_novel = 10 ** max(3, len(str(int(max(largest, 0)))) + 1)
        if int(first_novel) > LARGEST[kind]:
            raise DiscovererError(
                f"labels leave no room for numbers of new categories, the largest is {largest}; set first_novel"
            )
    return CategoryLedger(kind=kind, unlabeled=mark, first_novel=int(first_novel))


def is_count(value: object) -> bool:
    """Whether a value is a whole number that can count rows."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 1 <= int(value) <= MAX_COUNT


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_moderate(granularity: object) -> bool:
    return is_finite_number(granularity) and abs(granularity) <= MAX_GRANULARITY  # type: ignore[arg-type]  # a number


def is_finite_number(value: object) -> bool:
    """Whether a value is a number, and neither infinite nor NaN."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_number and bool(abs(value) <= LARGEST_FLOAT)  # type: ignore[arg-type]  # a number by now
