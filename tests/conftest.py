"""What several tests share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Tests run several at a time, one thread each: more would wait for each other. Sums are then the same on every machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported

from igcd.workspace import catalog

FSYNC, SYNCHRONOUS = os.fsync, catalog.SYNCHRONOUS


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """No test cuts the power, and to wait for the disk takes long. Processes that tests start do wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(catalog, "SYNCHRONOUS", "OFF")
        yield


@pytest.fixture
def wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests about just that: what is written is on the disk, as outside of tests."""
    monkeypatch.setattr(os, "fsync", FSYNC)
    monkeypatch.setattr(catalog, "SYNCHRONOUS", SYNCHRONOUS)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data sets (cifar100.npz, cub200_128px.npz); tests that use it are skipped without it."""
    folder = Path(os.environ.get("IGCD_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "cifar100.npz").is_file():
        pytest.skip(f"real data not found in {folder}; set IGCD_TEST_DATA to the folder that holds cifar100.npz")
    return folder


@pytest.fixture(scope="module")
def quick_learning() -> Iterator[None]:
    """What takes most of the time on a few small images is made smaller, for tests that are not about it.

    Projectors have 32 hidden units instead of 2,048; categories are hidden once for each share of rows that return,
    not five times.
    """
    from igcd.functional import hidden_categories
    from igcd.methods.projector import Projector

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden_categories, "N_TIMES", 1)
        patch.setitem(Projector.__init__.__kwdefaults__, "n_hidden", 32)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium: that of Debian, or what IGCD_CHROMIUM says. One for all tests, playwright drives no second one."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the browser is driven by playwright; pip install it"
    )
    path = os.environ.get("IGCD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium; install Debian's package `chromium`, or set IGCD_CHROMIUM to the program")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
