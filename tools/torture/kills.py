"""Part c: SIGKILL at random moments of every command that writes, then on, to the end of an undisturbed twin."""

import json
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.torture.catalog_invariants import check_whole
from tools.torture.commands import judge_command
from tools.torture.forks import Child, start
from tools.torture.images import fingerprints
from tools.torture.judging import BrokenInvariantError, Verdict, describe, require
from tools.torture.tiny_world import BACKBONE, SIZE, more_photos, photos, write_recipe

from igcd.errors import IgcdError
from igcd.workspace.catalog import Catalog, open_catalog

PATIENCE = 240.0
"""Seconds after which a command that nobody killed counts as hanging."""
MAX_KILLS = 7
N_FIRST, N_ALL = 24, 36
SCENARIOS = (
    *["run"] * 4,
    *["run, two at once"] * 2,
    *["compare"] * 3,
    *["workspace"] * 3,
    *["workspace, two at once"] * 2,
    *["review"] * 4,
)
"""A workspace has ten commands to kill and comes less often, so that all commands have their share of the kills."""
TIMES = ("seconds", "peak_memory_bytes", "versions")


@dataclass
class Killer:
    """Starts commands and kills them. Knows how long each takes, so that the kills fall into its time."""

    rng: random.Random
    logs: Path
    seconds: dict[str, float] = field(default_factory=dict)
    kills: list[str] = field(default_factory=list)

    def finish(self, *arguments: object, done: Sequence[str] = ()) -> str:
        """Lets a command come to its end: well, or with one of the sentences that say it was done before."""
        child = start(arguments, self.logs / "last.log")
        self._ended(child, str(arguments[0]), done)
        return child.said().out

    def torment(
        self, *arguments: object, again: Sequence[object] = (), done: Sequence[str] = (), both: bool = False
    ) -> None:
        """Kills a command some times, then lets it come to its end.

        again: the arguments from the second start on. done: see `finish`. both: two processes at once.
        """
        name = str(arguments[0])
        for attempt in range(self.rng.randint(1, MAX_KILLS)):
            command = again if again and attempt else arguments
            children = [start(command, self.logs / f"{number}.log") for number in range(2 if both else 1)]
            for child in children:
                time.sleep(self.rng.uniform(0, 1.15 * self.seconds.get(name, 1.0) / len(children)))
                if child.kill(group=name != "compare" or self.rng.random() < 0.7):
                    self.kills.append(f"{name}, two at once" if both else name)
                else:
                    self._ended(child, name, done, may_be_refused=both)
        self.finish(*(again or arguments), done=done)

    def _ended(self, child: Child, name: str, done: Sequence[str], *, may_be_refused: bool = False) -> None:
        code = child.wait(PATIENCE)
        if code is None:
            child.kill()
            raise BrokenInvariantError(f"{name} still at work after {PATIENCE:.0f} s")
        said = child.said()
        verdict = judge_command(said)
        if verdict.outcome == "accepted":
            taken = time.monotonic() - child.started
            self.seconds[name] = 0.7 * self.seconds.get(name, taken) + 0.3 * taken
        elif verdict.outcome == "fault" or not (may_be_refused or any(words in said.sentence for words in done)):
            raise BrokenInvariantError(f"{name}: {verdict.words}")


