"""Calls of an estimator that change all they have to, or nothing."""

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

CHANGED_IN_PLACE = ("ledger_", "_kept", "_means", "_discoveries")
"""Attributes whose content a call changes; all others are replaced by new objects."""


def all_or_nothing(change: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """A method after which, where it raises, the estimator is what it was before the call."""

    @wraps(change)
    def changed(self: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        attributes: dict[str, Any] = vars(self)
        former = dict(attributes)
        former |= copy.deepcopy({name: former[name] for name in CHANGED_IN_PLACE if name in former})
        try:
            return change(self, *args, **kwargs)
        except BaseException:
            attributes.clear()
            attributes.update(former)
            raise

    return changed
