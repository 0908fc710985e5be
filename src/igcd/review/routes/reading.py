"""What there is to look at. Each answer is one state of the catalog, with the versions a decision hands back."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import JSONResponse, Response

from igcd.errors import IgcdError
from igcd.review.jobs import Jobs
from igcd.review.routes.answers import (
    ByRevision,
    Json,
    PathId,
    category_json,
    decision_json,
    map_bytes,
    photos_json,
    titles,
    versions_of,
)
from igcd.review.undoing import next_redo, next_undo
from igcd.workspace import looking, queries
from igcd.workspace.catalog import Catalog
from igcd.workspace.outlook import outlook
from igcd.workspace.photo_map import photo_map

FIRST_PHOTOS = 120
"""Photos whose details come with a category: more than a screen shows; the page asks for the others as it scrolls."""
MAX_PHOTOS_ASKED = 400


def reading_routes(catalog: Catalog, jobs: Jobs, *, read_only: bool, uses_paths: bool, author: str) -> APIRouter:
    """The routes that read."""
    router = APIRouter(prefix="/api")
    drawn = ByRevision[bytes]()

    def draw_map() -> bytes:
        places = photo_map(catalog)
        head = {
            "revision": queries.revision(catalog),
            "n_photos": len(places.photo_ids),
            "versions": versions_of(catalog, np.unique(places.category_ids).tolist()),
        }
        return map_bytes(places, head)

    @router.get("/revision")
    def revision() -> Json:
        return {"revision": queries.revision(catalog), "job": jobs.as_json()}

    @router.get("/overview")
    def overview() -> Json:
        with catalog.snapshot():
            status, now, title_of = queries.status(catalog), outlook(catalog), titles(catalog)
            past = queries.history(catalog, limit=200)
            undo, redo = next_undo(past, author), next_redo(past, author)
            return {
                "revision": status.revision,
                "read_only": read_only,
                "author": author,
                "workspace": catalog.folder.resolve().name,
                "folder": str(catalog.folder.resolve()) if uses_paths else None,
                "uses_paths": uses_paths,
                "status": {**vars(status), "stages": [vars(stage) for stage in status.stages]},
                "outlook": {**vars(now), "sentence": now.sentence()},
                "discovered": queries.last_discovery(catalog),
                "job": jobs.as_json(),
                "n_to_look": looking.n_to_look(catalog),
                "queue": [category.id for category in queries.queue(catalog)],
                "categories": [category_json(category) for category in queries.categories(catalog)],
                "undo": undo and decision_json(undo, title_of),
                "redo": redo and decision_json(redo, title_of),
            }

    @router.get("/categories/{category_id}")
    def category(category_id: PathId) -> Response:
        with catalog.snapshot():
            try:
                shown = queries.category(catalog, category_id)
            except IgcdError as error:
                raise HTTPException(404, str(error)) from None
            near = queries.nearest_known(catalog, category_id)
            answer = {
                "revision": queries.revision(catalog),
                "category": category_json(shown),
                "photo_ids": queries.photo_ids_of(catalog, category_id),
                "photos": photos_json(queries.photos_of(catalog, category_id, limit=FIRST_PHOTOS).photos),
                "near": [
                    {
                        "category": category_json(known.category),
                        "similarity": known.similarity,
                        "photos": photos_json(known.photos),
                    }
                    for known in near
                ],
                "versions": {
                    shown.id: shown.version,
                    **{known.category.id: known.category.version for known in near},
                },
            }
        return JSONResponse(answer)  # FastAPI would walk through all ids one by one

    @router.get("/photos")
    def photos(ids: Annotated[str, Query(pattern=r"^\d{1,15}(,\d{1,15})*$", max_length=MAX_PHOTOS_ASKED * 16)]) -> Json:
        wanted = [int(photo_id) for photo_id in ids.split(",")][:MAX_PHOTOS_ASKED]
        return {"photos": photos_json(queries.photos(catalog, wanted))}

    @router.get("/map")
    def map_of_photos() -> Response:
        with catalog.snapshot():
            answer = drawn.get(queries.revision(catalog), draw_map)
        return Response(answer, media_type="application/octet-stream")

    @router.get("/history")
    def history(limit: Annotated[int, Query(ge=1, le=500)] = 100) -> Json:
        with catalog.snapshot():
            title_of = titles(catalog)
            past = queries.history(catalog, limit=limit)
            return {
                "decisions": [
                    {**decision_json(decision, title_of), "is_undone": is_undone} for decision, is_undone in past
                ]
            }

    return router