class KillTrials:
    """Scenarios by number. The moment of a kill depends on the machine; everything else on the seed."""

    def __init__(self, scratch: Path, seed: int, scenarios: Sequence[str] = SCENARIOS) -> None:
        self._scratch, self._seed, self._names = scratch, seed, scenarios
        self._seconds: dict[str, float] = {}
        self._twins: dict[str, object] = {}
        self._originals = photos(scratch / "photos"), more_photos(scratch / "more")
        self._before = [fingerprints(folder) for folder in self._originals]

    def __call__(self, number: int) -> Iterator[tuple[str, Verdict]]:
        """One scenario: a count for each kill, and a fault where the end is not that of the twin."""
        from tools.torture.review_kills import review

        rng = random.Random(f"{self._seed} kills {number}")
        scenarios: dict[str, Callable[[Killer, Path], object]] = {
            "run": self._run,
            "run, two at once": self._two_runs,
            "compare": self._compare,
            "workspace": lambda killer, place: self._workspace(killer, place, both=False),
            "workspace, two at once": lambda killer, place: self._workspace(killer, place, both=True),
            "review": lambda killer, place: review(killer, place, self._originals[0]),
        }
        name = rng.choice(self._names)
        scenario = scenarios[name]
        place = self._scratch / "killed"
        shutil.rmtree(place, ignore_errors=True)
        killer = Killer(rng, self._scratch / "logs", self._seconds)
        verdict = Verdict("accepted")
        try:
            if name not in self._twins:
                shutil.rmtree(self._scratch / "twin", ignore_errors=True)
                self._twins[name] = scenario(Gentle(rng, self._scratch / "logs", self._seconds), self._scratch / "twin")
            end = scenario(killer, place)
            require(end == self._twins[name], f"the end is that of the twin ({difference(end, self._twins[name])})")
            require([fingerprints(folder) for folder in self._originals] == self._before, "no original was changed")
        except (BrokenInvariantError, IgcdError) as error:
            verdict = Verdict("fault", f"{name}: {error}")
        except Exception as error:
            verdict = Verdict("fault", f"{name}: {describe(error)}")
        yield from ((command, Verdict("accepted")) for command in killer.kills)
        if verdict.outcome == "fault":
            yield name, verdict

    def _run(self, killer: Killer, place: Path) -> object:
        recipe = write_recipe(place / "r.yaml", cache=place / "cache")
        command = ("run", recipe, "--out", place / "out")
        killer.torment(*command, again=(*command, "--resume"))
        return run_outcome(place / "out")

    def _two_runs(self, killer: Killer, place: Path) -> object:
        """Two processes that continue the same run, and share a cache."""
        recipe = write_recipe(place / "r.yaml", cache=place / "cache")
        command = ("run", recipe, "--out", place / "out", "--resume")
        killer.torment(*command, both=True)
        return run_outcome(place / "out")

    def _compare(self, killer: Killer, place: Path) -> object:
        recipe = write_recipe(place / "r.yaml", cache=place / "cache", epochs=1)
        command = ("compare", recipe, "--methods", "frozen_snn,kmeans", "--seeds", "0,1", "--out", place / "out")
        busy = ("another comparison is at work",)
        killer.torment(*command, done=busy)
        for _ in range(600):  # a cell of a comparison that was killed may still be at work
            if busy[0] not in killer.finish(*command, done=busy):
                break
            time.sleep(0.1)
        cells = sorted((place / "out" / "cells").iterdir())
        require((place / "out" / "table.md").is_file(), "the table is written")
        return {cell.name: run_outcome(cell) for cell in cells}

    def _workspace(self, killer: Killer, place: Path, *, both: bool) -> object:
        first, second = self._originals
        folder = place / "ws"
        place.mkdir(parents=True)
        init = (
            "init",
            folder,
            "--images",
            first,
            "--labels-from-folders",
            "--backbone",
            BACKBONE,
            "--weights",
            "random",
        )
        killer.torment(*init, "--size", SIZE, done=("is a workspace already",), both=both)
        _whole(folder)
        for more in (None, second):
            if more is not None:
                killer.torment("add", folder, more, both=both)
                _whole(folder)
            killer.torment("discover", folder, done=("no new photos", "nothing to discover"), both=both)
            _whole(folder)
            killer.torment("accept", folder, "--author", "ann", done=("is accepted already",), both=both)
            _whole(folder)
        for kind in ("csv", "coco", "labelstudio", "folders"):
            killer.torment(
                "export", folder, "--format", kind, "--out", place / kind, done=("exists already",), both=both
            )
        return workspace_outcome(folder, place)


class Gentle(Killer):
    """Lets everything come to its end: for the twin."""

    def torment(
        self, *arguments: object, again: Sequence[object] = (), done: Sequence[str] = (), both: bool = False
    ) -> None:
        """Runs the command once."""
        del again, both  # nothing is started twice
        self.finish(*arguments, done=done)


def _whole(folder: Path) -> None:
    with open_catalog(folder) as catalog:
        check_whole(catalog, (N_FIRST, N_ALL))


def run_outcome(out: Path) -> dict[str, object]:
    """What a run comes to, without times."""
    results = json.loads((out / "results.json").read_text())
    for stage in results["stages"]:
        stage.pop("seconds", None)
    results.pop("config")
    require((out / "report.html").is_file() or out.parent.name == "cells", "the report is written")
    return {
        "predictions": (out / "predictions.csv").read_text(),
        "split": (out / "split.tsv").read_text(),
        "results": {key: value for key, value in results.items() if key not in TIMES},
        "gallery": sorted(path.name for path in (out / "gallery").iterdir()),
    }


def catalog_outcome(catalog: Catalog) -> dict[str, object]:
    """What a catalog holds, without times."""
    with catalog.snapshot() as db:
        return {
            table: [tuple(row) for row in db.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2")]
            for table, columns in (
                ("categories", "id, name, state, found_stage"),
                ("assignments", "photo, stage, category, round(probability, 4), is_confirmed"),
                ("labels", "photo, category, stage"),
                ("kept", "stage, role, category, position, photo"),
                ("stages", "stage, state"),
            )
        }


def workspace_outcome(folder: Path, place: Path) -> dict[str, object]:
    """What a workspace comes to: its catalog without times, and its exports."""
    with open_catalog(folder, read_only=True) as catalog:
        tables = catalog_outcome(catalog)
    exports = {kind: (place / kind).read_text() for kind in ("csv", "coco", "labelstudio")}
    exports = {kind: text.replace(str(place), "") for kind, text in exports.items()}
    below = place / "folders"
    folders = {str(path.relative_to(below)): path.stat().st_size for path in below.rglob("*") if path.is_file()}
    return {"tables": tables, "exports": exports, "folders": folders}


def difference(one: object, other: object, path: str = "") -> str:
    """Where two outcomes differ first."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if one.get(key) != other.get(key):
                return difference(one.get(key), other.get(key), f"{path}.{key}")
    return f"{path}: {str(one)[:150]} instead of {str(other)[:150]}"
