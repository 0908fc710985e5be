"""Decisions through the routes of the page: they reach the catalog, conflict, are undone, or are refused."""

import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("httpx", reason="the routes are tested with httpx")

from review.page_client import FOX, HARE, OWL, client_of, decide, seen

from igcd.workspace import decisions, queries
from igcd.workspace.catalog import open_catalog


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
