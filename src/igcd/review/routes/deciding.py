"""What a person decides. Every request says which versions of the categories the page showed."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException
from pydantic import BaseModel, ConfigDict, Field

from igcd.review.routes.answers import MAX_ID, Json, PathId, decision_json, titles
from igcd.workspace import decisions, queries
from igcd.workspace.action import Decision
from igcd.workspace.catalog import Catalog
from igcd.workspace.undo import undo as take_back

Id = Annotated[int, Field(ge=1, le=MAX_ID)]
Version = Annotated[int, Field(ge=0, le=MAX_ID)]
Text = Annotated[str, Field(max_length=1_000)]


class Request(BaseModel):
    """A decision: `seen` are the versions of all categories it touches, as the page showed them."""

    model_config = ConfigDict(extra="forbid")
    seen: dict[Id, Version]


class NameRequest(Request):
    """A name for a category."""

    text: Text


class MergeRequest(Request):
    """Where to put a category."""

    into: Id


class PhotosRequest(Request):
    """A decision about photos."""

    photo_ids: Annotated[list[Id], Field(min_length=1, max_length=200_000)]


class SplitRequest(PhotosRequest):
    """Photos that are a category of their own."""

    name: Text | None = None


class MoveRequest(PhotosRequest):
    """Photos that belong to a category."""

    to: Id


class UndoRequest(BaseModel):
    """Which decision to take back; given the id of an undo, that one is taken back."""

    model_config = ConfigDict(extra="forbid")
    decision: Id


def deciding_routes(catalog: Catalog, *, read_only: bool, author: str) -> APIRouter:
    """The routes that decide; all of them refuse when the page is for reading only."""

    def require_writable() -> None:
        if read_only:
            raise HTTPException(403, "this page is read-only; start `igcd review` without --read-only to decide")

    router = APIRouter(prefix="/api", dependencies=[Depends(require_writable)])

    def answer(decision: Decision) -> Json:
        with catalog.snapshot():
            return {
                "decision": decision_json(decision, titles(catalog)),
                "versions": decision.versions,
                "revision": queries.revision(catalog),
            }

    @router.post("/categories/{category_id}/name")
    def name(category_id: PathId, body: NameRequest) -> Json:
        return answer(decisions.name(catalog, category_id, body.text, author=author, seen=body.seen))

    @router.post("/categories/{category_id}/accept")
    def accept(category_id: PathId, body: Request) -> Json:
        return answer(decisions.accept_category(catalog, category_id, author=author, seen=body.seen))

    @router.post("/categories/{category_id}/merge")
    def merge(category_id: PathId, body: MergeRequest) -> Json:
        return answer(decisions.merge(catalog, category_id, body.into, author=author, seen=body.seen))

    @router.post("/categories/{category_id}/reject")
    def reject(category_id: PathId, body: Request) -> Json:
        return answer(decisions.reject(catalog, category_id, author=author, seen=body.seen))

    @router.post("/categories/{category_id}/defer")
    def defer(category_id: PathId, body: Request) -> Json:
        return answer(decisions.defer(catalog, category_id, author=author, seen=body.seen))

    @router.post("/photos/split")
    def split(body: SplitRequest) -> Json:
        return answer(decisions.split(catalog, body.photo_ids, author=author, name=body.name, seen=body.seen))

    @router.post("/photos/move")
    def move(body: MoveRequest) -> Json:
        return answer(decisions.move(catalog, body.photo_ids, body.to, author=author, seen=body.seen))

    @router.post("/photos/unsure")
    def unsure(body: PhotosRequest) -> Json:
        return answer(decisions.set_unsure(catalog, body.photo_ids, author=author, seen=body.seen))

    @router.post("/undo")
    def undo(body: UndoRequest) -> Json:
        return answer(take_back(catalog, body.decision, author=author))

    return router
