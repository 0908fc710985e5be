"""`igcd review` as a program: its link works, its warnings come, Ctrl+C ends it."""

import re
import signal
import socket
import subprocess
import sys

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


def start(workspace, *options):
    # Whoever runs the tests in the background has Ctrl-C ignored.
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heeds}; import typer; from igcd.cli.review import review; typer.run(review)"
    return subprocess.Popen(
        [sys.executable, "-c", program, str(workspace), "--port", "0", "--no-browser", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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
