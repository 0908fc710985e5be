"""The routes of the review page: who gets in, what is answered, what a decision does, and what is refused."""

import io
import json
import re
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("httpx", reason="the routes are tested with httpx")

from fastapi import Request
from fastapi.testclient import TestClient
from packaging.requirements import Requirement
from PIL import Image
from starlette.datastructures import URL
from workspace.sample_catalog import sample_workspace

from igcd.review.app import make_app
from igcd.workspace import decisions, queries
from igcd.workspace.catalog import open_catalog
from igcd.workspace.photo_map import photo_map
from igcd.workspace.undo import undo

HOST = "127.0.0.1:8765"
OWL, HARE, FOX = 1, 2, 3  # known, new, new


@pytest.fixture
def photos(tmp_path):
    return sample_workspace(tmp_path, known={"owl": 3}, novel={"hare": 5, "fox": 4}, n_unsure=2)


@pytest.fixture
def catalog(photos, tmp_path):  # noqa: ARG001 - they are in it
    with open_catalog(tmp_path / "ws") as opened:
        yield opened


def client_of(catalog, *, opened=True, **options):
    app = make_app(catalog, token="the token", author="ada", **options)
    client = TestClient(app, base_url=f"http://{HOST}")
    if opened:
        client.get("/", params={"token": "the token"})
    return client


@pytest.fixture
def client(catalog):
    with client_of(catalog) as opened:
        yield opened


def decide(client, path, **body):
    return client.post(f"/api/{path}", json=body)


def seen(client, *category_ids):
    categories = {category["id"]: category for category in client.get("/api/overview").json()["categories"]}
    return {str(category_id): categories[category_id]["version"] for category_id in category_ids}


# --- who gets in


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


# --- looking


def test_the_overview_has_queue_figures_and_versions(client, catalog):
    overview = client.get("/api/overview").json()
    assert overview["queue"] == [HARE, FOX]  # the larger one helps more
    assert [category["title"] for category in overview["categories"]] == ["owl", "new 2", "new 3"]
    assert overview["status"]["n_unsure"] == 2 and overview["n_to_look"] == 3
    assert overview["revision"] == queries.revision(catalog)
    assert overview["undo"] is None and overview["redo"] is None and not overview["read_only"]


def test_a_category_comes_with_photos_in_order_and_look_alikes(client, photos):
    shown = client.get(f"/api/categories/{HARE}").json()
    assert shown["photo_ids"] == photos["hare"]
    assert [photo["id"] for photo in shown["photos"]] == photos["hare"] and shown["photos"][0]["is_peak"]
    (near,) = shown["near"]
    assert near["category"]["title"] == "owl" and near["photos"]
    assert shown["versions"] == {str(HARE): shown["category"]["version"], str(OWL): near["category"]["version"]}


def test_a_category_that_is_not_there_is_404_with_a_sentence(client):
    response = client.get("/api/categories/99")
    assert response.status_code == 404 and "there is no category 99" in response.json()["error"]


@pytest.mark.parametrize("category_id", ["0", "-1", "x", "99999999999999999999999"])
def test_an_id_that_cannot_be_is_refused_with_a_sentence(client, category_id):
    response = client.get(f"/api/categories/{category_id}")
    assert response.status_code == 422 and "not understood" in response.json()["error"]


def test_what_needs_a_look_comes_in_groups_with_alternatives(client, photos):
    answer = client.get("/api/looks/1").json()
    assert answer["look"] == 1 and set(answer["photo_ids"]) == set(photos["unsure"])
    assert [one["n_photos"] for one in answer["listed"]] == [2, 1]  # then a photo of owl that is not very likely
    assert [one["id"] for one in answer["listed"]] == answer["looks"]
    assert [near["category"]["id"] for near in answer["near"]] == [OWL, HARE, FOX]
    assert answer["growth"] == sorted(answer["growth"]) and len(answer["growth"]) == 3
    assert client.get("/api/looks/77", params={"otherwise": 0}).json()["look"] == 0
    own = client.get(f"/api/photos/{photos['unsure'][0]}/alternatives").json()
    assert [round(near["similarity"], 2) for near in own["near"]] == [0.5, 0.35, 0.2]


