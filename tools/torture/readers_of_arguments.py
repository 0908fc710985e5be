"""Torture of the command line itself: good command lines in which one argument is another, or an option is added."""

import contextlib
import json
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tools.torture.commands import call, judge_command
from tools.torture.judging import BrokenInvariantError
from tools.torture.odd_values import ODD_NUMBERS, odd_text
from tools.torture.reader import Reader
from tools.torture.readers_of_records import run_folder
from tools.torture.readers_of_workspaces import sample_workspace

from igcd.errors import IgcdError
from igcd.workspace.catalog import BACKUP_FILE, CATALOG_FILE

OBSERVED = "id,observed_on,latitude,longitude,scientific_name,common_name,iconic_taxon_name,file_name\n" + "".join(
    f"{i},2015-05-0{i},48.8,2.3,Corvus corax,Raven,Aves,{i}.jpg\n" for i in range(1, 9)
)
LINES = (
    "ls",
    "status ws --json",
    "export ws --out o --format csv",
    "export ws --out o --format folders --link",
    "undo ws --author ann",
    "accept ws --author ann",
    "restore ws",
    "add ws PHOTOS",
    "init o --images PHOTOS --labels-from-folders --on-conflict skip",
    "score run/predictions.csv --json",
    "report run",
    "count f.npy --labels l.txt --method density --neighbors 5 --margin 0.1 --seed 1",
    "count f.npy --labels l.txt --method silhouette --max-categories 5 --starts 1",
    "build folder --data PHOTOS --out o --protocol igcd-u --stages 2,1 --held-out 0.2 --seed 3",
    "build observations o.csv --out o --reading year --min-images 1",
    "build digits --out o --protocol igcd-l --stages 4,2,2,2",
    "build fieldguide --out o --species 10 --images 60 --size 16 --test-per-species 1",
)
NEARBY = ("ws", "run", "f.npy", "l.txt", "o.csv", "o", "run/predictions.csv", "ws/catalog.sqlite", "nowhere", ".", "")


def _odd_argument(rng: random.Random) -> str:
    """Something else than was meant. Nothing that leads away from the folder of the trial: some of it is written to."""
    odd: tuple[Any, ...] = (rng.choice(NEARBY), rng.choice(NEARBY), rng.choice(ODD_NUMBERS), odd_text(rng)[:9000])
    text = str(rng.choice(odd)).replace("\0", "")
    return "x" if text.startswith(("/", "~")) or ".." in text else text


def _mutated_line(_: bytes, rng: random.Random) -> bytes:
    arguments = rng.choice(LINES).split()
    options = sorted({argument for line in LINES for argument in line.split() if argument.startswith("--")})
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(1, len(arguments)) if len(arguments) > 1 else 0
        match rng.randrange(6):
            case 0 if len(arguments) > 1:
                del arguments[at]
            case 1:
                arguments += [rng.choice(options), _odd_argument(rng)]
            case 2:
                arguments.insert(at, _odd_argument(rng))
            case _ if len(arguments) > 1:
                places = [i for i, argument in enumerate(arguments) if i and not argument.startswith("--")]
                arguments[rng.choice(places or [at])] = _odd_argument(rng)
            case _:
                arguments.append(_odd_argument(rng))
    return json.dumps(arguments).encode()


def argument_readers(scratch: Path) -> list[Reader]:
    """The reader with its sample; `scratch` is a folder for making it."""
    files = dict(_sample(scratch))
    photos = scratch / "workspace" / "photos"

    def read(folder: Path) -> None:
        try:
            arguments = json.loads((folder / "arguments.json").read_bytes())
        except (ValueError, RecursionError):
            return
        if not isinstance(arguments, list) or not all(isinstance(argument, str) for argument in arguments):
            return
        with contextlib.chdir(folder):
            said = call(
                *(str(photos) if argument == "PHOTOS" else argument.replace("\0", "") for argument in arguments)
            )
        if said.code == 2 and ("─ Error ─" in said.err or "Usage:" in said.out):  # said by what reads arguments
            return
        verdict = judge_command(said)
        if verdict.outcome == "fault":
            raise BrokenInvariantError(f"{' '.join(arguments[:2])[:40]}: {verdict.words}")
        if verdict.outcome == "refused":
            raise IgcdError(verdict.words)

    content = {"arguments.json": b'["ls"]', **files}
    return [Reader("command line", content, {"arguments.json": _mutated_line}, read, 0.6)]


@cache
def _sample(scratch: Path) -> tuple[tuple[str, bytes], ...]:
    """A workspace, the records of a run, embeddings and observations."""
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "run").mkdir(parents=True)
    workspace = sample_workspace(scratch / "workspace")
    np.save(scratch / "f.npy", np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32))
    files = {f"run/{name}": content for name, content in run_folder(scratch / "run").items()}
    files |= {f"ws/{name}": (workspace / name).read_bytes() for name in (CATALOG_FILE, BACKUP_FILE)}
    files |= {"f.npy": (scratch / "f.npy").read_bytes(), "o.csv": OBSERVED.encode()}
    files["l.txt"] = b"a\n" * 8 + b"b\n" * 8 + b"\n" * 14
    return tuple(files.items())
