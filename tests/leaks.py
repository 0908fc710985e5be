"""What can be found from what a method is handed: by attributes, containers, closures, weak references, and by asking
`gc` who refers to it. Not by importing modules, reading their globals, or climbing the frames of the callers."""

import gc
import types
import weakref
from pathlib import PurePath

import numpy as np
import torch
from pydantic import BaseModel

from igcd.data.dataset import Dataset
from igcd.data.images import ArchiveImages, ArrayImages, FileImages
from igcd.data.observations import Observations
from igcd.data.sized_cache import SizedImages
from igcd.hidden import Handle
from igcd.streams.revealed import RevealedStream
from igcd.streams.split import Split, SplitStage
from igcd.streams.stream import SplitStream
from igcd.types import StageTruth, Truth

ATOMS = str | bytes | bytearray | int | float | complex | None
WAYS_OUT = type | types.ModuleType | types.FrameType | types.CodeType | types.BuiltinFunctionType
"""Not followed: through a class, a module or a frame one gets at everything there is."""
TRUTH = Truth | StageTruth | Split | SplitStage | SplitStream | RevealedStream | Dataset | Observations
NAMED_IMAGES = ArrayImages | ArchiveImages | FileImages | SizedImages
LEVELS = 4
"""How far up: who refers to a thing, who refers to that, …"""


def reachable(*roots, seen=()):
    """Every object that attributes, containers, closures, bound methods and weak references lead to."""
    found, queue = {id(one): one for one in seen}, list(roots)
    new = []
    while queue:
        item = queue.pop()
        if id(item) in found or isinstance(item, WAYS_OUT) or _is_of_module(item) or _is_of_the_test_runner(item):
            continue
        found[id(item)] = item
        new.append(item)
        if isinstance(item, ATOMS):
            continue
        if isinstance(item, types.FunctionType):  # its globals are those of a module
            queue += [cell.cell_contents for cell in item.__closure__ or () if _is_filled(cell)]
            queue += [item.__defaults__, item.__kwdefaults__, item.__dict__]
            continue
        if isinstance(item, weakref.ref):
            queue.append(item())
        elif isinstance(item, np.ndarray):
            queue.append(item.base)
        queue += gc.get_referents(item)
        if type(item).__module__.startswith("igcd") and not isinstance(item, BaseModel):  # a section is plain data
            queue += [_attribute(item, name) for name in dir(item) if not name.startswith("__")]
    return new


def within_reach(*handed, names=()):
    """All that is reachable from things handed over, and from whatever refers to them or to these `names` in them."""
    found = reachable(*handed)
    own = [one for one in found if type(one).__module__.startswith("igcd") or isinstance(one, np.ndarray)]
    own += [one._number for one in found if isinstance(one, Handle)]
    level = [*own, *(name for name in names if len(name) > 1)]  # a single letter is one object in all of Python
    known = {id(one) for one in found} | {id(one) for one in level}
    for _ in range(LEVELS):
        level += [reference for one in level if _has_weakrefs(one) for reference in weakref.getweakrefs(one)]
        ours = {id(level), id(found), id(own), id(handed), id(names)}
        level = [
            one
            for one in gc.get_referrers(*level)
            if id(one) not in known | ours
            and not isinstance(one, WAYS_OUT)
            and not _is_of_module(one)
            and not _is_of_the_test_runner(one)
        ]
        known |= {id(one) for one in level}
        found += reachable(*level, seen=found)
    return found


def leaks(things, *, hidden, paths, secret=b""):
    """What among these things gives away a hidden name, holds the truth, or leads to a folder where it is written."""
    found = []
    hidden = [name for name in hidden if len(name) > 1]
    for one in things:
        if isinstance(one, bytes):
            is_leak = bool(secret) and secret in one
        elif isinstance(one, str | PurePath):
            text = str(one)
            is_leak = any(name in text for name in hidden) or any(str(path) in text for path in paths)
            is_leak |= bool(secret) and secret.hex() in text
        else:
            is_leak = isinstance(one, TRUTH | NAMED_IMAGES)
        if is_leak:
            found.append(one)
    return found


def _is_of_module(item):
    return isinstance(item, dict) and "__builtins__" in item


def _is_of_the_test_runner(item):
    """Through pytest's fixtures one gets at what other tests use."""
    return type(item).__module__.split(".")[0] in ("_pytest", "pluggy", "xdist", "execnet")


def _attribute(item, name):
    try:
        return getattr(item, name, None)
    except Exception:  # a property that holds nothing yet
        return None


def _is_filled(cell):
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _has_weakrefs(item):
    return not isinstance(item, ATOMS | torch.Tensor) and type(item).__weakrefoffset__ != 0