def test_more_like_some_photos(client, photos):
    answer = client.post("/api/similar", json={"photo_ids": photos["fox"][:1], "n": 3}).json()
    assert answer["photo_ids"][0] == photos["fox"][0] and set(answer["photo_ids"]) == set(photos["fox"])
    assert not set(answer["photo_ids"]) & set(photos["owl"][:3])  # what is confirmed is left out
    everything = client.post("/api/similar", json={"photo_ids": photos["fox"][:1], "n": 100}).json()
    guessed = [photo["id"] for photo in everything["photos"] if photo["category"] == OWL]
    assert len(guessed) == 2 and len(everything["elsewhere"]) == 1  # the other one is not very likely an owl
    assert set(everything["elsewhere"]) < set(guessed)
    with_owl = client.post("/api/similar", json={"photo_ids": [photos["fox"][0], guessed[0]], "n": 100}).json()
    assert with_owl["elsewhere"] == []
    response = client.post("/api/similar", json={"photo_ids": [999]})
    assert response.status_code == 400 and "no features yet" in response.json()["error"]


def test_galleries_and_search(client, photos, catalog):
    with catalog.transaction() as db:
        db.execute("UPDATE photos SET near_duplicate_of = ? WHERE id = ?", (photos["hare"][0], photos["hare"][1]))
        qualities = [(photo, 0.5, 1.0) for photo in photos["hare"]] + [(photos["fox"][0], 0.1, 0.05)]
        db.executemany("INSERT INTO qualities VALUES (?, ?, ?)", qualities)
    assert client.get("/api/galleries").json()["galleries"] == {
        "mistakes": 0,
        "duplicates": 2,
        "blurred": 1,
        "dark": 1,
        "disagreements": 0,
    }
    assert client.get("/api/galleries/dark").json()["photo_ids"] == [photos["fox"][0]]
    assert client.get("/api/galleries/odd").status_code == 400
    assert client.get("/api/find", params={"text": "fox-0001"}).json()["photo_ids"] == [photos["fox"][1]]
    found = client.get("/api/find", params={"kind": "guessed", "max_probability": 0.6}).json()
    assert {photo["probability"] <= 0.6 for photo in found["photos"]} == {True}
    assert client.get("/api/find", params={"text": "%"}).json()["n_photos"] == 0
    assert client.get("/api/find", params={"order": "sideways"}).status_code == 422


def test_two_people_who_disagree_are_listed(client, photos, catalog):
    photo = photos["unsure"][0]
    decisions.move(catalog, [photo], OWL, author="ada")
    decisions.move(catalog, [photo], HARE, author="bo")
    answer = client.get("/api/galleries/disagreements").json()
    assert answer["photo_ids"] == [photo]
    assert answer["suggestions"][str(photo)]["opinions"] == ["ada: owl", "bo: new 2"]
    undo(catalog, author="bo")
    assert client.get("/api/galleries/disagreements").json()["photo_ids"] == []


WORK = {
    "discover": {},
    "add": {"path": "/tmp"},
    "accept": {},
    "export": {"kind": "csv", "path": "/tmp/never.csv"},
    "cancel": {},
}


@pytest.mark.parametrize("work", WORK)
def test_work_is_refused_when_the_page_is_for_reading_only(catalog, work):
    with client_of(catalog, read_only=True) as client:
        response = client.post(f"/api/work/{work}", json=WORK[work])
        assert response.status_code == 403 and "is read-only" in response.json()["error"]
        assert client.get("/api/work/folders").status_code == 403


def test_paths_of_this_machine_are_not_named_from_elsewhere(catalog, tmp_path):
    with client_of(catalog, host="0.0.0.0") as client:
        for work in ("add", "export"):
            response = client.post(f"/api/work/{work}", json=WORK[work])
            assert response.status_code == 403 and "only on the machine that runs" in response.json()["error"]
        assert client.get("/api/work/folders", params={"start": str(tmp_path)}).status_code == 403
        overview = client.get("/api/overview").json()
        assert overview["folder"] is None and not overview["uses_paths"]


def test_folders_are_completed(client, tmp_path):
    for name in ("July", "june", ".hidden", "april"):
        (tmp_path / "albums" / name).mkdir(parents=True)
    (tmp_path / "albums" / "July" / "a.jpg").touch()

    def offered(start):
        answer = client.get("/api/work/folders", params={"start": f"{tmp_path}/albums/{start}"}).json()
        return [(Path(one["path"]).name, one["n_photos"]) for one in answer["folders"]]

    assert offered("ju") == [("July", 1), ("june", 0)]
    assert offered(".") == [(".hidden", 0)] and len(offered("")) == 3 and offered("nowhere/x") == []
    assert client.get("/api/work/folders", params={"start": "relative/path"}).json()["folders"] == []


