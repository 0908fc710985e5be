"""Killed at any moment, nothing is lost and nothing is half done."""

import multiprocessing
import random
import time

import pytest
from tools.torture.catalog_invariants import check_whole
from workspace.endless_work import N_FIRST, N_SECOND, endless
from workspace.painted_photos import PatternEncoder, paint_categories

from igcd.errors import IgcdError
from igcd.workspace import queries
from igcd.workspace.catalog import open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.init import init_workspace
from igcd.workspace.undo import undo


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    first = {
        "ash": (0, range(12)),
        "beech": (1, range(12)),
        "unlabeled/a": (7, range(20)),
        "unlabeled/b": (1, range(30, 46)),
    }
    paint_categories(tmp_path / "first", first)
    paint_categories(tmp_path / "second", {"c": (9, range(12)), "d": (7, range(30, 42))})
    rng, n_unfinished, states = random.Random(0), 0, set()
    context = multiprocessing.get_context("forkserver")  # one process imports torch, the others are copies of it
    context.set_forkserver_preload(["igcd.workspace.discover", "igcd.workspace.accept"])
    for _ in range(6):
        ready = context.Event()
        process = context.Process(target=endless, args=(tmp_path, ready), daemon=True)
        process.start()
        assert ready.wait(120)
        time.sleep(rng.uniform(0, 2))
        process.kill()
        process.join()
        last = max(tmp_path.glob("ws-*"), key=lambda path: int(path.name[3:]), default=None)
        if last is None:
            continue
        try:
            with open_catalog(last) as catalog:
                check_whole(catalog, (N_FIRST, N_FIRST + N_SECOND))
                states |= {tuple(stage.state for stage in queries.status(catalog).stages)}
                if queries.status(catalog).stages[-1].n_waiting:
                    discover(catalog, PatternEncoder())  # and goes on from there
                while queries.status(catalog).n_decisions and _can_undo(catalog):
                    check_whole(catalog, (N_FIRST, N_FIRST + N_SECOND))
        except IgcdError as error:
            assert "is an unfinished workspace" in str(error) or "is not a workspace" in str(error)
            n_unfinished += 1
            init_workspace(last, tmp_path / "first", from_folders=True)
            with open_catalog(last) as catalog:
                check_whole(catalog, (N_FIRST, N_FIRST + N_SECOND))
    assert states or n_unfinished


def _can_undo(catalog):
    """Undoes the last decision, as far as no later discovery builds on it."""
    try:
        undo(catalog, author="bob")
    except IgcdError:
        return False
    return True
