"""Tensors on disk: safetensors files that are there whole or not at all, never a pickle."""

import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from igcd.errors import IgcdError


def write_tensors(path: Path, tensors: Mapping[str, Tensor], text: Mapping[str, str]) -> None:
    """Writes tensors and text in one safetensors file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, unfinished, dict(text))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Reads what `write_tensors` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            text = dict(file.metadata() or {})
        return load_file(path), text
    except FileNotFoundError:
        raise IgcdError(f"{path} is missing; is {path.parent} the model of `igcd run`?") from None
    except (OSError, SafetensorError) as error:
        raise IgcdError(f"{path} cannot be read ({error}); run again into another folder") from None
