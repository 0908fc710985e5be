"""A reader of the project under torture: a good sample, what may be mutated in it, and how to read and check it."""

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.torture.byte_mutation import mutate_bytes
from tools.torture.formats import Mutation

GRAMMAR_SHARE = 0.65
"""Share of the inputs that are still of their format; the others have flipped, cut or foreign bytes."""


@dataclass(frozen=True)
class Reader:
    """`read` is given the folder of the sample, raises what the user would meet, and checks what it accepted."""

    name: str
    files: Mapping[str, bytes]
    mutations: Mapping[str, Mutation]
    read: Callable[[Path], object]
    weight: float = 1.0

    def mutated(self, rng: random.Random) -> dict[str, bytes]:
        """The files that differ from the sample: one of them, by its grammar or byte by byte."""
        name = rng.choice(list(self.mutations))
        how = self.mutations[name] if rng.random() < GRAMMAR_SHARE else mutate_bytes
        return {name: how(self.files[name], rng)}

    def write(self, folder: Path, changes: Mapping[str, bytes]) -> None:
        """Lays the sample out in an empty folder, with changes."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, content in {**self.files, **changes}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def files_below(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their path below it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def argument(name: str, sample: str, mutation: Mutation, parse: Callable[[str], object]) -> Reader:
    """A reader of text that comes from the command line."""

    def read(folder: Path) -> object:
        return parse((folder / "text").read_bytes().replace(b"\0", b"").decode("utf-8", "surrogateescape"))

    return Reader(name, {"text": sample.encode()}, {"text": mutation}, read)
