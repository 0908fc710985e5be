"""For the API reference: puts the examples of docstrings into code blocks, where brackets are no links."""

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^[ ]*>>> .*(?:\n(?!\s*$).*)*)", re.MULTILINE)


def fenced(docstring: str) -> str:
    """The text with each example, from its first `>>>` to the next empty line, in a code block."""
    return DOCTEST.sub(lambda example: f"```pycon\n{example[0]}\n```", docstring)


class FencedDoctests(griffe.Extension):
    """Applies `fenced` to every docstring that is read."""

    def on_instance(self, *, obj: griffe.Object, **_options: Any) -> None:  # noqa: ANN401 - as griffe hands it over
        """Called by griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
