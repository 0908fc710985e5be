"""What helps to decide: groups that need a look, more like this, parts of a category, the tree of categories."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from igcd.review.routes.answers import MAX_ID, ByRevision, Json, PathId, category_json, photos_json, versions_of
from igcd.review.routes.deciding import Id
from igcd.workspace import galleries, looking, queries, search
from igcd.workspace.catalog import Catalog
from igcd.workspace.looking import Look
from igcd.workspace.queries import NearKnown
from igcd.workspace.search import Wish
from igcd.workspace.similar import Branch, PhotoIndex

MAX_SIMILAR = 400
FIRST_PHOTOS = 120
MAX_FOLDERS = 500
MAX_LISTED, LISTED_BEFORE = 60, 10
"""Groups that stand in the list on the left, and how many of them before the one that is shown."""


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

    looked = ByRevision[tuple[list[Look], list[float]]]()

    def find_looks() -> tuple[list[Look], list[float]]:
        groups = looking.looks(catalog)
        return groups, looking.growth(catalog, groups)

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
    ) -> Response:
        """A group, the ids of all and those around it; where it is gone `otherwise`, or else the first one."""
        with catalog.snapshot():
            groups, growth = looked.get(queries.revision(catalog), find_looks)
            at_of = {one.id: at for at, one in enumerate(groups)}
            wanted = (look_id, *([] if otherwise is None else [otherwise]), *(one.id for one in groups[:1]))
            at = next((at_of[one] for one in wanted if one in at_of), None)
            shown = None if at is None else groups[at]
            listed = groups[max(0, (at or 0) - LISTED_BEFORE) :][:MAX_LISTED]
            best = looking.alternatives_of_looks(catalog, listed)
            answer = photos_answer(
                list(shown.photo_ids) if shown else [],
                looking.with_photos(catalog, best[shown.id]) if shown else [],
            )
            return JSONResponse(
                {
                    **answer,
                    "look": shown and shown.id,
                    "looks": [one.id for one in groups],
                    "listed": [
                        {
                            "id": one.id,
                            "n_photos": one.n_photos,
                            "cover": one.photo_ids[0],
                            "best": best[one.id][0][0] if best[one.id] else None,
                            "probability": best[one.id][0][1] if best[one.id] else None,
                        }
                        for one in listed
                    ],
                    "growth": growth,
                }
            )

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
            elsewhere = index.elsewhere([one.photo for one in found], body.photo_ids)
        similarity = {one.photo: round(one.similarity, 4) for one in found}
        return {**answer, "similarity": similarity, "elsewhere": elsewhere}

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
        place: Literal["", "known", "unknown"] = "",
        near: Annotated[str, Query(max_length=60)] = "",
        within: Annotated[float, Query(gt=0, le=20_000)] = 100.0,
        min_probability: Annotated[float, Query(ge=0, le=1)] = 0.0,
        max_probability: Annotated[float, Query(ge=0, le=1)] = 1.0,
        order: Literal["uncertain", "certain", "newest", "oldest", "file", "place", "stage"] = "uncertain",
    ) -> Response:
        with catalog.snapshot():
            wish = Wish(
                text=text,
                kind=kind,
                stage=stage,
                folder=folder,
                since=since,
                until=until,
                place=place,
                near=near,
                within=within,
                min_probability=min_probability,
                max_probability=max_probability,
                order=order,
            )
            found = search.find(catalog, wish)
            photos = queries.photos(catalog, found.photo_ids[:FIRST_PHOTOS])
            answer = {
                "revision": queries.revision(catalog),
                "n_photos": found.n_photos,
                "photo_ids": found.photo_ids,
                "photos": photos_json(photos),
                "versions": queries.live_versions(catalog),
            }
        return JSONResponse(answer)

    @router.get("/conditions")
    def conditions() -> Json:
        """What a search can choose from."""
        with catalog.snapshot():
            return {
                "folders": search.folders_of(catalog)[:MAX_FOLDERS],
                "places": [vars(place) for place in search.places_of(catalog)],
            }

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
