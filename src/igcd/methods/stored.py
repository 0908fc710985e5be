"""The model of a run, read back into a method."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from igcd.methods.method import Method
from igcd.records import named_in_errors
from igcd.tensor_files import read_tensors


@dataclass(frozen=True)
class StoredModel:
    """What a run wrote of its method after the last stage it has done."""

    path: Path
    tensors: Mapping[str, Tensor]
    text: Mapping[str, str]
    n_stages: int  # that it has learned

    def load_into(self, method: Method) -> None:
        """Gives its state to a method that was made by the same recipe."""
        with named_in_errors(self.path):
            method.load_state_dict(self.tensors, self.text)


def read_model(path: Path) -> StoredModel:
    """Reads the model of a run."""
    tensors, text = read_tensors(path)
    with named_in_errors(path):
        n_stages = int(text["n_stages_done"])
        if n_stages < 1:
            raise ValueError(f"{n_stages} stages done")
    return StoredModel(path, tensors, text, n_stages)
