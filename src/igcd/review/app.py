"""The review page as a web application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from igcd.errors import IgcdError, excerpt
from igcd.review.jobs import Jobs
from igcd.review.routes.deciding import deciding_routes
from igcd.review.routes.exploring import exploring_routes
from igcd.review.routes.pages import page_routes, statics
from igcd.review.routes.pictures import picture_routes
from igcd.review.routes.reading import reading_routes
from igcd.review.routes.working import working_routes
from igcd.review.security import Guard, access_for, is_loopback
from igcd.review.thumbnails import Thumbnails
from igcd.workspace.catalog import Catalog, ConflictError
from igcd.workspace.similar import PhotoIndex


def make_app(catalog: Catalog, *, token: str, read_only: bool = False, author: str, host: str = "127.0.0.1") -> FastAPI:
    """The page of a workspace. Whoever has `token` may look, and decide unless `read_only`, in the name of `author`.

    `host` is what the server listens on: requests under other names are refused.
    """
    access = access_for(host, token)
    thumbnails = Thumbnails(catalog)
    jobs = Jobs()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        jobs.close()
        thumbnails.close()

    # The pages about the API that FastAPI offers load scripts from the net: left out.
    app = FastAPI(title="igcd review", openapi_url=None, docs_url=None, redoc_url=None, lifespan=lifespan)
    title = catalog.folder.resolve().name
    app.include_router(page_routes(access, title=title, read_only=read_only))
    app.include_router(picture_routes(thumbnails))
    uses_paths = is_loopback(host)
    app.include_router(reading_routes(catalog, jobs, read_only=read_only, uses_paths=uses_paths, author=author))
    app.include_router(exploring_routes(catalog, PhotoIndex(catalog)))
    app.include_router(working_routes(catalog, jobs, read_only=read_only, uses_paths=uses_paths, author=author))
    app.include_router(deciding_routes(catalog, read_only=read_only, author=author))
    app.mount("/static", statics())
    app.add_middleware(Guard, access=access)
    _answer_errors_with_sentences(app)
    return app


def _answer_errors_with_sentences(app: FastAPI) -> None:
    """Every error is {"error": one sentence}; a conflict has a status of its own, so that the page can reload."""

    @app.exception_handler(ConflictError)
    def conflict(_: Request, error: ConflictError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=409)

    @app.exception_handler(IgcdError)
    def refused(_: Request, error: IgcdError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=400)

    @app.exception_handler(HTTPException)
    def failed(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": excerpt(str(error.detail))}, status_code=error.status_code)

    @app.exception_handler(RequestValidationError)
    def misunderstood(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        sentence = f"the request is not understood at {excerpt(place, limit=80)}: {excerpt(first['msg'])}"
        return JSONResponse({"error": sentence}, status_code=422)
