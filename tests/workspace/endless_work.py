"""A process that works on workspaces without end, to be killed: makes, adds, discovers, decides, undoes, accepts."""

import itertools
from multiprocessing.synchronize import Event
from pathlib import Path

from workspace.painted_photos import PatternEncoder

from igcd.workspace import decisions, queries
from igcd.workspace.accept import accept_stage
from igcd.workspace.catalog import open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.init import init_workspace
from igcd.workspace.photos import add_photos
from igcd.workspace.undo import undo

N_FIRST, N_SECOND = 60, 24


def work(folder: Path, number: int) -> None:
    """One workspace from its beginning to the end of its second stage."""
    place = folder / f"ws-{number}"
    init_workspace(place, folder / "first", from_folders=True)
    with open_catalog(place) as catalog:
        for more in (None, folder / "second"):
            if more is not None:
                add_photos(catalog, [more])
            discover(catalog, PatternEncoder())
            for category in queries.queue(catalog):
                decisions.name(catalog, category.id, f"kind {category.id}", author="ann")
                undo(catalog, author="ann")
                decisions.merge(catalog, category.id, 1, author="ann")
            accept_stage(catalog, author="ann")


def endless(folder: Path, ready: Event) -> None:
    """Works until it is killed."""
    start = len(list(folder.glob("ws-*")))
    ready.set()
    for number in itertools.count(start):
        work(folder, number)
