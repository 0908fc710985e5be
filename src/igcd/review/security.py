"""Who may talk to the page: one person with the start link, from pages of this very server, on this machine by default.

A page that listens on a local port can be reached by any web site the person has open. So each request must name a
host this server goes by (a foreign name that leads to 127.0.0.1 is DNS rebinding), must not come from a page of another
origin, and, where it reads or changes anything of the workspace, must carry the cookie that the start link gives.
"""

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognized, never bound to unless the person says so
MAX_BODY = 4_000_000
"""Bytes of a request; a decision about 100,000 photos has less than one million."""

OPEN_PATHS = ("/static/",)
"""What anybody may load besides the start page: scripts and styles. All else needs the cookie, whatever it is."""

_HOST_HEADER = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?", re.ASCII)

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Access:
    """What opens the page: the token of the start link, the secret of the cookie it is exchanged for, and host names.

    `takes_any_address`: whether any address in digits will do. Names can be rebound, addresses cannot.
    """

    token: str
    hosts: frozenset[str] = LOOPBACK
    takes_any_address: bool = False
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def knows_host(self, host_header: str) -> bool:
        """Whether a Host header is one of this server: a name or an address, a port, and nothing else.

        >>> [Access("t").knows_host(host) for host in ("localhost:8765", "evil.example:8765", "127.0.0.1:8765/x")]
        [True, False, False]
        """
        if _HOST_HEADER.fullmatch(host_header) is None:
            return False
        try:
            name = urlsplit(f"//{host_header}").hostname or ""
        except ValueError:
            return False
        return name in self.hosts or (self.takes_any_address and _is_address(name))

    def opens(self, token: str) -> bool:
        """Whether a token is that of the start link, compared in constant time."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def holds_cookie(self, cookies: Mapping[str, str], host_header: str) -> bool:
        """Whether a request carries the cookie, compared in constant time."""
        return hmac.compare_digest(cookies.get(cookie_name(host_header), "").encode(), self.session.encode())


def access_for(host: str, token: str) -> Access:
    """Who may come in when the server listens on `host`.

    >>> access_for("127.0.0.1", "t").takes_any_address, access_for("0.0.0.0", "t").takes_any_address
    (False, True)
    """
    if host in WILDCARDS:
        return Access(token, LOOPBACK | {socket.gethostname().lower()}, takes_any_address=True)
    return Access(token, LOOPBACK | {host.lower()})


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach a host."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def cookie_name(host_header: str) -> str:
    """The cookie of a page: browsers share cookies between the ports of a host, so the port is in the name.

    >>> cookie_name("127.0.0.1:8765")
    'igcd_review_8765'
    """
    try:
        port = urlsplit(f"//{host_header}").port
    except ValueError:
        port = None
    return f"igcd_review_{port or 80}"


def refusal(request: Request, access: Access) -> tuple[HTTPStatus, str] | None:
    """Why a request is not answered, as a status and a sentence; None where it is."""
    # The path that is routed by: `request.url` is put together with the Host header, which the sender chooses.
    headers, path = request.headers, str(request.scope["path"])
    host = headers.get("host", "")
    if not access.knows_host(host):
        return HTTPStatus.FORBIDDEN, "this address is not one of this server; open the link that `igcd review` printed"
    # The start link may be clicked anywhere, in a mail or a notebook: it opens nothing without its token.
    is_start = request.method == "GET" and path == "/" and headers.get("sec-fetch-mode", "navigate") == "navigate"
    if not is_start and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return HTTPStatus.FORBIDDEN, "requests from other web sites are refused; use the page itself"
    if "origin" in headers and _host_of(headers["origin"]) != host:
        return HTTPStatus.FORBIDDEN, "requests from other web sites are refused; use the page itself"
    is_open = path == "/" or path.startswith(OPEN_PATHS)
    if not is_open and not access.holds_cookie(request.cookies, host):
        return HTTPStatus.UNAUTHORIZED, "the server was restarted; open the link that `igcd review` printed last"
    if request.method == "POST":
        return _body_refusal(headers)
    return None


def _body_refusal(headers: Headers) -> tuple[HTTPStatus, str] | None:
    # A form of another site can send text, but JSON only after asking, and nobody here answers.
    if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a decision is sent as JSON; use the page itself"
    length = headers.get("content-length", "")
    if not length.isdecimal():
        return HTTPStatus.LENGTH_REQUIRED, "a decision says how long it is; use the page itself"
    if int(length) > MAX_BODY:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a decision has at most {MAX_BODY:,} bytes; choose fewer photos"
    return None


class Guard:
    """Stands before the app: refuses what `refusal` says, and puts the safety headers on every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refused = refusal(Request(scope), self.access)
        if refused is None:
            await self.app(scope, receive, send_with_headers)
            return
        status, sentence = refused
        await JSONResponse({"error": sentence}, status_code=status)(scope, receive, send_with_headers)


def _host_of(origin: str) -> str | None:
    """The host and port of an origin; None where it is not one.

    >>> _host_of("http://127.0.0.1:8765"), _host_of("http://[")
    ('127.0.0.1:8765', None)
    """
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
