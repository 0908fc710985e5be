"""Part e: a crowd on the review page. Pages and programs decide at once; nothing is lost, nothing happens twice."""

import collections
import json
import os
import random
import shutil
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from tools.torture.catalog_invariants import check_whole
from tools.torture.forks import Child
from tools.torture.images import fingerprints
from tools.torture.judging import BrokenInvariantError, Verdict, describe, require, wrong_with_sentence
from tools.torture.pattern_encoder import PatternEncoder
from tools.torture.review_kills import serve
from tools.torture.tiny_world import photos

from igcd.errors import IgcdError
from igcd.workspace import decisions, queries
from igcd.workspace.catalog import ConflictError, open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.init import init_workspace
from igcd.workspace.undo import undo

N_PAGES, N_PROGRAMS, N_READERS = 6, 2, 2
REQUESTS = 60
"""Decisions that each page and each program sends in a trial."""


class LoadTrials:
    """Rounds by number: pages over HTTP and programs on the catalog itself, all deciding about one workspace."""

    def __init__(self, scratch: Path, seed: int, n_requests: int = REQUESTS) -> None:
        self._scratch, self._seed, self._n_requests = scratch, seed, n_requests
        self._photos = photos(scratch / "photos")
        self._before = fingerprints(self._photos)

    def __call__(self, number: int) -> Iterator[tuple[str, Verdict]]:
        """Every decision is taken or refused in a sentence; then the catalog says whether that was true."""
        folder = self._scratch / "ws"
        shutil.rmtree(folder, ignore_errors=True)
        init_workspace(folder, self._photos, from_folders=True)
        with open_catalog(folder) as catalog:
            discover(catalog, PatternEncoder())
        try:
            crowd = _Crowd(folder, f"{self._seed} load {number}", self._scratch, self._n_requests)
            crowd.decide()
            crowd.check()
            require(fingerprints(self._photos) == self._before, "no original was changed")
        except BrokenInvariantError as error:
            yield "crowd", Verdict("fault", str(error))
            return
        except Exception as error:
            yield "crowd", Verdict("fault", describe(error))
            return
        for (who, outcome), n in crowd.outcomes.items():
            for _ in range(n):
                yield who, Verdict(outcome)


