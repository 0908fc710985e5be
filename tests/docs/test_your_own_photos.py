"""The guide docs/your_own_photos.md, command by command: what it says the reader will see is what there is to see."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("httpx", reason="the review page is asked with httpx")

import httpx
from typer.testing import CliRunner

from igcd.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "your_own_photos.md"
BOX = re.compile(r"[\s┏┳┓┡╇┩└┴┘━─│┃]+")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def steps():
    """The commands of the page that start with igcd, and the text shown below each."""
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            if command.startswith("igcd "):
                found.append((shlex.split(command)[1:], shown))
    return found


def masked(text):
    """Text without what may differ from one machine or day to another: numbers, names, times, widths of tables."""
    text = re.sub(r"by \S+ at \S+", "by WHOM at WHEN", text)
    text = re.sub(r"127\.0\.0\.1:\d+/\?token=\S+", "LINK", text)
    text = re.sub(r"\b[0-9a-f]{8}\.jpg", "PHOTO", text)
    text = re.sub(r"\d+(?:[.,]\d+)*", "#", text)
    return [line for line in (BOX.sub(" ", line).strip() for line in text.splitlines()) if line]


def run(arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, f"igcd {shlex.join(arguments)}: {result.output}{result.exception!r}"
    return result.stdout


@contextmanager
def reviewing(arguments):
    """The review page in a process of its own: a client that has opened its link, and what the program said."""
    command = [sys.executable, "-m", "igcd", *arguments, "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            said = server.stdout.readline() + server.stdout.readline()
            link = re.search(r"(http://\S+/)\?token=\S+", said)
            assert link is not None, said
            with httpx.Client(base_url=link[1], follow_redirects=True, timeout=60) as client:
                assert "igcd review" in client.get(link[0]).text
                yield client, said
        finally:
            server.send_signal(signal.SIGINT)


def name_what_was_found(client, kind_of):
    """What the page asks the reader to do: each new category gets the name of what is on its photos."""
    names = []
    while queue := [one for one in client.get("api/overview").json()["categories"] if one["state"] == "discovered"]:
        category = queue[0]
        shown = client.get(f"api/categories/{category['id']}").json()
        kinds = Counter(kind_of[Path(photo["path"]).stem] for photo in shown["photos"])
        names.append(kinds.most_common(1)[0][0])
        body = {"text": names[-1], "seen": {category["id"]: category["version"]}}
        client.post(f"api/categories/{category['id']}/name", json=body).raise_for_status()
    return names


def live_through():
    """Runs the page in the current folder. Gives for each command what it said, and what was named on the way."""
    (album,) = blocks("python")
    scope = {}
    exec(compile(album, PAGE.name, "exec"), scope)
    kind_of = {
        sighting.digits[:8]: kind
        for kind, number in scope["species"].items()
        for sighting in scope["guide"].sightings("val")
        if sighting.species == number
    }
    said, named = [], []
    for arguments, _ in steps():
        if arguments[0] == "review":
            with reviewing(arguments) as (client, text):
                named += name_what_was_found(client, kind_of)
            said.append(text)
        else:
            said.append(run(arguments))
    return said, named


@pytest.mark.slow  # the review page in processes of its own
def test_the_guide_runs_command_by_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said, named = live_through()
    for (arguments, shown), text in zip(steps(), said, strict=True):
        assert masked(text) == masked(shown), f"igcd {shlex.join(arguments)}"
    assert sorted(named) == ["dragonfly", "mushroom", "snail"]
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + len(list(tmp_path.glob("[jp]*/**/*.jpg")))
    categories = {one["title"]: one for one in json.loads(run(["status", "ws", "--json"]))["categories"]}
    assert categories["snail"]["state"] == "labeled" and categories["mushroom"]["n_photos"] >= 10


def test_the_guide_shows_every_verb_of_the_loop():
    verbs = {arguments[0] for arguments, _ in steps()}
    assert verbs == {"init", "discover", "review", "accept", "add", "predict", "status", "export", "undo"}
