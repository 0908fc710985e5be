"""Names of categories: any text, and before a slash the name of the parent."""

import unicodedata
from dataclasses import dataclass

from igcd.errors import IgcdError

MAX_LENGTH = 200
BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs, as Unicode has it, that show nothing: fillers of Hangul and the empty Braille cell."""


@dataclass(frozen=True)
class CategoryName:
    """A name as it is shown, and the parent in it."""

    full: str
    parent: str | None


def parse_name(text: str) -> CategoryName:
    """A name without needless spaces; what stands before the last slash is the parent.

    >>> parse_name("Parus / Parus major")
    CategoryName(full='Parus/Parus major', parent='Parus')
    >>> parse_name(" owl ")
    CategoryName(full='owl', parent=None)
    """
    normalized = unicodedata.normalize("NFC", text)
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in normalized.strip()):
        raise IgcdError(f"a name is text on one line, got {text!r}; leave out tabs, line breaks and control characters")
    parts = [" ".join(part.split()) for part in normalized.split("/")]
    if not all(parts):
        raise IgcdError(f'a name must not be empty, nor a part of one, got {text!r}; write "owl" or "genus/species"')
    if not all(any(map(_is_visible, part)) for part in parts):
        raise IgcdError(f"a name needs visible letters, got {text!a}; type it again")
    full = "/".join(parts)
    if len(full) > MAX_LENGTH:
        raise IgcdError(f"a name has at most {MAX_LENGTH} letters, got {len(full)}; shorten it")
    return CategoryName(full, "/".join(parts[:-1]) or None)


def _is_visible(letter: str) -> bool:
    """Whether a letter shows by itself, as spaces, joiners, marks of direction and combining accents do not."""
    return unicodedata.category(letter)[0] in "LNPS" and letter not in BLANKS
