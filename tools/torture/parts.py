"""The parts of a torture behind one face."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.torture.batches import BATCH, Trial, run_batch
from tools.torture.forks import load_everything
from tools.torture.images import ImageTrials
from tools.torture.inputs import InputTrials, all_readers
from tools.torture.judging import Verdict
from tools.torture.kills import KillTrials
from tools.torture.load import LoadTrials
from tools.torture.troubles import TroubleTrials

SECONDS_PER_FOLDER = 600.0
"""A folder of images goes through six commands; on a busy machine that takes its time."""


class Part:
    """A part: trials by number, in batches; the same seed and number are the same trial."""

    def __init__(self, scratch: Path, seed: int) -> None:
        self.scratch, self.seed = scratch, seed
        scratch.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets go of what the part holds."""

    def batch(self, first: int) -> tuple[list[Trial], int]:
        """Some trials from a number on, and the number that comes next."""
        raise NotImplementedError

    def replay(self, number: int) -> None:
        """One trial again; raises what it led to."""
        raise NotImplementedError


class Inputs(Part):
    """Mutated inputs for every reader."""

    def __init__(self, scratch: Path, seed: int, *, with_models: bool = True) -> None:
        super().__init__(scratch, seed)
        self._trials = InputTrials(all_readers(scratch / "samples", with_models=with_models), scratch / "x", seed)

    def batch(self, first: int) -> tuple[list[Trial], int]:  # noqa: D102
        return run_batch(first, BATCH, self._trials)

    def replay(self, number: int) -> None:  # noqa: D102
        reader, changes = self._trials.draw(number)
        reader.write(self.scratch / "x", changes)
        print(reader.name, {name: content[:2000] for name, content in changes.items()})
        reader.read(self.scratch / "x")


class Images(Part):
    """Mutated images through the commands that read images."""

    def __init__(self, scratch: Path, seed: int) -> None:
        super().__init__(scratch, seed)
        self._trials = ImageTrials(scratch / "x", seed)

    def batch(self, first: int) -> tuple[list[Trial], int]:  # noqa: D102
        return run_batch(first, 3, self._trials, seconds=SECONDS_PER_FOLDER)

    def replay(self, number: int) -> None:  # noqa: D102
        for case, verdict in self._trials(number):
            print(case, verdict)


class Forked(Part):
    """Trials whose commands are forks of this process, one trial at a time."""

    make: Callable[[Path, int], Callable[[int], Iterator[tuple[str, Verdict]]]]

    def __init__(self, scratch: Path, seed: int) -> None:
        super().__init__(scratch, seed)
        load_everything()
        self._trials = type(self).make(scratch, seed)

    def batch(self, first: int) -> tuple[list[Trial], int]:  # noqa: D102
        return [Trial(first, case, verdict) for case, verdict in self._trials(first)], first + 1

    def replay(self, number: int) -> None:  # noqa: D102
        for case, verdict in self._trials(number):
            print(case, verdict)


class Kills(Forked):
    """Commands killed at random moments, continued, and compared with an undisturbed twin."""

    make = KillTrials


class Troubles(Forked):
    """Commands on a full or read-only disk, without permission, with a wrong clock."""

    make = TroubleTrials


class Load(Forked):
    """A crowd on the review page."""

    make = LoadTrials


PARTS: Mapping[str, type[Part]] = {
    "inputs": Inputs,
    "images": Images,
    "kills": Kills,
    "troubles": Troubles,
    "load": Load,
}
SHARES: Mapping[str, float] = {"inputs": 0.25, "images": 0.2, "kills": 0.35, "troubles": 0.1, "load": 0.1}
