"""Which decision "undo" and "redo" mean on the page: the last ones of the same author."""

from collections.abc import Iterable, Sequence

from igcd.workspace.action import Decision

History = Sequence[tuple[Decision, bool]]
"""Decisions, the newest first, and whether each was undone."""


def next_undo(history: History, author: str) -> Decision | None:
    """The author's last decision that stands; what came before a stage was closed is left to `igcd undo`."""
    for decision, is_undone in _since_closing(history):
        if decision.kind != "undo" and not is_undone and decision.author == author:
            return decision
    return None


def next_redo(history: History, author: str) -> Decision | None:
    """The author's last undo that stands, as long as they have decided nothing new since; to redo, undo it.

    An undo of an undo is a redo already and no candidate.
    """
    for decision, is_undone in _since_closing(history):
        if decision.author != author:
            continue
        if decision.kind != "undo":
            return None
        if not is_undone and decision.payload["kind"] not in ("undo", "close"):
            return decision
    return None


def _since_closing(history: History) -> Iterable[tuple[Decision, bool]]:
    for decision, is_undone in history:
        if decision.kind == "close" and not is_undone:
            return
        yield decision, is_undone
