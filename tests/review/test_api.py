"""What the routes of the review page answer: categories, groups, galleries, search, the map, pictures, work."""

import io
import json
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("httpx", reason="the routes are tested with httpx")

from PIL import Image
from review.page_client import FOX, HARE, OWL, client_of, seen

from igcd.workspace import decisions, queries
from igcd.workspace.photo_map import photo_map
from igcd.workspace.undo import undo


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
