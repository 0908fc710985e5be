"""Pictures of photos, by their id in the catalog and no other way."""

from fastapi import APIRouter, HTTPException, Response

from igcd.data.images import BrokenImageError
from igcd.errors import IgcdError
from igcd.review.routes.answers import PathId
from igcd.review.thumbnails import Thumbnails

KEPT_BY_BROWSER = {"Cache-Control": "private, max-age=86400, immutable"}
"""The page asks with `?v=` and a key of this server: another workspace on the same port has other addresses."""


def picture_routes(thumbnails: Thumbnails) -> APIRouter:
    """The routes of pictures."""
    router = APIRouter(prefix="/api/photos")

    @router.get("/{photo_id}/thumbnail")
    async def thumbnail(photo_id: PathId) -> Response:
        try:
            return _jpeg(await thumbnails.small(photo_id))
        except (IgcdError, BrokenImageError) as error:
            raise HTTPException(404, str(error)) from None

    @router.get("/{photo_id}/picture")
    async def picture(photo_id: PathId) -> Response:
        try:
            return _jpeg(await thumbnails.large(photo_id))
        except (IgcdError, BrokenImageError) as error:
            raise HTTPException(404, str(error)) from None

    return router


def _jpeg(content: bytes) -> Response:
    return Response(content, media_type="image/jpeg", headers=KEPT_BY_BROWSER)
