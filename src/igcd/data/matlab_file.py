"""MATLAB files of version 5, as far as annotations need them: text, numbers, cells and structs.

scipy's reader is written for trusted files: a flipped bit can end the whole process. This one only ever looks inside
the bytes it was given.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HEADER_BYTES = 128
MAX_BYTES = 200_000_000
MAX_DEPTH = 8
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _CHAR, _FIRST_NUMERIC, _LAST_NUMERIC = 1, 2, 4, 6, 15
_TYPES: Mapping[int, str] = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
    16: "u1",
    17: "u2",
    18: "u4",  # UTF-8, -16 and -32
}
_ENCODINGS: Mapping[int, str] = {2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}


class NotMatlabError(ValueError):
    """The bytes are not what MATLAB writes."""


@dataclass(frozen=True)
class _Element:
    kind: int
    content: bytes


def read_variable(path: Path, variable: str) -> Any:  # noqa: ANN401 (MATLAB files have no types)
    """A variable of a file: text, a number, a list of such, or for a struct array a list of dicts.

    Raises `NotMatlabError` where the file is damaged or has no such variable.
    """
    content = path.read_bytes()
    if len(content) < HEADER_BYTES or content[126:128] not in (b"IM", b"MI") or len(content) > MAX_BYTES:
        raise NotMatlabError("it does not begin like one")
    reader = _Reader("<" if content[126:128] == b"IM" else ">")
    for element in reader.elements(content[HEADER_BYTES:]):
        inside = element
        if element.kind == _COMPRESSED:
            inside = next(reader.elements(_unpacked(element.content)), element)
        if inside.kind == _MATRIX:
            name, value = reader.matrix(inside.content, depth=0)
            if name == variable:
                return value
    raise NotMatlabError(f"it has no variable {variable}")


class _Reader:
    def __init__(self, order: str) -> None:
        self._order = order

    def elements(self, content: bytes) -> Iterator[_Element]:
        """The data elements of some bytes, one after the other."""
        at = 0
        while at + 8 <= len(content):
            (tag,) = struct.unpack_from(f"{self._order}I", content, at)
            if tag >> 16:  # a small one: its size and its up to four bytes share the tag
                kind, n_bytes, start, following = tag & 0xFFFF, tag >> 16, at + 4, at + 8
                if n_bytes > 4:
                    raise NotMatlabError("a small element has more than four bytes")
            else:
                kind = tag
                (n_bytes,) = struct.unpack_from(f"{self._order}I", content, at + 4)
                start = at + 8
                padding = 0 if kind == _COMPRESSED else -n_bytes % 8
                following = start + n_bytes + padding
            if start + n_bytes > len(content):
                raise NotMatlabError("it is cut short")
            yield _Element(kind, content[start : start + n_bytes])
            at = following

    def matrix(self, content: bytes, depth: int) -> tuple[str, Any]:
        """The name and the value of an array."""
        if depth > MAX_DEPTH:
            raise NotMatlabError("it is nested too deeply")
        parts = self.elements(content)
        if not content:
            return "", []
        kind = int(self._numbers(self._next(parts))[0]) & 0xFF
        shape = [int(length) for length in self._numbers(self._next(parts))]
        name = self._next(parts).content.decode("latin-1")
        n = int(np.prod(shape, dtype=object)) if shape else 0
        if not 0 <= n <= len(content):
            raise NotMatlabError(f"it claims {n} values")
        if kind == _CELL:
            return name, [self._inside(parts, depth) for _ in range(n)]
        if kind == _STRUCT:
            return name, self._structs(parts, n, depth)
        if kind == _CHAR:
            return name, self._text(self._next(parts))
        if _FIRST_NUMERIC <= kind <= _LAST_NUMERIC:
            values = self._numbers(self._next(parts)).tolist()
            return name, values[0] if n == len(values) == 1 else values
        raise NotMatlabError(f"it has an array of an unknown class {kind}")

    def _structs(self, parts: Iterator[_Element], n: int, depth: int) -> list[dict[str, Any]]:
        (length,) = self._numbers(self._next(parts))[:1]
        names = self._next(parts).content
        if not 1 <= length <= 64:
            raise NotMatlabError(f"it has field names of {length} letters")
        step = int(length)
        fields = [names[at : at + step].split(b"\0")[0].decode("latin-1") for at in range(0, len(names), step)]
        if not fields:
            raise NotMatlabError("it has a struct without fields")
        return [{field: self._inside(parts, depth) for field in fields} for _ in range(n)]

    def _inside(self, parts: Iterator[_Element], depth: int) -> Any:  # noqa: ANN401 (MATLAB files have no types)
        element = self._next(parts)
        if element.kind != _MATRIX:
            raise NotMatlabError("it has a cell that is not an array")
        return self.matrix(element.content, depth + 1)[1]

    def _next(self, parts: Iterator[_Element]) -> _Element:
        try:
            return next(parts)
        except StopIteration:
            raise NotMatlabError("it is cut short") from None

    def _numbers(self, element: _Element) -> np.ndarray[Any, Any]:
        kind = _TYPES.get(element.kind)
        if kind is None or len(element.content) % np.dtype(kind).itemsize or not element.content:
            raise NotMatlabError("it has numbers of an unknown type")
        return np.frombuffer(element.content, dtype=f"{self._order}{kind}")

    def _text(self, element: _Element) -> str:
        encoding = _ENCODINGS.get(element.kind)
        if encoding is None:
            raise NotMatlabError("it has text of an unknown type")
        if encoding.startswith("utf-") and encoding != "utf-8":
            encoding += "-le" if self._order == "<" else "-be"
        try:
            return element.content.decode(encoding)
        except UnicodeDecodeError:
            raise NotMatlabError("it has text that cannot be decoded") from None


def _unpacked(content: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(content, MAX_BYTES)
    except zlib.error as error:
        raise NotMatlabError(f"its packing is damaged ({error})") from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise NotMatlabError("its packing is cut short or too large")
    return unpacked
