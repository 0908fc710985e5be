"""`igcd review` as a program: its link works, its warnings come, Ctrl+C ends it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the review page needs the extra `review`")
pytest.importorskip("httpx", reason="the link is opened with httpx")

import httpx
import typer
from typer.testing import CliRunner
from workspace.sample_catalog import sample_workspace

from igcd.cli.review import _listen, review
from igcd.errors import IgcdError


@pytest.fixture
def workspace(tmp_path):
    sample_workspace(tmp_path, known={"owl": 1}, novel={"hare": 2})
    return tmp_path / "ws"


def start(workspace, *options, browser=None):
    # Whoever runs the tests in the background has Ctrl-C ignored.
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heeds}; import typer; from igcd.cli.review import review; typer.run(review)"
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            program,
            str(workspace),
            "--port",
            "0",
            *options,
            *([] if browser else ["--no-browser"]),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | ({"BROWSER": f"{sys.executable} {browser} %s"} if browser else {}),
    )


def test_the_printed_link_opens_the_page_until_interrupted(workspace):
    server = start(workspace, "--author", "ada")
    try:
        link = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", server.stdout.readline())
        assert link is not None, server.stderr.read()
        with httpx.Client(follow_redirects=True, timeout=20) as client:
            assert "<title>ws – igcd review</title>" in client.get(link[0]).text
            assert client.get(link[0].split("?")[0] + "api/overview").json()["author"] == "ada"
        assert httpx.get(link[0].split("?")[0] + "api/overview", timeout=20).status_code == 401
    finally:
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=20)
    assert server.returncode == 0 and out.endswith("closed\n") and err == ""


BROWSER = """
import json, os, pathlib, sys, urllib.parse
path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(sys.argv[1]).path))
seen = {"arguments": sys.argv, "path": str(path), "mode": path.stat().st_mode & 0o777, "text": path.read_text()}
unfinished = pathlib.Path(__file__).with_name("unfinished")
unfinished.write_text(json.dumps(seen))
unfinished.rename(unfinished.with_name("seen.json"))
"""


@pytest.mark.slow  # a server in a process of its own
@pytest.mark.parametrize("options", [(), ("--read-only",)])
def test_the_browser_is_led_to_the_link_by_a_file_of_its_owner_not_by_its_command_line(workspace, tmp_path, options):
    (tmp_path / "browser.py").write_text(BROWSER)
    server = start(workspace, *options, browser=tmp_path / "browser.py")
    try:
        link = re.search(r"http://\S+", server.stdout.readline())[0]
        deadline = time.monotonic() + 20
        while not (tmp_path / "seen.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        seen = json.loads((tmp_path / "seen.json").read_text())
    finally:
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=20)
    assert err == ""
    assert link.partition("token=")[2] not in " ".join(seen["arguments"])
    assert seen["mode"] == 0o600 and f'content="0; url={link}"' in seen["text"]
    # in the workspace, where a browser in a sandbox can read it; one that is only looked at is not written to
    assert Path(seen["path"]).is_relative_to(workspace) == (not options)
    assert not Path(seen["path"]).exists()


@pytest.mark.slow  # a server in a process of its own
def test_letting_others_in_is_said(workspace):
    server = start(workspace, "--host", "0.0.0.0", "--read-only")
    try:
        assert "looking at" in server.stdout.readline()
    finally:
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=20)
    assert "whoever has the link" in err and "not encrypted" in err and "decide" not in err


def test_a_port_that_is_taken_is_said_or_another_one_found():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(IgcdError, match="--port 0"):
            _listen("127.0.0.1", taken.getsockname()[1])
    with _listen("127.0.0.1", None) as first, _listen("127.0.0.1", None) as second:
        assert first.getsockname()[1] != second.getsockname()[1]


def test_what_is_no_workspace_is_said(tmp_path):
    app = typer.Typer()
    app.command()(review)
    result = CliRunner().invoke(app, [str(tmp_path), "--no-browser"])
    assert isinstance(result.exception, IgcdError) and "is not a workspace" in str(result.exception)
    sample_workspace(tmp_path / "sample", known={"owl": 1}, novel={"hare": 1})
    result = CliRunner().invoke(app, [str(tmp_path / "sample" / "ws"), "--no-browser", "--author", " "])
    assert isinstance(result.exception, IgcdError) and "author" in str(result.exception)
