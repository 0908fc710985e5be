"""The one exception a user is meant to read, and how input is repeated in it."""

from collections.abc import Iterable

MAX_EXCERPT = 200
"""Characters of an input that a sentence repeats at most."""
MAX_SENTENCE = 290
"""Characters of a whole sentence at most."""


def excerpt(text: str, *, limit: int = MAX_EXCERPT) -> str:
    r"""A text to be shown on one line: what cannot be printed is escaped, and of a long one the middle is left out.

    >>> excerpt("a\x00b\n\u202ec")
    'a\\x00b\\n\\u202ec'
    >>> excerpt("0123456789" * 7_000, limit=12)
    '0123456…6789'
    """
    n_head = (limit - 1) * 2 // 3
    n_tail = limit - 1 - n_head
    if len(text) > 2 * limit:  # escaping only makes longer: what lies between is left out in any case
        return f"{_escaped(text[:limit])[:n_head]}…{_escaped(text[-limit:])[-n_tail:]}"
    shown = _escaped(text)
    return shown if len(shown) <= limit else f"{shown[:n_head]}…{shown[-n_tail:]}"


class IgcdError(Exception):
    """Bad input or a missing file: one sentence that says what was expected, what came and what to do.

    The command line prints the sentence, below it the `details`, one line each, and exits with 1; a traceback is kept
    for our own mistakes. Whatever input the sentence repeats, it stays printable and under 300 characters.
    """

    def __init__(self, sentence: str, *, details: Iterable[str] = ()) -> None:
        super().__init__(excerpt(sentence, limit=MAX_SENTENCE))
        for line in details:
            self.add_note(excerpt(line, limit=MAX_SENTENCE))  # a traceback shows them, too

    @property
    def details(self) -> tuple[str, ...]:
        """What does not fit into the sentence: lists of files, for example."""
        return tuple(getattr(self, "__notes__", ()))


def _escaped(text: str) -> str:
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
