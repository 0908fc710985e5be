"""States of parts joined into one, as safetensors stores them: flat names with a prefix per part."""

from collections.abc import Mapping
from typing import TypeVar

from torch import Tensor

T = TypeVar("T")
State = tuple[dict[str, Tensor], dict[str, str]]


def prefixed(part: str, entries: Mapping[str, T]) -> dict[str, T]:
    """Every name with the part in front.

    >>> prefixed("model", {"weight": 1})
    {'model.weight': 1}
    """
    return {f"{part}.{name}": value for name, value in entries.items()}


def part_of(entries: Mapping[str, T], part: str) -> dict[str, T]:
    """The entries of a part under their own names: the inverse of `prefixed`.

    >>> part_of({"model.weight": 1, "models": 2}, "model")
    {'weight': 1}
    """
    return {name.removeprefix(f"{part}."): value for name, value in entries.items() if name.startswith(f"{part}.")}


def join(parts: Mapping[str, State]) -> State:
    """The states of several parts as one."""
    tensors: dict[str, Tensor] = {}
    metadata: dict[str, str] = {}
    for part, (part_tensors, part_metadata) in parts.items():
        tensors |= prefixed(part, part_tensors)
        metadata |= prefixed(part, part_metadata)
    return tensors, metadata
