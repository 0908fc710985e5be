"""The arrays of a large JSON object, element by element, from text that is never whole in memory."""

import io
import json
import re
from collections.abc import Iterator
from typing import Any

from igcd.errors import IgcdError

BLOCK = 1 << 20  # characters read at once
LONGEST_ELEMENT = 1 << 20  # characters; an element that is longer and still not whole is damaged


class JsonRecords:
    """A JSON object whose values are arrays; `source` names it in errors, `layout` says what it should look like."""

    _space = re.compile(r"[ \t\n\r]*")

    def __init__(self, stream: io.TextIOBase, source: str, layout: str = "expected an object of arrays") -> None:
        self._stream = stream
        self._source = source
        self._layout = layout
        self._decode = json.JSONDecoder().raw_decode
        self._text = ""
        self._position = 0
        self._is_last = False
        self._was_split = False  # into whole elements, once for each block

    def sections(self) -> Iterator[tuple[str, Iterator[Any]]]:
        """Each key of the top level with its elements; a value that is no array counts as one without elements."""
        if self._next_character() != "{":
            raise IgcdError(f"{self._source} is not a JSON object; {self._layout}")
        self._position += 1
        while self._next_character() != "}":
            key = self._value()
            self._expect(":")
            if self._next_character() == "[":
                yield str(key), self._elements()
            else:
                self._value()
                yield str(key), iter(())
            if self._next_character() != "}":
                self._expect(",")
        self._position += 1
        if self._next_character(may_end=True):
            raise self._damaged("text after its end")

    def _elements(self) -> Iterator[Any]:
        self._position += 1
        if self._next_character() == "]":
            self._position += 1
            return
        while True:
            yield from self._whole_elements() or [self._value()]
            if self._next_character() == "]":
                self._position += 1
                return
            self._expect(",")

    def _whole_elements(self) -> list[Any]:
        """All elements up to the last one that seems to end in the text, decoded at once; none where that fails.

        Three times as fast as one by one. Sure all the same: if the text up to a brace is one valid list of elements,
        it is these elements; behind the end of the array, or inside of a string or of an element, it is not valid.
        """
        end = self._text.rfind("},", self._position) + 1
        if self._was_split or not end:
            return []
        self._was_split = True
        try:
            elements: list[Any] = json.loads(f"[{self._text[self._position : end]}]")
        except (ValueError, RecursionError):
            return []
        self._position = end
        return elements

    def _value(self) -> object:
        while True:
            try:
                value, end = self._decode(self._text, self._position)
                if end < len(self._text) or self._is_last:  # a number could go on behind the end of the text
                    self._position = end
                    return value
            except (ValueError, RecursionError) as error:
                if self._is_last:
                    raise self._damaged("it ends in the middle") from None
                if len(self._text) - self._position > LONGEST_ELEMENT:
                    raise self._damaged(str(error)) from None
            self._refill()

    def _expect(self, character: str) -> None:
        if self._next_character() != character:
            raise self._damaged(f"expected {character!r}, got {self._text[self._position]!r}")
        self._position += 1
        self._next_character()

    def _next_character(self, *, may_end: bool = False) -> str:
        while True:
            match = self._space.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position < len(self._text):
                return self._text[self._position]
            if self._is_last:
                if may_end:
                    return ""
                raise self._damaged("it ends in the middle")
            self._refill()

    def _refill(self) -> None:
        try:
            block = self._stream.read(BLOCK)
        except UnicodeDecodeError:
            raise self._damaged("bytes that are not UTF-8") from None
        self._text = self._text[self._position :] + block
        self._position = 0
        self._is_last = not block
        self._was_split = False

    def _damaged(self, what: str) -> IgcdError:
        return IgcdError(f"{self._source} is damaged or cut short: {what}; download or unpack it again")
