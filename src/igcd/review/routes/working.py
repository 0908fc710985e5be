"""What the terminal does, from the page: add photos, discover, accept the stage, export."""

from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from igcd.errors import IgcdError
from igcd.review.folders import complete
from igcd.review.jobs import Jobs, Reporter
from igcd.review.routes.answers import Json
from igcd.workspace.accept import accept_stage
from igcd.workspace.catalog import Catalog
from igcd.workspace.export import export as write_export
from igcd.workspace.photos import add_photos

MAX_PATH = 4096
PathText = Annotated[str, Field(min_length=1, max_length=MAX_PATH)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DiscoverRequest(_Body):
    """How fine new categories shall be; as the last time when unset."""

    granularity: Annotated[float, Field(ge=-3, le=3)] | None = None


class AddRequest(_Body):
    """A folder of this machine, or a photo."""

    path: PathText


class ExportRequest(_Body):
    """Where to write what."""

    kind: Literal["csv", "coco", "labelstudio", "folders"]
    path: PathText
    confirmed_only: bool = False
    min_probability: Annotated[float, Field(ge=0, le=1)] = 0.0


def working_routes(catalog: Catalog, jobs: Jobs, *, read_only: bool, uses_paths: bool, author: str) -> APIRouter:
    """The routes of work.

    `uses_paths`: whether paths of this machine may be named, that is whether nobody from another machine can reach it.
    """

    def require_writable() -> None:
        if read_only:
            raise HTTPException(403, "this page is read-only; start `igcd review` without --read-only to decide")

    def require_paths() -> None:
        if not uses_paths:
            raise HTTPException(
                403,
                "paths can be entered only on the machine that runs igcd review; use igcd add and igcd export there",
            )

    router = APIRouter(prefix="/api/work", dependencies=[Depends(require_writable)])

    @router.get("/folders", dependencies=[Depends(require_paths)])
    def folders(start: Annotated[str, Query(max_length=MAX_PATH)] = "") -> Json:
        return {"folders": [{"path": path, "n_photos": n_photos} for path, n_photos in complete(start)]}

    @router.post("/add", dependencies=[Depends(require_paths)])
    def add(body: AddRequest) -> Json:
        path = _absolute(body.path)

        def work(reporter: Reporter) -> str:
            reporter.working("reading photos")
            return add_photos(catalog, [path], progress=reporter.progress).sentence()

        return {"job": jobs.start("add", work).id}

    @router.post("/discover")
    def discover(body: DiscoverRequest) -> Json:
        def work(reporter: Reporter) -> str:
            from igcd.workspace.adapt import current_encoder
            from igcd.workspace.discover import discover as look
            from igcd.workspace.features import encoder_of

            reporter.working("getting ready")
            encoder = current_encoder(catalog, encoder_of(catalog))
            reporter.working("looking at photos")
            report = look(
                catalog,
                encoder,
                granularity=body.granularity,
                embedding=reporter.progress,
                working=reporter.working,
            )
            return report.sentence()

        return {"job": jobs.start("discover", work).id}

    @router.post("/accept")
    def accept(_body: _Body) -> Json:
        def work(reporter: Reporter) -> str:
            reporter.working("accepting the stage")
            closed = accept_stage(catalog, author=author).payload
            n_new = len(closed["categories"])
            return (
                f"stage {closed['stage']} accepted: {n_new:,} new known {'category' if n_new == 1 else 'categories'}, "
                f"{closed['n_labels']:,} photos labeled."
            )

        return {"job": jobs.start("accept", work).id}

    @router.post("/export", dependencies=[Depends(require_paths)])
    def export(body: ExportRequest) -> Json:
        path = _absolute(body.path)

        def work(reporter: Reporter) -> str:
            reporter.working("writing")
            n_photos = write_export(
                catalog,
                body.kind,
                path,
                confirmed_only=body.confirmed_only,
                min_probability=body.min_probability,
            )
            return f"{n_photos:,} photos written to {path}"

        return {"job": jobs.start("export", work).id}

    @router.post("/cancel")
    def cancel(_body: _Body) -> Json:
        jobs.cancel()
        return {"job": jobs.as_json()}

    return router


def _absolute(text: str) -> Path:
    """A path of this machine, from its root or the person's home."""
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise IgcdError(f"a path must begin with / or ~, got {text!r}; write all of it")
    return path
