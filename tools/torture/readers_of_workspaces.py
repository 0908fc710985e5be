"""Torture of what reads a workspace: the catalog, its adapted model, labels beside photos, and requests to the page."""

import json
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.torture.formats import json_text, mutate_csv, mutate_sqlite, mutate_tree
from tools.torture.judging import require, wrong_with_sentence
from tools.torture.odd_values import ODD_NUMBERS, odd_text
from tools.torture.pattern_encoder import PatternEncoder
from tools.torture.reader import Reader
from tools.torture.tiny_world import photos

from igcd.review.app import make_app
from igcd.workspace import queries
from igcd.workspace.accept import accept_stage
from igcd.workspace.backup import restore
from igcd.workspace.catalog import BACKUP_FILE, CATALOG_FILE, Catalog, open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.export import export
from igcd.workspace.init import init_workspace
from igcd.workspace.labels import labels_from_table
from igcd.workspace.photo_map import photo_map
from igcd.workspace.photos import find_photos
from igcd.workspace.undo import undo

TOKEN = "token-of-the-torture"
BODIES: dict[str, Any] = {
    "/api/categories/3/name": {"seen": {"3": 1}, "text": "oak"},
    "/api/categories/3/accept": {"seen": {"3": 1}},
    "/api/categories/3/merge": {"seen": {"3": 1, "1": 1}, "into": 1},
    "/api/categories/3/reject": {"seen": {"3": 1}},
    "/api/categories/3/defer": {"seen": {"3": 1}},
    "/api/photos/split": {"seen": {"3": 1}, "photo_ids": [14, 15], "name": "elm"},
    "/api/photos/move": {"seen": {"3": 1}, "photo_ids": [14], "to": 1},
    "/api/photos/unsure": {"seen": {"3": 1}, "photo_ids": [14, 15]},
    "/api/undo": {"decision": 1},
}
READ = (
    "/api/overview",
    "/api/revision",
    "/api/categories/3",
    "/api/looks/1?otherwise=0",
    "/api/galleries/dark",
    "/api/conditions",
    "/api/find?text=a&near=48.1,11.6&within=5&order=place",
    "/api/photos?ids=1,2,3",
    "/api/map",
    "/api/photos/1/thumbnail",
    "/api/photos/1/picture",
    "/static/main.js",
)


ODD_HEADERS = (
    *("http://[", "http://[::1", "http://127.0.0.1:8765@evil.example", "null", "//", "http://127.0.0.1:8765/["),
    *("127.0.0.1:8765/x", "127.0.0.1:8765/static/", "[::1", "127.0.0.1:99999", "evil.example", "bytes=9-1,-5,a"),
    *("igcd_review_8765=", 'igcd_review_8765="', "; ; =", "cross-site", "W/", '"'),
)
"""What a header may hold that is nearly right."""


@cache
def sample_workspace(scratch: Path) -> Path:
    """A workspace with a discovery in it; its photos lie beside it."""
    folder = scratch / "ws"
    shutil.rmtree(scratch, ignore_errors=True)
    init_workspace(folder, photos(scratch / "photos"), from_folders=True)
    with open_catalog(folder) as catalog:
        discover(catalog, PatternEncoder())
        accept_stage(catalog, author="ann")
        undo(catalog, author="ann")  # the copy stays, and there is something to decide about
    return folder


def check_catalog(folder: Path) -> None:
    """Everything that a command or the page shows of a workspace can be shown."""
    with open_catalog(folder, read_only=True) as catalog:
        shown = queries.status(catalog)
        json.dumps([vars(stage) for stage in shown.stages])
        for category in queries.categories(catalog):
            queries.photos_of(catalog, category.id)
            queries.nearest_known(catalog, category.id)
        queries.queue(catalog)
        queries.low_confidence(catalog)
        photo_map(catalog)
        queries.history(catalog)
        queries.broken_photos(catalog)
        require(shown.n_photos >= 0, "a number of photos")


def check_export(folder: Path) -> None:
    """What is exported is whole."""
    with open_catalog(folder, read_only=True) as catalog:
        for kind in ("csv", "coco", "labelstudio"):
            n_photos = export(catalog, kind, folder / f"out.{kind}", link=False)
            require((folder / f"out.{kind}").stat().st_size > 0 and n_photos >= 0, "an export has a content")


def check_restored(folder: Path) -> None:
    """A copy that is sound takes the place of a damaged catalog; one that is damaged, too, is refused."""
    restore(folder)
    check_catalog(folder)


def check_discovery(folder: Path) -> None:
    """A workspace that is damaged is refused, or its photos are looked at again."""
    with open_catalog(folder) as catalog:
        discover(catalog, PatternEncoder())


