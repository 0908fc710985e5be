"""The review server killed between and within decisions: what it answered is in the catalog, and nothing is twice."""

import contextlib
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from tools.torture.catalog_invariants import check_whole
from tools.torture.forks import Child, start
from tools.torture.judging import BrokenInvariantError, require
from tools.torture.pattern_encoder import PatternEncoder

from igcd.workspace import queries
from igcd.workspace.catalog import open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.init import init_workspace

if TYPE_CHECKING:
    from tools.torture.kills import Killer

N_DECISIONS = 12


def review(killer: "Killer", place: Path, photos: Path) -> object:
    """Decides about a workspace on a page that is killed again and again; the names and the history in the end."""
    from tools.torture.kills import N_FIRST, Gentle

    folder = place / "ws"
    init_workspace(folder, photos, from_folders=True)
    with open_catalog(folder) as catalog:
        discover(catalog, PatternEncoder())
    n_done = 0
    child: Child | None = None
    client: httpx.Client | None = None
    try:
        while n_done < N_DECISIONS:
            if child is None or client is None:
                child, client = serve(folder, killer.logs / "review.log")
            is_killed = not isinstance(killer, Gentle) and killer.rng.random() < 0.4
            status = _decide(client, folder, n_done, child if is_killed else None, killer)
            if child.status is not None:
                client.close()
                child, client = None, None
            with open_catalog(folder) as catalog:
                check_whole(catalog, (N_FIRST,))
                n_noted = len(queries.history(catalog, limit=1000))
            require(n_noted in (n_done, n_done + 1), "a decision is noted once or not at all")
            require(n_noted == n_done + 1 or status != 200, "a decision that was answered is in the catalog")
            n_done = n_noted
    finally:
        if client is not None:
            client.close()
        if child is not None:
            child.kill()
    with open_catalog(folder) as catalog:
        past = [(one.kind, one.author) for one, _ in queries.history(catalog, limit=1000)]
        return {"names": [(category.id, category.title) for category in queries.categories(catalog)], "past": past}


def serve(folder: Path, log: Path) -> tuple[Child, httpx.Client]:
    """A server in a process of its own, and a client that has entered."""
    child = start(("review", folder, "--no-browser", "--port", "0", "--author", "ada"), log)
    end = time.monotonic() + 60
    try:
        while time.monotonic() < end and child.poll() is None:
            found = re.search(r"(http://[^/\s]+)/\?token=(\S+)\n", log.read_text())
            if found:
                client = httpx.Client(base_url=found[1], timeout=30, follow_redirects=True)
                client.get("/", params={"token": found[2]})
                return child, client
            time.sleep(0.01)
    except httpx.HTTPError:
        pass  # said below, with what the server said
    child.kill()
    raise BrokenInvariantError(f"the review server did not start: {child.said().err[-300:]}")


def _decide(client: httpx.Client, folder: Path, number: int, doomed: Child | None, killer: "Killer") -> int | None:
    """Sends decision `number`, while the server may be killed. The status of the answer, if there is one."""
    with open_catalog(folder, read_only=True) as catalog:
        known = queries.categories(catalog)
    category = known[number % len(known)]
    body: dict[str, Any] = {"seen": {category.id: category.version}, "text": f"kind {category.id} {number}"}
    path = f"/api/categories/{category.id}/name"
    if number % 5 == 4:
        with open_catalog(folder, read_only=True) as catalog:
            last = queries.history(catalog, limit=1)[0][0]
        path, body = "/api/undo", {"decision": last.id}
    if doomed is None:
        answer = client.post(path, json=body)
        require(answer.status_code == 200, f"a decision is taken: {answer.status_code} {answer.text[:200]}")
        return answer.status_code
    delay = killer.rng.uniform(0, 0.04)
    killed: list[bool] = []
    thread = threading.Timer(delay, lambda: killed.append(doomed.kill()))
    thread.start()
    status = None
    with contextlib.suppress(httpx.HTTPError):  # the server is gone: whether it decided is for the catalog to say
        status = client.post(path, json=body).status_code
    thread.join()
    if killed == [True]:
        killer.kills.append("review")
    return status
