"""What a mutated input led to: accepted with its invariants holding, refused in one sentence, or a fault."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from igcd.data.images import BrokenImageError
from igcd.errors import IgcdError

MAX_SENTENCE = 300
ROOT = Path(__file__).parents[2]


class BrokenInvariantError(Exception):
    """An input was accepted, and what came of it cannot be right."""


class TookTooLongError(BaseException):
    """An input was still being read when its time was over; no `except Exception` may take it for something else."""


@dataclass(frozen=True)
class Verdict:
    """The outcome, and for a fault what it was: the same words for the same fault."""

    outcome: Literal["accepted", "refused", "skipped", "fault"]
    words: str = ""


def judge(work: Callable[[], object]) -> Verdict:
    """Does the work and judges how it ended.

    >>> judge(lambda: None).outcome, judge(lambda: {}["x"]).outcome
    ('accepted', 'fault')
    """
    try:
        work()
    except (IgcdError, BrokenImageError) as error:
        wrong = wrong_with_sentence(str(error))
        return Verdict("fault", f"{wrong}: {place_of(error)}") if wrong else Verdict("refused", str(error))
    except OSError as error:
        if error.filename is not None:  # the command line makes a sentence of those
            return Verdict("refused", str(error))
        return Verdict("fault", describe(error))
    except (Exception, TookTooLongError) as error:
        return Verdict("fault", describe(error))
    return Verdict("accepted")


def wrong_with_sentence(sentence: str) -> str | None:
    r"""What keeps a refusal from being one printable sentence of fewer than 300 characters; None where nothing does.

    >>> wrong_with_sentence("expected a folder, got a file; give a folder")
    >>> wrong_with_sentence("got '\0'")
    'sentence not printable'
    """
    if not sentence.strip():
        return "sentence empty"
    if not sentence.isprintable():
        return "sentence not printable"
    if len(sentence) >= MAX_SENTENCE:
        return "sentence too long"
    return None


def require(holds: object, what: str) -> None:
    """An invariant of an accepted input."""
    if not holds:
        raise BrokenInvariantError(what)


def describe(error: BaseException) -> str:
    """A fault in words that do not depend on the input: its type and where it arose."""
    what = f"{type(error).__name__} ({error})" if isinstance(error, BrokenInvariantError) else type(error).__name__
    return f"{what}: {place_of(error)}"


def place_of(error: BaseException) -> str:
    """The innermost line of this project that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/igcd/" in frame.filename] or frames
    if not ours:
        return "nowhere"
    last = ours[-1]
    return f"{last.filename.rpartition('/src/')[2]}:{last.lineno} {last.name}"
