"""A person who reviews a workspace and answers from the truth, with no more than the review page shows and offers.

Everything goes through the routes of the page, as the browser would ask them.

- The person goes through the new categories, then through what needs a look, group after group as the page orders them.
  The photos of the most numerous kind are selected, two or more of a category. "More like this" shows the 24 most alike
  among all that is not confirmed, those of the same kind are selected as well, and all of them are named, or moved to
  the category that has the name, in one decision. What else is in the category or group is left there.
- Every tenth decision the person discovers again, and looks through the categories that were found by then.

Nothing is named that the person has not been shown. A decision is one press of "name" or "move", however many photos
are selected before it; so the photos shown, the photos named and the clicks that select them are counted beside the
decisions.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient

from igcd.review.app import make_app
from igcd.workspace import queries
from igcd.workspace.catalog import Catalog

AUTHOR = "simulated person"
N_SIMILAR = 24
"""Photos that "more like this" shows."""
EVERY = 10
"""Decisions after which the person discovers again."""
PHOTOS_ASKED = 200

Shown = Mapping[str, Any]
"""A photo as the page gets it."""


class ReviewPage:
    """The page as its scripts see it: questions and decisions, each one request."""

    def __init__(self, client: TestClient) -> None:
        self._client = client

    def get(self, path: str) -> dict[str, Any]:
        """The answer to a question."""
        return self._answer(self._client.get(f"/api/{path}"))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a decision, a piece of work, or a question that is too long for an address."""
        return self._answer(self._client.post(f"/api/{path}", json=body))

    def photos(self, photo_ids: Sequence[int]) -> list[Shown]:
        """Photos by their ids, asked for as the page does while it scrolls."""
        shown: list[Shown] = []
        for start in range(0, len(photo_ids), PHOTOS_ASKED):
            ids = ",".join(map(str, photo_ids[start : start + PHOTOS_ASKED]))
            shown += self.get(f"photos?ids={ids}")["photos"]
        return shown

    def work(self, kind: str, **body: object) -> str:
        """Starts what the terminal does too, and waits until it is done; what it said."""
        self.post(f"work/{kind}", body)
        while (job := self.get("revision")["job"])["state"] == "running":
            time.sleep(0.05)
        if job["state"] != "done":
            raise RuntimeError(f"{kind} {job['state']}: {job['sentence']}")
        return str(job["sentence"])

    @staticmethod
    def _answer(response: Any) -> dict[str, Any]:  # noqa: ANN401 - httpx's
        answer: dict[str, Any] = response.json()
        if response.status_code >= 400:
            raise RuntimeError(answer["error"])
        return answer


@contextmanager
def open_page(catalog: Catalog) -> Iterator[ReviewPage]:
    """The review page of a workspace, without a browser."""
    app = make_app(catalog, token="token", author=AUTHOR)
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        client.get("/", params={"token": "token"})
        yield ReviewPage(client)


class Person:
    """Answers from the truth, through the decisions the review page has."""

    def __init__(
        self, page: ReviewPage, truth_of: Callable[[str], str], discover_again: Callable[[], object] | None = None
    ) -> None:
        """`truth_of` says what a photo shows, by its path; `discover_again` replaces the button of the page."""
        self._page, self._truth_of = page, truth_of
        self._discover_again = discover_again or (lambda: page.work("discover"))
        self.made: Counter[str] = Counter()
        self.n_shown = 0
        """Photos looked at, each as often as it was."""
        self.n_named = 0
        """Photos that decisions were about."""
        self.n_clicks = 0
        """Clicks to select them: photos to select, or to leave out of what is selected, whichever are fewer."""

    def review(self, n_decisions: int) -> None:
        """Decides so many times, or until nothing is left to look at."""
        self._review_queue(n_decisions)
        next_discovery = self.made.total() + EVERY
        self._discover_again()
        self._review_queue(n_decisions)
        seen: set[int] = set()
        while self.made.total() < n_decisions and (looks := self._page.get("looks/1")["looks"]):
            look = next((one for one in looks if one not in seen), None)
            if look is None:
                seen.clear()
                continue
            seen.add(look)
            shown = self._page.get(f"looks/{look}")["photos"]
            self._settle(*self._kinds(shown)[0], n_shown=len(shown))
            if self.made.total() >= next_discovery:
                next_discovery = self.made.total() + EVERY
                self._discover_again()
                seen.clear()
                self._review_queue(n_decisions)

    def _review_queue(self, n_decisions: int) -> None:
        """What is one thing is named, or moved to the category that has the name; the rest is left for later."""
        seen: set[int] = set()
        while self.made.total() < n_decisions:
            waiting = [category for category in self._page.get("overview")["queue"] if category not in seen]
            if not waiting:
                return
            seen.add(waiting[0])
            photos = self._page.photos(self._page.get(f"categories/{waiting[0]}")["photo_ids"])
            kind, own = self._kinds(photos)[0]
            if len(own) > 1:
                self._settle(kind, own, n_shown=len(photos))

    def _settle(self, kind: str, photos: Sequence[Shown], *, n_shown: int) -> None:
        """Says what photos are, of those shown, and more like them of the same kind: one decision."""
        ids = [photo["id"] for photo in photos]
        self.n_clicks += min(len(ids), 1 + n_shown - len(ids))  # one by one, or all and then without the others
        answer = self._page.post("similar", {"photo_ids": ids, "n": N_SIMILAR})
        similar = [one for one in answer["photos"] if one["id"] not in ids]
        right = {one["id"] for one in similar if self._truth_of(one["path"]) == kind}
        selected = {one["id"] for one in similar} - set(answer["elsewhere"])
        self.n_clicks += min(len(right ^ selected), 1 + len(right))  # from what is selected, or from nothing
        self.n_shown += len(similar)
        ids += sorted(right)
        self.n_named += len(ids)
        categories = self._page.get("overview")["categories"]
        body = {"photo_ids": ids, "seen": {category["id"]: category["version"] for category in categories}}
        category_id = next((category["id"] for category in categories if category["name"] == kind), None)
        if category_id is None:
            made = self._page.post("photos/split", {**body, "name": kind})
        else:
            made = self._page.post("photos/move", {**body, "to": category_id})
        self.made[made["decision"]["kind"]] += 1

    def _kinds(self, photos: Iterable[Shown]) -> list[tuple[str, list[Shown]]]:
        """Photos by what they show, the most numerous kind first."""
        kinds: dict[str, list[Shown]] = {}
        for photo in photos:
            self.n_shown += 1
            kinds.setdefault(self._truth_of(photo["path"]), []).append(photo)
        return sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))


def all_photos(catalog: Catalog, category_id: int | None) -> Sequence[queries.Photo]:
    """All photos of a category, or the unsure ones."""
    return queries.photos(catalog, queries.photo_ids_of(catalog, category_id))
