"""A review page that is served for real, on a free port, and a Chromium to look at it: for tests and benchmarks."""

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from igcd.review.app import make_app
from igcd.workspace.catalog import open_catalog

TOKEN = "token-of-the-test"


def chromium_path() -> str | None:
    """Where Debian puts Chromium, or what IGCD_CHROMIUM says."""
    return os.environ.get("IGCD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def served(folder: Path, *, read_only: bool = False, author: str = "ada") -> Iterator[str]:
    """Serves a workspace while it is open; yields the start link."""
    with open_catalog(folder, read_only=read_only) as catalog, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        app = make_app(catalog, token=TOKEN, read_only=read_only, author=author)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/?token={TOKEN}"
        finally:
            server.should_exit = True
            thread.join(timeout=10)
