"""`igcd review`: serves the review page of a workspace until interrupted."""

import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from igcd.cli.author import author_name
from igcd.errors import IgcdError

DEFAULT_PORT = 8765


def review(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the workspace.", show_default=False)],
    host: Annotated[str, typer.Option(help="Address to listen on; anything but 127.0.0.1 lets others in.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int | None,
        typer.Option(help="0 is any free one; when unset 8765, or any if that is taken.", min=0, max=65535),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Read only: nothing can be decided.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
    author: Annotated[
        str | None, typer.Option(help="Who decides; your login name when unset.", show_default=False)
    ] = None,
) -> None:
    """Look at what was discovered, and name, merge, split or reject it, on a local page."""
    try:
        import uvicorn

        from igcd.review.app import make_app
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "starlette", "uvicorn"):
            raise
        raise IgcdError(
            f"the review page needs {error.name}, which comes with the extra `review`; in the checkout, "
            "pip install '.[review]'"
        ) from None
    from igcd.review.security import is_loopback
    from igcd.workspace.catalog import open_catalog

    token = secrets.token_urlsafe(24)
    with open_catalog(folder, read_only=read_only) as catalog, _listen(host, port) as listener:
        app = make_app(catalog, token=token, read_only=read_only, author=author_name(author), host=host)
        link = f"http://{_shown_host(host)}:{listener.getsockname()[1]}/?token={token}"
        if not is_loopback(host):
            typer.echo(
                f"igcd: listening on {host}: whoever has the link and reaches this machine can look at the photos"
                f"{'' if read_only else ' and decide'}, and the connection is not encrypted",
                err=True,
            )
        typer.echo(f"{'looking at' if read_only else 'reviewing'} {folder}: {link}")
        typer.echo("press Ctrl+C to end; every decision is saved at once")
        # No access log: the token would be in it. The port is open already, so that the link works from now on.
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2
        )
        with nullcontext() if no_browser else _browser_at(link, None if read_only else folder):
            try:
                uvicorn.Server(config).run(sockets=[listener])
            except KeyboardInterrupt:
                typer.echo("closed")


def _listen(host: str, port: int | None) -> socket.socket:
    """A listening socket. `port` None takes the usual port, or any free one if that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = (DEFAULT_PORT, 0) if port is None else (port,)
    for candidate in ports:
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, candidate))
            listener.listen(128)
        except (OSError, UnicodeError) as error:
            listener.close()
            if candidate == ports[-1]:
                reason = error.strerror if isinstance(error, OSError) else "not a host name"
                raise IgcdError(
                    f"cannot listen on {host} port {candidate} ({reason}); give another --host or --port 0"
                ) from None
        else:
            return listener
    raise AssertionError("the last port returns or raises")


def _shown_host(host: str) -> str:
    """The host as it stands in a link somebody can open."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - only recognized
        return socket.gethostname().lower()
    return f"[{host}]" if ":" in host else host


@contextmanager
def _browser_at(link: str, folder: Path | None) -> Iterator[None]:
    """Opens the link in a browser, by a file that leads to it and is removed at the end.

    Everybody on a machine can list the command lines of its programs, and the token would be in that of the browser.
    """
    file = _file_leading_to(link, folder)
    if file is not None:
        threading.Thread(target=_open_browser, args=(file.as_uri(),), daemon=True).start()
    try:
        yield
    finally:
        if file is not None:
            file.unlink(missing_ok=True)


def _file_leading_to(link: str, folder: Path | None) -> Path | None:
    """A page that only its owner can read, in `folder` or among the temporary files; None where neither takes it.

    `folder` comes first because browsers in a sandbox of their own, like Ubuntu's, cannot see temporary files.
    """
    for place in (folder, None):
        try:
            handle, name = tempfile.mkstemp(prefix=".open-review-", suffix=".html", dir=place)
            with os.fdopen(handle, "w", encoding="utf-8") as page:
                page.write(f'<!doctype html>\n<meta http-equiv="refresh" content="0; url={escape(link)}">\n')
        except OSError:
            continue
        return Path(name)
    return None


def _open_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