def workspace_readers(scratch: Path) -> list[Reader]:
    """The readers, each with its sample; `scratch` is a folder for making them."""
    folder = sample_workspace(scratch)
    content = {CATALOG_FILE: (folder / CATALOG_FILE).read_bytes()}
    how = {CATALOG_FILE: mutate_sqlite}
    listed = b"path,category\nash/00-000.jpg,ash\nbeech/01-001.jpg,beech\nunlabeled/a/07-000.jpg,oak\n"
    images = scratch / "photos"
    found = find_photos([images], workspace=folder)
    page = _Page(folder)
    asked = json.dumps(BODIES["/api/photos/move"]).encode()
    return [
        Reader("catalog", content, how, check_catalog),
        Reader(
            "catalog: restore",
            {CATALOG_FILE: b"no database", BACKUP_FILE: (folder / BACKUP_FILE).read_bytes()},
            {BACKUP_FILE: mutate_sqlite},
            check_restored,
            0.5,
        ),
        Reader("catalog: discover", content, how, check_discovery, 0.1),
        Reader("catalog: export", content, how, check_export, 0.3),
        Reader(
            "labels of photos",
            {"labels.csv": listed},
            {"labels.csv": mutate_csv},
            lambda f: labels_from_table(f / "labels.csv", images, found),
        ),
        Reader("page: decisions", {"request": asked}, {"request": _mutated_post}, page.answer),
        Reader(
            "page: reading",
            {"request": b'{"photo_ids": [14], "to": 1, "seen": {}}'},
            {"request": _mutated_get},
            page.answer,
        ),
    ]


def _mutated_post(_: bytes, rng: random.Random) -> bytes:
    path = rng.choice(list(BODIES))
    body = json_text(mutate_tree(BODIES[path], rng)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        path = path.replace("3", quote(str(rng.choice(ODD_NUMBERS))))
    return json.dumps({"method": "POST", "path": path, "body": body.decode("latin1"), "headers": {}}).encode()


def _mutated_get(_: bytes, rng: random.Random) -> bytes:
    path = rng.choice(READ)
    head, equals = path.partition("=")[:2]
    odd = quote(rng.choice((odd_text(rng)[:3000], str(rng.choice(ODD_NUMBERS)))).encode("utf-8", "replace"))
    match rng.randrange(4):
        case 0 if equals:
            path = f"{head}={odd}"
        case 1:
            parts = path.split("/")
            parts[rng.randrange(1, len(parts))] = odd
            path = "/".join(parts)
        case 2:
            path = f"{path}{'&' if '?' in path else '?'}{odd}={odd}"
        case _:
            path = path.replace("1", odd).replace("3", odd)
    name = rng.choice(
        ("host", "origin", "cookie", "range", "if-none-match", "accept", "sec-fetch-site", "x-forwarded-host")
    )
    headers = {name: rng.choice((odd[:2000], rng.choice(ODD_HEADERS)))} if rng.random() < 0.3 else {}
    return json.dumps(
        {"method": rng.choice(("GET", "GET", "HEAD", "PUT", "OPTIONS")), "path": path, "body": "", "headers": headers}
    ).encode()


class _Page:
    """The review page in this process, asked without a network."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._client: Any = None
        self._catalog: Catalog | None = None

    def answer(self, folder: Path) -> None:
        """The page answers whatever is asked with a page, a picture, JSON, or one sentence, and never with a 5xx."""
        from starlette.testclient import TestClient

        if self._client is None:
            self._catalog = open_catalog(self._folder)
            app = make_app(self._catalog, token=TOKEN, read_only=False, author="ada")
            self._client = TestClient(app, base_url="http://127.0.0.1:8765", raise_server_exceptions=True)
            enter(self._client)
        asked = _asked((folder / "request").read_bytes())
        headers = {"content-type": "application/json", **asked["headers"]}
        answer = self._client.request(
            asked["method"], asked["path"], content=asked["body"].encode("latin1"), headers=headers
        )
        require(answer.status_code < 500, f"status {answer.status_code}")
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        if answer.status_code >= 400 and answer.content and is_json:
            wrong = wrong_with_sentence(str(answer.json().get("error", "")))
            require(wrong is None, f"page: {wrong}")


def _asked(content: bytes) -> dict[str, Any]:
    """A request from its file; what is none is sent as the body of a decision."""
    try:
        asked = json.loads(content)
    except (ValueError, RecursionError):
        asked = None
    if isinstance(asked, dict) and set(asked) == {"method", "path", "body", "headers"}:
        return asked
    return {"method": "POST", "path": "/api/photos/move", "body": content.decode("latin1"), "headers": {}}


def enter(client: Any) -> None:  # noqa: ANN401 - an HTTP client
    """Exchanges the token of the start link for the cookie."""
    answer = client.get("/", params={"token": TOKEN})
    require(answer.status_code == 200, "the start link opens the page")
