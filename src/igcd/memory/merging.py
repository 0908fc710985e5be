"""What comes of two categories that are merged: one rule for the ledger of the estimator and for the catalog."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Name = TypeVar("Name")


@dataclass(frozen=True)
class Standing(Generic[Name]):
    """Whether a person has labeled, named or confirmed a category, and what it is called."""

    is_known: bool
    name: Name  # None: it has none yet


def merged(into: Standing[Name], other: Standing[Name]) -> Standing[Name]:
    """The standing of `into` with `other` in it: known if either was, under the name of the known one.

    Of two known categories, or two that are not, it keeps its own name where it has one.

    >>> merged(Standing(False, "novel 7"), Standing(True, "oak"))
    Standing(is_known=True, name='oak')
    """
    known_first = sorted([into, other], key=lambda standing: not standing.is_known)
    names = [standing.name for standing in known_first if standing.name is not None]
    return Standing(into.is_known or other.is_known, names[0] if names else into.name)
