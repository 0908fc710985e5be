"""The routes of the page without a browser: a client that has opened it, and what it sends."""

from fastapi.testclient import TestClient

from igcd.review.app import make_app

HOST = "127.0.0.1:8765"
OWL, HARE, FOX = 1, 2, 3  # known, new, new


def client_of(catalog, *, opened=True, **options):
    app = make_app(catalog, token="the token", author="ada", **options)
    client = TestClient(app, base_url=f"http://{HOST}")
    if opened:
        client.get("/", params={"token": "the token"})
    return client


def decide(client, path, **body):
    return client.post(f"/api/{path}", json=body)


def seen(client, *category_ids):
    categories = {category["id"]: category for category in client.get("/api/overview").json()["categories"]}
    return {str(category_id): categories[category_id]["version"] for category_id in category_ids}
