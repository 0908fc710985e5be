"""The page itself: the start link, the HTML, and the scripts and styles beside it."""

import hashlib
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.staticfiles import StaticFiles

from igcd.review.security import Access, cookie_name


class Statics(StaticFiles):
    """Scripts and styles; the browser asks each time whether they are still the same, so an update shows at once."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        """The file, or that it has not changed."""
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


def statics() -> Statics:
    """The files of the page, as they were installed."""
    return Statics(directory=Path(str(files("igcd.review") / "static")))


def page_routes(access: Access, *, title: str, read_only: bool) -> APIRouter:
    """The start link and the page."""
    templates = Environment(loader=PackageLoader("igcd.review"), autoescape=True, undefined=StrictUndefined)
    page = templates.get_template("page.html.j2").render(
        title=title, read_only=read_only, picture_key=hashlib.sha256(access.session.encode()).hexdigest()[:12]
    )
    locked = templates.get_template("locked.html.j2").render()
    onward = templates.get_template("onward.html.j2").render()
    router = APIRouter()

    @router.get("/")
    def start(request: Request, token: str | None = None) -> Response:
        host = request.headers.get("host", "")
        if token is not None:
            # Right or wrong, the token goes from the address bar. After a click on another site or file the browser
            # keeps a strict cookie back for redirects too, so that a page of this server has to lead on.
            is_from_here = request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")
            response = RedirectResponse("/", status_code=303) if is_from_here else HTMLResponse(onward)
            if access.opens(token):
                response.set_cookie(cookie_name(host), access.session, httponly=True, samesite="strict")
            return response
        if not access.holds_cookie(request.cookies, host):
            return HTMLResponse(locked, status_code=401)
        return HTMLResponse(page)

    return router
