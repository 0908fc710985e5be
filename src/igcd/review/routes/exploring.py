"""What helps to decide: groups that need a look, more like this, parts of a category, the tree of categories."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from igcd.review.routes.answers import MAX_ID, Json, PathId, category_json, photos_json, versions_of
from igcd.review.routes.deciding import Id
from igcd.workspace import galleries, looking, queries, search
from igcd.workspace.catalog import Catalog
from igcd.workspace.queries import NearKnown
from igcd.workspace.search import Wish
from igcd.workspace.similar import Branch, PhotoIndex

MAX_SIMILAR = 400
FIRST_PHOTOS = 120
MAX_FOLDERS = 500


class SimilarRequest(BaseModel):
    """Photos to find more like, and how many."""

    model_config = ConfigDict(extra="forbid")
    photo_ids: Annotated[list[Id], Field(min_length=1, max_length=10_000)]
    n: Annotated[int, Field(ge=1, le=MAX_SIMILAR)] = 24


def near_json(near: list[NearKnown]) -> list[Json]:
    """Categories to compare with, and their photos."""
    return [
        {
            "category": category_json(one.category),
            "similarity": one.similarity,
            "photos": photos_json(one.photos),
        }
        for one in near
    ]


def exploring_routes(catalog: Catalog, index: PhotoIndex) -> APIRouter:
    """The routes that explore; none of them changes anything."""
    router = APIRouter(prefix="/api")

    def photos_answer(photo_ids: list[int], near: list[NearKnown]) -> Json:
        photos = queries.photos(catalog, photo_ids)
        touched = [*(photo.category for photo in photos), *(one.category.id for one in near)]
        return {
            "revision": queries.revision(catalog),
            "photo_ids": [photo.id for photo in photos],
            "photos": photos_json(photos),
            "near": near_json(near),
            "versions": versions_of(catalog, touched),
        }

    @router.get("/looks/{look_id}")
    def look(
        look_id: Annotated[int, PathParameter(ge=0, le=MAX_ID)],
        otherwise: Annotated[int | None, Query(ge=0, le=MAX_ID)] = None,
    ) -> Json:
        """A group and the list of all; where it is gone `otherwise`, or else the first one."""
        with catalog.snapshot():
            groups = looking.looks(catalog)
            by_id = {one.id: one for one in groups}
            wanted = (look_id, *([] if otherwise is None else [otherwise]), *by_id)
            shown = next((by_id[one] for one in wanted if one in by_id), None)
            answer = photos_answer(
                list(shown.photo_ids) if shown else [],
                looking.with_photos(catalog, shown.alternatives) if shown else [],
            )
            return {
                **answer,
                "look": shown and shown.id,
                "looks": [
                    {
                        "id": one.id,
                        "n_photos": one.n_photos,
                        "cover": one.photo_ids[0],
                        "gain": one.gain,
                        "best": one.alternatives[0][0] if one.alternatives else None,
                        "probability": one.alternatives[0][1] if one.alternatives else None,
                    }
                    for one in groups
                ],
                "growth": looking.growth(catalog, groups),
            }

    @router.get("/photos/{photo_id}/alternatives")
    def alternatives(photo_id: PathId) -> Json:
        with catalog.snapshot():
            near = looking.with_photos(catalog, looking.alternatives_of(catalog, photo_id))
            return {"near": near_json(near), "versions": versions_of(catalog, (one.category.id for one in near))}

    @router.post("/similar")
    def similar(body: SimilarRequest) -> Json:
        found = index.nearest(body.photo_ids, n=body.n)
        with catalog.snapshot():
            answer = photos_answer([*body.photo_ids, *(one.photo for one in found)], [])
        return {**answer, "similarity": {one.photo: round(one.similarity, 4) for one in found}}

    @router.get("/categories/{category_id}/parts")
    def parts(category_id: PathId, n: Annotated[int, Query(ge=2, le=12)] = 2) -> Json:
        groups = index.parts(category_id, n=n)
        with catalog.snapshot():
            shown = queries.category(catalog, category_id)
            return {"parts": groups, "versions": {shown.id: shown.version}}

    @router.get("/galleries")
    def all_galleries() -> Json:
        return {"galleries": galleries.n_in_galleries(catalog)}

    @router.get("/galleries/{kind}")
    def one_gallery(kind: Annotated[str, PathParameter(max_length=40)]) -> Json:
        with catalog.snapshot():
            found = galleries.gallery(catalog, kind)
            answer = photos_answer(found.photo_ids, [])
            suggestions = {photo: vars(one) for photo, one in found.suggestions.items()}
            others = versions_of(catalog, (one.category for one in found.suggestions.values()))
            return {**answer, "versions": {**answer["versions"], **others}, "suggestions": suggestions}

    @router.get("/find")
    def find(
        text: Annotated[str, Query(max_length=200)] = "",
        kind: Literal["", "labeled", "confirmed", "guessed", "unsure"] = "",
        stage: Annotated[int | None, Query(ge=0, le=1_000_000)] = None,
        folder: Annotated[str, Query(max_length=1_000)] = "",
        since: Annotated[str, Query(max_length=10, pattern=r"^[0-9-]*$")] = "",
        until: Annotated[str, Query(max_length=10, pattern=r"^[0-9-]*$")] = "",
        min_probability: Annotated[float, Query(ge=0, le=1)] = 0.0,
        max_probability: Annotated[float, Query(ge=0, le=1)] = 1.0,
        order: Literal["uncertain", "certain", "newest", "oldest", "file", "place", "stage"] = "uncertain",
    ) -> Response:
        with catalog.snapshot():
            wish = Wish(text, kind, stage, folder, since, until, min_probability, max_probability, order)
            found = search.find(catalog, wish)
            photos = queries.photos(catalog, found.photo_ids[:FIRST_PHOTOS])
            answer = {
                "revision": queries.revision(catalog),
                "n_photos": found.n_photos,
                "photo_ids": found.photo_ids,
                "photos": photos_json(photos),
                "versions": versions_of(catalog, (category.id for category in queries.categories(catalog))),
                "folders": search.folders_of(catalog)[:MAX_FOLDERS],
            }
        return JSONResponse(answer)

    @router.get("/tree")
    def tree() -> Json:
        root = index.tree()
        return {"tree": None if root is None else _branch_json(root)}

    return router


def _branch_json(branch: Branch) -> dict[str, Any]:
    return {
        "category": branch.category,
        "height": round(branch.height, 4),
        "parts": [_branch_json(part) for part in branch.parts],
    }