class _Crowd:
    """Everybody who decides in one round."""

    def __init__(self, folder: Path, seed: str, scratch: Path, n_requests: int) -> None:
        self._folder, self._seed, self._scratch, self._n_requests = folder, seed, scratch, n_requests
        self._taken: list[int] = []  # ids of decisions that the server confirmed
        self._wrong: list[str] = []
        self.outcomes: collections.Counter[tuple[str, Any]] = collections.Counter()
        self._lock = threading.Lock()

    def decide(self) -> None:
        """Pages, readers and programs at the same time, until all have sent what they have to."""
        server, client = serve(self._folder, self._scratch / "review.log")
        try:
            programs = [self._program(number) for number in range(N_PROGRAMS)]
            threads = [threading.Thread(target=self._guarded, args=(self._page, client, i)) for i in range(N_PAGES)]
            threads += [
                threading.Thread(target=self._guarded, args=(self._reader, client, i)) for i in range(N_READERS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for program, report in programs:
                require(program.wait(300) == 0, "a program that decides comes to its end")
                said = json.loads(report.read_text())
                self._taken += said["taken"]
                self.outcomes["program", "accepted"] += len(said["taken"])
                self.outcomes["program", "refused"] += said["refused"]
        finally:
            client.close()
            server.kill()
        require(not self._wrong, self._wrong[0] if self._wrong else "")

    def check(self) -> None:
        """The catalog holds what the server confirmed."""
        with open_catalog(self._folder) as catalog:
            check_whole(catalog)
            noted = [decision.id for decision, _ in queries.history(catalog, limit=1_000_000)]
            names = [category.name for category in queries.categories(catalog) if category.name]
        require(len(set(self._taken)) == len(self._taken), "no decision was answered twice")
        require(
            sorted(noted) == sorted(self._taken), "the catalog holds the decisions that were answered, and no other"
        )
        require(len(set(names)) == len(names), "no two categories have one name")

    def _guarded(self, work: Any, client: httpx.Client, number: int) -> None:  # noqa: ANN401 - a function
        try:
            work(client, random.Random(f"{self._seed} {work.__name__} {number}"))
        except Exception as error:
            self._wrong.append(f"{work.__name__}: {describe(error)} {error}")

    def _page(self, client: httpx.Client, rng: random.Random) -> None:
        for at in range(self._n_requests):
            answer = client.get("/api/overview")
            require(answer.status_code == 200, f"overview: {answer.status_code}")
            path, body = decision_request(answer.json(), rng, f"{rng.randrange(10**9)} {at}")
            self._note("page", client.post(path, json=body))

    def _reader(self, client: httpx.Client, rng: random.Random) -> None:
        paths = (
            "/api/overview",
            "/api/map",
            "/api/tree",
            "/api/galleries",
            "/api/history",
            "/api/photos/1/thumbnail",
            "/api/revision",
        )
        for _ in range(self._n_requests):
            answer = client.get(rng.choice(paths))
            require(answer.status_code == 200, f"reading: {answer.status_code} {answer.text[:200]}")

    def _note(self, who: str, answer: httpx.Response) -> None:
        with self._lock:
            if answer.status_code == 200:
                self._taken.append(answer.json()["decision"]["id"])
                self.outcomes[who, "accepted"] += 1
            elif answer.status_code in (400, 404, 409, 422):
                wrong = wrong_with_sentence(answer.json()["error"])
                require(wrong is None, f"page: {wrong}")
                self.outcomes[who, "refused"] += 1
            else:
                raise BrokenInvariantError(f"a decision was answered with {answer.status_code}: {answer.text[:200]}")

    def _program(self, number: int) -> tuple[Child, Path]:
        """Another process that decides on the catalog itself, as `igcd undo` and scripts do."""
        report = self._scratch / f"program-{number}.json"
        report.unlink(missing_ok=True)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                report.write_text(
                    json.dumps(
                        _decide_directly(self._folder, random.Random(f"{self._seed} {number}"), self._n_requests)
                    )
                )
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        return Child(pid, report), report


def decision_request(overview: dict[str, Any], rng: random.Random, text: str) -> tuple[str, dict[str, Any]]:
    """A decision that makes sense by what a page was shown; by the time it is sent it may no longer do."""
    categories = overview["categories"]
    one, other = rng.choice(categories), rng.choice(categories)
    seen = {one["id"]: one["version"]}
    kind = rng.random()
    if kind < 0.1 and overview["undo"]:
        return "/api/undo", {"decision": overview["undo"]["id"]}
    if kind < 0.13 and one["id"] != other["id"] and len(categories) > 4:
        return f"/api/categories/{one['id']}/merge", {
            "seen": seen | {other["id"]: other["version"]},
            "into": other["id"],
        }
    if kind < 0.2:
        return f"/api/categories/{one['id']}/defer", {"seen": seen}
    if kind < 0.3:
        everything = {category["id"]: category["version"] for category in categories}
        chosen = rng.sample(range(13, 25), 2)
        return "/api/photos/split", {"seen": everything, "photo_ids": chosen, "name": text}
    return f"/api/categories/{one['id']}/name", {"seen": seen, "text": text}


def _decide_directly(folder: Path, rng: random.Random, n_requests: int) -> dict[str, Any]:
    taken, n_refused = [], 0
    with open_catalog(folder) as catalog:
        for at in range(n_requests):
            category = rng.choice(queries.categories(catalog))
            try:
                if rng.random() < 0.2:
                    done = undo(catalog, author="script")
                else:
                    done = decisions.name(
                        catalog,
                        category.id,
                        f"script {rng.randrange(10**9)} {at}",
                        author="script",
                        seen={category.id: category.version},
                    )
                taken.append(done.id)
            except (ConflictError, IgcdError) as error:
                require(wrong_with_sentence(str(error)) is None, "a refusal is one sentence")
                n_refused += 1
    return {"taken": taken, "refused": n_refused}
