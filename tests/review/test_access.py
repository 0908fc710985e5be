"""Who gets in: the token, the cookie, other web sites, other hosts, and what every answer says."""

import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("httpx", reason="the routes are tested with httpx")

from fastapi import Request
from packaging.requirements import Requirement
from review.page_client import HARE, HOST, client_of, decide, seen
from starlette.datastructures import URL

from igcd.workspace import queries


def test_the_start_link_is_exchanged_for_a_cookie(catalog):
    client = client_of(catalog, opened=False)
    assert client.get("/").status_code == 401
    wrong = client.get("/", params={"token": "another"}, follow_redirects=False)
    assert wrong.headers["location"] == "/" and "set-cookie" not in wrong.headers
    assert client.get("/", params={"token": "another"}).status_code == 401
    response = client.get("/", params={"token": "the token"}, follow_redirects=False)
    assert response.status_code == 303 and response.headers["location"] == "/"
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("igcd_review_8765=") and "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert "the token" not in cookie
    assert client.get("/").status_code == 200


READING = ["overview", "revision", "categories/2", "looks/1", "photos?ids=1", "map", "history", "tree"]
READING += [
    "galleries",
    "galleries/dark",
    "find",
    "conditions",
    "categories/2/parts",
    "photos/4/alternatives",
    "work/folders",
]
READING += ["photos/1/thumbnail", "photos/1/picture"]


@pytest.mark.parametrize("path", READING)
def test_nothing_is_read_without_the_cookie(catalog, path):
    response = client_of(catalog, opened=False).get(f"/api/{path}")
    assert response.status_code == 401 and "igcd review" in response.json()["error"]


def test_nothing_is_decided_without_the_cookie(catalog):
    before = queries.revision(catalog)
    client = client_of(catalog, opened=False)
    assert decide(client, f"categories/{HARE}/reject", seen={}).status_code == 401
    client.cookies.set("igcd_review_8765", "guessed")
    assert decide(client, f"categories/{HARE}/reject", seen={}).status_code == 401
    assert queries.revision(catalog) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:8765"},
        {"Host": "127.0.0.1.evil.example:8765"},
        {"Host": "user@127.0.0.1:8765"},
        {"Host": "127.0.0.1:8765/x"},
        {"Host": "127.0.0.1:8765?x"},
        {"Host": "127.0.0.1:8765#x"},
        {"Host": "127.0.0.1:"},
        {"Host": "[127.0.0.1]x:8765"},
        {"Host": "192.168.0.7:8765"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_other_web_sites_are_refused(client, headers):
    before = client.get("/api/revision").json()
    assert client.get("/api/overview", headers=headers).status_code == 403
    body = {"seen": seen(client, HARE)}
    assert client.post(f"/api/categories/{HARE}/reject", json=body, headers=headers).status_code == 403
    assert client.get("/api/revision").json() == before


@pytest.mark.parametrize("path", [f"/api/{path}" for path in READING] + ["/api", "/nothing", "//api/overview"])
def test_who_gets_in_is_decided_by_the_path_that_is_routed_by_alone(catalog, path, monkeypatch):
    # Starlette before 1.0.1 put the Host header, which the sender chooses, before the path of `request.url`.
    monkeypatch.setattr(Request, "url", property(lambda request: URL(f"http://{HOST}/x{request.scope['path']}")))
    assert client_of(catalog, opened=False).get(f"http://{HOST}{path}").status_code == 401


def test_the_extra_demands_a_starlette_that_cannot_be_misled_by_the_host_header():
    root = Path(__file__).parents[2]
    extra = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["review"]
    (starlette,) = (demand for demand in map(Requirement, extra) if demand.name == "starlette")
    assert not starlette.specifier.contains("1.0.0")
    (pinned,) = re.findall(r"^starlette==(.+)$", (root / "constraints.txt").read_text(), re.MULTILINE)
    assert starlette.specifier.contains(pinned)


def test_a_link_from_elsewhere_still_opens_the_page_but_shows_nothing_without_its_token(catalog):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    client = client_of(catalog, opened=False)
    assert client.get("/", headers=headers).status_code == 401
    # a redirect would come without the strict cookie, so that a page leads on
    onward = client.get("/?token=the+token", headers=headers, follow_redirects=False)
    assert onward.status_code == 200 and 'content="0; url=/"' in onward.text and "token" not in onward.text
    assert client.get("/").status_code == 200
    framed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.get("/", headers=framed).status_code == 403


def test_listening_everywhere_takes_addresses_but_no_foreign_names(catalog):
    client = client_of(catalog, opened=False, host="0.0.0.0")
    assert client.get("/", headers={"Host": "192.168.0.7:8765"}).status_code == 401
    assert client.get("/", headers={"Host": "evil.example:8765"}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/api/overview", "/static/main.js", "/nothing", "/api/categories/999"])
def test_every_answer_has_the_safety_headers(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in policy


def test_the_page_has_no_inline_script_or_style_and_loads_nothing_from_elsewhere(client):
    page = client.get("/").text
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|style=|https?://", page)
    for address in re.findall(r'(?:src|href)="(/[^"]+)"', page):
        assert client.get(address).status_code == 200


def test_only_json_of_a_sane_size_is_read(client):
    assert client.post("/api/undo", content="decision=1", headers={"Content-Type": "text/plain"}).status_code == 415
    huge = {"Content-Type": "application/json", "Content-Length": "99999999"}
    assert client.post("/api/undo", content=b"{}", headers=huge).status_code == 413
    endless = (part for part in [b"{}"])
    assert client.post("/api/undo", content=endless, headers={"Content-Type": "application/json"}).status_code == 411


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_do_nothing(client, method):
    assert client.request(method, "/api/overview").status_code == 405


def test_there_is_no_description_of_the_interface_that_loads_from_the_net(client):
    assert {client.get(path).status_code for path in ("/docs", "/redoc", "/openapi.json")} == {404}
