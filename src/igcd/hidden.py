"""Objects that others may use through a handle, without a reference that leads to them.

A method is handed things that work on the runner's files and on images with names. A handle stands for such an object:
it holds a number, and the object lies in a registry of this module under the same number as text. No attribute,
closure, weak reference or referrer (`gc.get_referrers`) leads from one to the other. Code that imports this module and
looks behind a handle can cheat, as it could open the data set itself.
"""

import secrets
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

_behind: dict[str, Any] = {}


class Handle(Generic[T]):
    """Stands for an object, which is let go when the handle is."""

    __slots__ = ("_number",)

    def __init__(self, hidden: T) -> None:
        self._number = secrets.randbits(128)
        _behind[f"{self._number:x}"] = hidden

    def __copy__(self) -> "Handle[T]":
        return self  # a second handle with this number would let go of the object for both

    def __deepcopy__(self, _memo: object) -> "Handle[T]":
        return self

    def __del__(self) -> None:
        if _behind:  # None when the interpreter ends
            _behind.pop(f"{self._number:x}", None)


def look_behind(handle: Handle[T]) -> T:
    """The object a handle stands for.

    >>> look_behind(Handle("fox"))
    'fox'
    """
    found: T = _behind[f"{handle._number:x}"]
    return found


def hidden_call(function: Callable[P, R]) -> Callable[P, R]:
    """A function that does the same, and from which nothing leads to what that one works on.

    >>> hidden_call(len)("fox")
    3
    """
    handle = Handle(function)

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return look_behind(handle)(*args, **kwargs)

    return call