def test_one_piece_of_work_at_a_time_and_its_error_is_shown(client, tmp_path):
    answer = client.post("/api/work/add", json={"path": "not/absolute"})
    assert answer.status_code == 400 and "must begin with / or ~" in answer.json()["error"]
    assert client.post("/api/work/add", json={"path": str(tmp_path / "nowhere")}).status_code == 200
    for _ in range(200):
        job = client.get("/api/revision").json()["job"]
        if job["state"] != "running":
            break
        time.sleep(0.02)
    assert job["state"] == "failed" and "does not exist" in job["sentence"]


def test_details_by_id(client, photos):
    asked = [photos["fox"][1], photos["hare"][0]]
    found = client.get("/api/photos", params={"ids": ",".join(map(str, asked))}).json()["photos"]
    assert [photo["id"] for photo in found] == asked
    assert client.get("/api/photos", params={"ids": "1;DROP TABLE photos"}).status_code == 422


def places_of(content: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """The answer of the map, read as places.js reads it."""
    length = int.from_bytes(content[:4], "little")
    head, start = json.loads(content[4 : 4 + length]), 4 + length
    arrays = {}
    for name, kind in {"ids": "f8", "x": "f4", "y": "f4", "categories": "u4", "kinds": "u1", "settled": "u1"}.items():
        assert start % np.dtype(kind).itemsize == 0  # JavaScript's arrays begin at multiples of their size
        arrays[name] = np.frombuffer(content, dtype=f"<{kind}", count=head["n_photos"], offset=start)
        start += arrays[name].nbytes
    assert start == len(content)
    return head, arrays


def test_the_map_says_which_photos_are_settled(client, photos, catalog):
    head, places = places_of(client.get("/api/map").content)
    assert sorted(places["ids"]) == sorted(photo for ids in photos.values() for photo in ids)
    assert set(places["ids"][places["settled"] == 1]) == set(photos["owl"][:3])  # those with labels
    assert places["kinds"].tolist() == sorted(places["kinds"])  # labeled ones are drawn first, below the others
    assert head["versions"] == seen(client, OWL, HARE, FOX)
    expected = photo_map(catalog)
    row = {photo: at for at, photo in enumerate(expected.photo_ids.tolist())}
    order = [row[int(photo)] for photo in places["ids"]]
    assert np.allclose(np.stack([places["x"], places["y"]], axis=1), expected.xy[order], atol=1e-6)
    assert places["categories"].tolist() == expected.category_ids[order].tolist()


def test_the_map_follows_decisions(client, photos):
    fox = photos["fox"][0]
    assert client.get("/api/map").content == client.get("/api/map").content
    body = {"photo_ids": [fox], "to": OWL, "seen": seen(client, OWL, FOX)}
    assert client.post("/api/photos/move", json=body).status_code == 200
    head, places = places_of(client.get("/api/map").content)
    assert places["categories"][places["ids"] == fox].tolist() == [OWL] and head["versions"] == seen(
        client, OWL, HARE, FOX
    )


def test_pictures_are_jpegs_of_ours_by_id(client, photos):
    response = client.get(f"/api/photos/{photos['hare'][0]}/thumbnail")
    assert response.headers["content-type"] == "image/jpeg" and "private" in response.headers["cache-control"]
    assert Image.open(io.BytesIO(response.content)).size == (24, 24)
    assert client.get(f"/api/photos/{photos['hare'][0]}/picture").status_code == 200
    assert client.get("/api/photos/999/thumbnail").status_code == 404
    assert client.get("/api/photos/..%2f..%2fcatalog.sqlite/thumbnail").status_code in (404, 422)
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404


# --- deciding


def test_every_decision_reaches_the_catalog(client, catalog, photos):
    assert decide(client, f"categories/{HARE}/name", text="hare", seen=seen(client, HARE)).status_code == 200
    assert queries.category(catalog, HARE).name == "hare"
    answer = decide(client, "photos/split", photo_ids=photos["fox"][:2], seen=seen(client, FOX)).json()
    new = answer["decision"]["payload"]["new"]
    assert queries.photo_ids_of(catalog, new) == photos["fox"][:2]
    assert answer["versions"][str(FOX)] == seen(client, FOX)[str(FOX)]
    assert decide(client, f"categories/{new}/defer", seen=seen(client, new)).status_code == 200
    assert queries.category(catalog, new).is_deferred
    assert decide(client, f"categories/{new}/accept", seen=seen(client, new)).status_code == 200
    assert queries.category(catalog, new).state == "accepted"
    assert decide(client, f"categories/{new}/merge", into=HARE, seen=seen(client, new, HARE)).status_code == 200
    assert queries.category(catalog, new).merged_into == HARE
    moved = [photos["unsure"][0]]
    assert decide(client, "photos/move", photo_ids=moved, to=OWL, seen=seen(client, OWL)).status_code == 200
    assert moved[0] in queries.photo_ids_of(catalog, OWL)
    assert decide(client, "photos/unsure", photo_ids=moved, seen=seen(client, OWL)).status_code == 200
    assert moved[0] in queries.photo_ids_of(catalog, None)
    assert decide(client, f"categories/{FOX}/reject", seen=seen(client, FOX)).status_code == 200
    assert queries.category(catalog, FOX).state == "rejected"
    history = client.get("/api/history").json()["decisions"]
    assert [decision["kind"] for decision in history] == (
        ["reject", "unsure", "move", "merge", "accept", "unsure", "split", "name"]
    )
    assert {decision["author"] for decision in history} == {"ada"}
    assert history[-1]["sentence"] == "named new 2 “hare”"


def test_undo_and_redo_walk_back_and_forth(client, catalog):
    def step(which):
        decision = client.get("/api/overview").json()[which]
        assert decide(client, "undo", decision=decision["id"]).status_code == 200

    def names():
        return [queries.category(catalog, category_id).name for category_id in (HARE, FOX)]

    decide(client, f"categories/{HARE}/name", text="hare", seen=seen(client, HARE))
    decide(client, f"categories/{FOX}/name", text="fox", seen=seen(client, FOX))
    step("undo")
    assert names() == ["hare", None]
    step("undo")
    assert names() == [None, None] and client.get("/api/overview").json()["undo"] is None
    step("redo")
    assert names() == ["hare", None]
    step("redo")
    assert names() == ["hare", "fox"] and client.get("/api/overview").json()["redo"] is None
    step("undo")
    assert names() == ["hare", None]
    decide(client, f"categories/{FOX}/accept", seen=seen(client, FOX))
    assert client.get("/api/overview").json()["redo"] is None  # something new was decided


def test_undo_is_about_the_own_decisions(client, catalog):
    decide(client, f"categories/{HARE}/accept", seen=seen(client, HARE))
    decisions.accept_category(catalog, FOX, author="bo")
    assert client.get("/api/overview").json()["undo"]["payload"]["category"] == HARE


def test_somebody_elses_change_is_a_conflict_and_nothing_is_done(client, catalog):
    before = seen(client, HARE)
    decisions.name(catalog, HARE, "hare", author="bo")
    revision = queries.revision(catalog)
    response = decide(client, f"categories/{HARE}/name", text="rabbit", seen=before)
    assert response.status_code == 409 and "somebody else changed" in response.json()["error"]
    assert decide(client, f"categories/{FOX}/merge", into=HARE, seen=seen(client, FOX)).status_code == 409
    assert queries.revision(catalog) == revision and queries.category(catalog, HARE).name == "hare"


def test_what_makes_no_sense_is_refused_with_a_sentence(client):
    response = decide(client, f"categories/{HARE}/name", text="owl", seen=seen(client, HARE))
    assert response.status_code == 400 and "merge into it" in response.json()["error"]
    assert decide(client, f"categories/{HARE}/name", text="hare").status_code == 422  # which version was seen?
    assert decide(client, "photos/split", photo_ids=[], seen={}).status_code == 422
    assert decide(client, "photos/split", photo_ids=[1], seen={}, extra=1).status_code == 422
    odd = decide(client, "photos/split", photo_ids=[1], seen={}, **{"\0" + "x" * 5000: 1})
    assert odd.status_code == 422 and len(odd.json()["error"]) < 300 and odd.json()["error"].isprintable()


def test_read_only_refuses_every_decision(photos, tmp_path):
    with open_catalog(tmp_path / "ws", read_only=True) as catalog, client_of(catalog, read_only=True) as client:
        overview = client.get("/api/overview").json()
        assert overview["read_only"]
        versions = seen(client, HARE, FOX)
        requests = {
            f"categories/{HARE}/name": {"text": "x"},
            f"categories/{HARE}/accept": {},
            f"categories/{HARE}/merge": {"into": FOX},
            f"categories/{HARE}/reject": {},
            f"categories/{HARE}/defer": {},
            "photos/split": {"photo_ids": photos["hare"][:1]},
            "photos/move": {"photo_ids": photos["hare"][:1], "to": FOX},
            "photos/unsure": {"photo_ids": photos["hare"][:1]},
        }
        for path, body in requests.items():
            response = decide(client, path, **body, seen=versions)
            assert response.status_code == 403 and "is read-only" in response.json()["error"], path
        assert decide(client, "undo", decision=1).status_code == 403
        assert client.get("/api/overview").json()["revision"] == overview["revision"]
        assert client.get(f"/api/photos/{photos['hare'][0]}/thumbnail").status_code == 200
