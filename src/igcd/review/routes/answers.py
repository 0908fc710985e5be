"""Catalog objects as the JSON the page gets."""

import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
from fastapi import Path

from igcd.review.sentences import TitleOf, decision_sentence
from igcd.workspace import queries
from igcd.workspace.action import Decision
from igcd.workspace.catalog import Catalog
from igcd.workspace.photo_map import PhotoMap
from igcd.workspace.queries import Category, Photo

Json = dict[str, Any]
T = TypeVar("T")
MAX_ID = 2**53
"""Above it JavaScript rounds, and SQLite's whole numbers end soon after."""
PathId = Annotated[int, Path(ge=1, le=MAX_ID)]


class ByRevision(Generic[T]):
    """What was worked out last, for as long as the catalog is the same."""

    def __init__(self) -> None:
        self._kept: tuple[int, T] | None = None

    def get(self, revision: int, make: Callable[[], T]) -> T:
        """What `make` gives; it is only called when the revision is another one than the last time."""
        kept = self._kept  # one look: another thread may put something else there
        if kept is None or kept[0] != revision:
            kept = self._kept = (revision, make())
        return kept[1]


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


def map_bytes(places: PhotoMap, head: Json) -> bytes:
    """The map as arrays, which the page reads without parsing 100,000 numbers; little endian.

    Four bytes with the length of the head, the head as JSON, spaces up to a multiple of 8; then, an entry for each
    photo: ids (float64, exact up to `MAX_ID`), x and y (float32), categories (uint32, 0 for none), kinds (uint8) and
    whether they are settled (uint8): shown for orientation, a lasso leaves them out.
    """
    text = json.dumps(head).encode()
    text += b" " * (-(len(text) + 4) % 8)
    parts = (
        (places.photo_ids, "<f8"),
        (places.xy[:, 0], "<f4"),
        (places.xy[:, 1], "<f4"),
        (places.category_ids, "<u4"),
        (places.kinds, "u1"),
        (places.is_landmark | places.is_confirmed, "u1"),
    )
    order = np.argsort(places.kinds, kind="stable")  # drawn in this order: what there is to decide lies on top
    arrays = (values[order].astype(kind).tobytes() for values, kind in parts)
    return b"".join([len(text).to_bytes(4, "little"), text, *arrays])


def titles(catalog: Catalog) -> TitleOf:
    """What each category is called, also those that are no more."""
    known = queries.titles(catalog)
    return lambda category_id: known.get(category_id, queries.title_of(category_id, None))


def versions_of(catalog: Catalog, category_ids: Iterable[int | None]) -> dict[int, int]:
    """The versions of the live categories among these: what a decision about their photos has to hand back."""
    live = queries.live_versions(catalog)
    return {category_id: live[category_id] for category_id in {*category_ids} & live.keys() if category_id is not None}
