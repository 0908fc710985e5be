"""Tensors on disk: safetensors files that are there whole or not at all, with a checksum, never a pickle."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from igcd.errors import IgcdError
from igcd.records import write_bytes

CHECKSUM = "checksum"


def write_tensors(path: Path, tensors: Mapping[str, Tensor], text: Mapping[str, str]) -> None:
    """Writes tensors and text in one safetensors file, whole or not at all."""
    whole = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    write_bytes(path, save(whole, dict(text) | {CHECKSUM: _checksum(whole, text)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Reads what `write_tensors` wrote, and nothing that has changed since."""
    try:
        with safe_open(path, framework="pt") as file:
            text = dict(file.metadata() or {})
        tensors = load_file(path)
    except FileNotFoundError:
        raise IgcdError(f"{path} is missing; is {path.parent} the model of `igcd run`?") from None
    except Exception as error:  # besides its own errors, safetensors lets those of torch and of the mapping through
        raise IgcdError(f"{path} cannot be read ({error}); run again into another folder") from None
    if text.pop(CHECKSUM, None) != _checksum(tensors, text):
        raise IgcdError(
            f"{path} is damaged, or an older igcd wrote it: its checksum does not fit; run again into another folder"
        )
    return tensors, text


def _checksum(tensors: Mapping[str, Tensor], text: Mapping[str, str]) -> str:
    """Of every name, type, shape and value, whatever their order in the file."""
    hasher = hashlib.blake2b(json.dumps(sorted(text.items())).encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        hasher.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        hasher.update(tensor.cpu().reshape(-1).view(torch.uint8).numpy().data)
    return hasher.hexdigest()
