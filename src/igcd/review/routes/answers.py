"""Catalog objects as the JSON the page gets."""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Path

from igcd.review.sentences import TitleOf, decision_sentence
from igcd.workspace import queries
from igcd.workspace.catalog import Catalog
from igcd.workspace.decisions import Decision
from igcd.workspace.queries import Category, Photo

Json = dict[str, Any]
MAX_ID = 2**53
"""Above it JavaScript rounds, and SQLite's whole numbers end soon after."""
PathId = Annotated[int, Path(ge=1, le=MAX_ID)]


def category_json(category: Category) -> Json:
    """A category with its title."""
    return {**vars(category), "title": category.title}


def photos_json(photos: Iterable[Photo]) -> list[Json]:
    """Photos; `vars` because `asdict` copies deeply, which takes longer than the query."""
    return [vars(photo) for photo in photos]


def decision_json(decision: Decision, title_of: TitleOf) -> Json:
    """A decision as it was noted down, with its sentence."""
    return {
        "id": decision.id,
        "time": decision.time,
        "author": decision.author,
        "kind": decision.kind,
        "payload": decision.payload,
        "sentence": decision_sentence(decision.kind, decision.payload, title_of),
    }


def titles(catalog: Catalog) -> TitleOf:
    """What each category is called, also those that are no more."""
    states = ("labeled", "discovered", "accepted", "rejected", "merged")
    known = {category.id: category.title for category in queries.categories(catalog, states=states)}
    return lambda category_id: known.get(category_id, f"new {category_id}")


def versions_of(catalog: Catalog, category_ids: Iterable[int | None]) -> dict[int, int]:
    """The versions of the live categories among these: what a decision about their photos has to hand back."""
    wanted = set(category_ids)
    return {category.id: category.version for category in queries.categories(catalog) if category.id in wanted}
