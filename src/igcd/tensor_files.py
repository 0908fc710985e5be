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
RUN_AGAIN = "run again into another folder"


def write_tensors(path: Path, tensors: Mapping[str, Tensor], text: Mapping[str, str]) -> None:
    """Writes tensors and text in one safetensors file, whole or not at all."""
    whole = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    write_bytes(path, save(whole, dict(text) | {CHECKSUM: _checksum(whole, text)}))


def read_tensors(path: Path, *, remedy: str = RUN_AGAIN) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Reads what `write_tensors` wrote, and nothing that has changed since; `remedy` is what to do otherwise."""
    try:
        with safe_open(path, framework="pt") as file:
            text = dict(file.metadata() or {})
        tensors = load_file(path)
    except FileNotFoundError:
        raise IgcdError(f"{path} is missing; check that this is the right folder, or {remedy}") from None
    except Exception as error:  # besides its own errors, safetensors lets those of torch and of the mapping through
        raise IgcdError(f"{path} cannot be read ({error}); {remedy}") from None
    if text.pop(CHECKSUM, None) != _checksum(tensors, text):
        raise IgcdError(f"{path} is damaged, or an older igcd wrote it: its checksum does not fit; {remedy}")
    return tensors, text


def require_finite(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuses numbers that are not finite, with which no image has a probability."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise IgcdError(
                f"{path} holds numbers that are not finite (in {name}): its training diverged; train again with a "
                "lower learning rate"
            )


def _checksum(tensors: Mapping[str, Tensor], text: Mapping[str, str]) -> str:
    """Of every name, type, shape and value, whatever their order in the file."""
    hasher = hashlib.blake2b(json.dumps(sorted(text.items())).encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        hasher.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        hasher.update(tensor.cpu().reshape(-1).view(torch.uint8).numpy().data)
    return hasher.hexdigest()
