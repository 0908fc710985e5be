"""Part a: mutated inputs for every reader of the project."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tools.torture.formats import in_order
from tools.torture.judging import Verdict, judge
from tools.torture.reader import Reader


def all_readers(scratch: Path, *, with_models: bool = True) -> list[Reader]:
    """Every reader with its sample. The models take some seconds to make."""
    from tools.torture.readers_of_arguments import argument_readers
    from tools.torture.readers_of_data import data_readers
    from tools.torture.readers_of_embeddings import embedding_readers
    from tools.torture.readers_of_records import record_readers
    from tools.torture.readers_of_workspaces import workspace_readers

    readers = [*data_readers(), *record_readers(scratch / "records"), *workspace_readers(scratch / "workspace")]
    readers += [*embedding_readers(scratch / "embeddings"), *argument_readers(scratch / "arguments")]
    if with_models:
        from tools.torture.readers_of_models import model_readers

        readers += model_readers(scratch / "models")
    return [
        replace(reader, files={name: _same(name, file) for name, file in reader.files.items()}) for reader in readers
    ]


def _same(name: str, content: bytes) -> bytes:
    """The content of a sample, the same in every run."""
    return in_order(content) if name.endswith(".safetensors") else content


class InputTrials:
    """Inputs by number: the same seed and number give the same input."""

    def __init__(self, readers: Sequence[Reader], scratch: Path, seed: int) -> None:
        self._readers, self._scratch, self._seed = readers, scratch, seed

    def draw(self, number: int) -> tuple[Reader, dict[str, bytes]]:
        """The reader of a number, and what is changed in its sample."""
        rng = random.Random(f"{self._seed} input {number}")
        reader = rng.choices(self._readers, weights=[reader.weight for reader in self._readers])[0]
        return reader, reader.mutated(rng)

    def __call__(self, number: int) -> Iterator[tuple[str, Verdict]]:
        """Reads the input of a number and judges how that ended."""
        reader, changes = self.draw(number)
        reader.write(self._scratch, changes)
        yield reader.name, judge(lambda: reader.read(self._scratch))
