"""Part b: mutated images of every format through init, add, discover, predict and run."""

import csv
import hashlib
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from tools.torture.commands import Said, call, judge_command
from tools.torture.judging import BrokenInvariantError, Verdict, describe, require, wrong_with_sentence
from tools.torture.picture_mutation import formats, mutated_picture
from tools.torture.tiny_world import BACKBONE, FROZEN, SIZE, paint

IMAGES_PER_TRIAL = 60
N_GOOD = 4
"""Photos of each of two categories that stay whole, so that a workspace and a run have something to go on."""


class ImageTrials:
    """A folder of mutated images by number, sent through every command that reads images."""

    def __init__(self, scratch: Path, seed: int, n_images: int = IMAGES_PER_TRIAL) -> None:
        self._scratch, self._seed, self._n_images, self._endings = scratch, seed, n_images, formats()

    def __call__(self, number: int) -> Iterator[tuple[str, Verdict]]:
        """Judges every image of a number; a fault of a command is one of its own."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        try:
            endings = self.write(number)
            before = fingerprints(self._scratch / "photos")
            self._workspace()
            answers = self._predict()
            self._run()
            require(fingerprints(self._scratch / "photos") == before, "no original was changed")
        except BrokenInvariantError as error:
            yield "commands", Verdict("fault", str(error))
            return
        except Exception as error:
            yield "commands", Verdict("fault", describe(error))
            return
        for path, ending in endings.items():
            yield ending, Verdict("refused" if answers[path] else "accepted")

    def write(self, number: int) -> dict[str, str]:
        """Writes the images of a number below photos/first and photos/second; the ending of each."""
        rng = random.Random(f"{self._seed} images {number}")
        photos = self._scratch / "photos"
        for category, name in enumerate(("ash", "beech")):
            for at in range(N_GOOD):
                paint(photos / "first" / name / f"good-{at}.jpg", category, at)
        endings = {}
        for at in range(self._n_images):
            ending = rng.choice(self._endings)
            folder = photos / ("second" if at % 3 == 2 else f"first/{rng.choice(('ash', 'beech', 'unlabeled'))}")
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{at:03d}.{ending}"
            path.write_bytes(mutated_picture(ending, rng))
            endings[str(path)] = ending
        return endings

    def _workspace(self) -> None:
        photos, folder = self._scratch / "photos", self._scratch / "ws"
        encoder = ("--backbone", BACKBONE, "--weights", "random", "--size", SIZE)
        _well(call("init", folder, "--images", photos / "first", "--labels-from-folders", *encoder))
        _well(call("discover", folder))
        _well(call("add", folder, photos / "second"))
        _well(call("discover", folder))
        status = json.loads(_well(call("status", folder, "--json")).out)
        n_files = sum(path.is_file() for path in photos.rglob("*"))
        require(status["n_files"] == n_files, "every file is in the catalog")
        for broken in status["broken"]:
            wrong = wrong_with_sentence(broken["reason"])
            require(wrong is None, f"reason for setting aside: {wrong}")

    def _predict(self) -> dict[str, bool]:
        """Whether each image was refused; by the workspace."""
        answers = json.loads(_well(call("predict", self._scratch / "ws", self._scratch / "photos", "--json")).out)
        refused = {}
        for answer in answers:
            refused[answer["image"]] = answer["error"] is not None
            if answer["error"] is not None:
                wrong = wrong_with_sentence(answer["error"])
                require(wrong is None, f"reason of predict: {wrong}")
            else:
                require(0 <= answer["probability"] <= 1.0001, "a probability is from 0 to 1")
        return refused

    def _run(self) -> None:
        """A run on the folder. HEIC is for workspaces; a folder of a run leaves it aside."""
        recipe = self._scratch / "r.yaml"
        recipe.write_text(
            f"stream: {{source: folder, data: {self._scratch}/photos/first, by_category: {{protocol: static, "
            "categories_per_stage: [2, 1], held_out: 0.2}}\n"
            f"encoder: {{backbone: {BACKBONE}, weights: random, size: {SIZE}, n_views: 2, cache: null}}\n"
            f"method: {FROZEN}\nmax_broken: 1.0\naccelerator: cpu\n"
        )
        said = call("run", recipe, "--out", self._scratch / "out", "--json")
        verdict = judge_command(said)
        require(verdict.outcome != "fault", f"run: {verdict.words}")
        listed = self._scratch / "out" / "quarantine.csv"
        if listed.is_file():
            with listed.open(newline="") as file:
                for row in list(csv.reader(file))[1:]:
                    require(wrong_with_sentence(row[-1]) is None, "reason in the quarantine: not a sentence")


def _well(said: Said) -> Said:
    """A command that has to end well."""
    verdict = judge_command(said)
    require(verdict.outcome == "accepted", f"{verdict.outcome}: {verdict.words}")
    return said


def fingerprints(folder: Path) -> dict[str, str]:
    """Every file of a folder with a digest of its content."""
    return {
        str(path): hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
