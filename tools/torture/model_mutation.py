"""Models whose checksum fits and whose content does not: one text, shape, type or number is another."""

import json
import random
import tempfile
from pathlib import Path

import torch
from tools.torture.formats import in_order, json_text, mutate_safetensors, mutate_tree
from tools.torture.odd_values import odd_text

from igcd.tensor_files import read_tensors, write_tensors


def mutate_model(content: bytes, rng: random.Random) -> bytes:
    """A file of `write_tensors` with something else in it, written by `write_tensors`; or any safetensors file."""
    if rng.random() < 0.3:
        return mutate_safetensors(content, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.safetensors")
        path.write_bytes(content)
        tensors, text = read_tensors(path)
        _change_text(text, rng) if text and rng.random() < 0.5 else _change_tensors(tensors, rng)
        write_tensors(path, tensors, text)
        return in_order(path.read_bytes())


def _change_text(text: dict[str, str], rng: random.Random) -> None:
    key = rng.choice(sorted(text))
    match rng.randrange(4):
        case 0:
            del text[key]
        case 1:
            text[odd_text(rng)[:1000].replace("\0", "")] = text.pop(key)
        case 2:
            text[key] = odd_text(rng)
        case _:
            try:
                text[key] = json_text(mutate_tree(json.loads(text[key]), rng))
            except ValueError:
                text[key] = odd_text(rng)


def _change_tensors(tensors: dict[str, torch.Tensor], rng: random.Random) -> None:
    name = rng.choice(sorted(tensors))
    tensor = tensors[name]
    match rng.randrange(7):
        case 0:
            del tensors[name]
        case 1:
            tensors[odd_text(rng)[:1000] or "x"] = tensors.pop(name)
        case 2:
            tensors[name] = tensor[: len(tensor) // 2].clone() if tensor.ndim else tensor[None]
        case 3:
            tensors[name] = tensor.to(rng.choice((torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool)))
        case 4:
            tensors[name] = tensors[rng.choice(sorted(tensors))].clone()
        case 5 if tensor.is_floating_point() and tensor.numel():
            changed = tensor.clone()
            changed.view(-1)[rng.randrange(tensor.numel())] = rng.choice((float("nan"), float("inf"), 1e30, 0.0))
            tensors[name] = changed
        case _:
            tensors[name] = torch.full_like(tensor, rng.choice((0, 1, 127)))
