"""A workspace, its page served for real, and a browser that opens it."""

from contextlib import ExitStack

import pytest
from workspace.sample_catalog import sample_workspace

from igcd.workspace.catalog import open_catalog


@pytest.fixture
def photos(tmp_path):
    return sample_workspace(tmp_path, known={"owl": 3}, novel={"hare": 12, "fox": 4}, n_unsure=2)


@pytest.fixture
def catalog(photos, tmp_path):  # noqa: ARG001 - they are in it
    with open_catalog(tmp_path / "ws") as opened:
        yield opened


@pytest.fixture
def serve(tmp_path):
    """Serves the workspace of the test; ends after the pages are closed."""
    from review.live_page import served

    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(served(tmp_path / "ws", **options))


@pytest.fixture
def link(catalog, serve):  # noqa: ARG001 - the workspace is made by then
    return serve()


@pytest.fixture
def open_page(browser, serve):  # noqa: ARG001 - pages are closed before the server
    """Opens the page in a browser of its own; at the end no page may have complained in its console."""
    from playwright.sync_api import expect

    contexts, complaints = [], []

    def open_one(address, *, wait_for=None, **options):
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(address)
        if wait_for is not None:
            page.wait_for_url(wait_for)
        expect(page.locator("h1")).not_to_be_empty()
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not [text for text in complaints if "409" not in text]  # a conflict is meant, and Chromium notes it down


@pytest.fixture
def client(catalog):
    from review.page_client import client_of

    with client_of(catalog) as opened:
        yield opened
