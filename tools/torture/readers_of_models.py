"""Torture of what reads models, checkpoints and caches."""

import importlib
import io
import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from tools.torture.byte_mutation import mutate_bytes
from tools.torture.formats import mutate_json, mutate_npy, mutate_safetensors, zip_mutation
from tools.torture.judging import require
from tools.torture.model_mutation import mutate_model
from tools.torture.reader import Reader, files_below
from tools.torture.readers_of_data import picture_bytes
from tools.torture.tiny_world import BACKBONE, FROZEN, SIZE, SNN_DENSITY, quiet, write_recipe

from igcd.assembly import build_encoder
from igcd.cli.run import run_recipe
from igcd.config import EncoderConfig
from igcd.data.images import ArrayImages
from igcd.data.quarantine import Quarantine
from igcd.data.sized_cache import cached_at_size
from igcd.encoders.row_index import row_keys
from igcd.encoders.row_store import DiskStore, Library
from igcd.encoders.weights import load_file, load_into, recognize, to_timm_names
from igcd.runner import EpochCheckpoint
from igcd.tensor_files import read_tensors, write_tensors
from igcd.workspace.features import open_tail

predict_command = importlib.import_module("igcd.cli.predict")  # the package has a function of this name
KEYS = row_keys([f"image {i}" for i in range(6)], ["plain", "view"])
ROWS = np.arange(12 * 5, dtype=np.float16).reshape(12, 5)


_ENCODERS: dict[str, Any] = {}


def _encoder_once(config: Any, *, quarantine: Quarantine) -> Any:  # noqa: ANN401 - as the original
    """Builds each encoder once: a mutated model does not change it, and building takes most of the time."""
    if repr(config) not in _ENCODERS:
        _ENCODERS[repr(config)] = build_encoder(config, quarantine=quarantine)
    return _ENCODERS[repr(config)]


def check_prediction(folder: Path) -> None:
    """A model that is taken gives each image a category and a probability."""
    with quiet() as said, mock.patch.object(predict_command, "build_encoder", _encoder_once):
        predict_command.predict(folder, [folder / "picture.png"], as_json=True)
    answers = json.loads(said.getvalue(), parse_constant=lambda _: math.nan)
    require(len(answers) == 1, "an answer for each image")
    probability = answers[0].get("probability", 1.0)
    require(isinstance(probability, float | int) and 0 <= probability <= 1.0001, "a probability is from 0 to 1")


def check_cache(folder: Path) -> None:
    """Whatever happened to a cache, it holds the right rows or none, and can be filled again."""
    for _ in range(2):
        store = DiskStore(Library(folder / "trunk", 10**9), "net")
        found = store.find(KEYS)
        flat_shard, flat_row = found.shard.reshape(-1), found.row.reshape(-1)
        for at, (shard, row) in enumerate(zip(flat_shard.tolist(), flat_row.tolist(), strict=True)):
            require(
                shard < 0 or np.array_equal(found.shards[shard][row], ROWS[at]), "a cached row is what was computed"
            )
        missing = np.flatnonzero(flat_shard < 0)
        if len(missing):
            store.add(KEYS.reshape(-1)[missing], ROWS[missing])
        require(not store.find(KEYS).is_missing.any(), "a cache can be filled again")


def check_weights(folder: Path, name: str) -> None:
    """Weights that fit are taken whole."""
    state = load_file(folder / name)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    load_into(model, to_timm_names(state, recognize(state)), classifier=("fc",), source=name)


@cache
def _finished_run(scratch: Path, method: str) -> dict[str, bytes]:
    name = "frozen" if method == FROZEN else "trained"
    recipe = write_recipe(scratch / f"{name}.yaml", cache=scratch / "cache", method=method, epochs=1)
    with quiet():
        run_recipe(str(recipe), [], scratch / name, resume=False, as_json=True)
    files = files_below(scratch / name)
    wanted = ("config.json", "model/model.safetensors", "stages/stage-1.json")
    return {file: files[file] for file in wanted} | {"picture.png": picture_bytes()}


def _cache_files(scratch: Path) -> dict[str, bytes]:
    store = DiskStore(Library(scratch / "cache_sample" / "trunk", 10**9), "net")
    store.add(KEYS.reshape(-1)[:7], ROWS[:7])
    store.add(KEYS.reshape(-1)[7:], ROWS[7:])
    return {name: content for name, content in files_below(scratch / "cache_sample").items() if "shard-" in name}


def _image_cache(scratch: Path) -> tuple[dict[str, bytes], Callable[[Path], None]]:
    """The files of an image cache, and the check that whatever happened to them the pixels are right."""
    images = ArrayImages(["a", "b", "c"], np.random.default_rng(0).integers(0, 256, (3, 9, 9, 3), dtype=np.uint8))
    sound = cached_at_size(images, 6, scratch / "image_cache")
    expected = [sound.pixels(idx).copy() for idx in range(3)]

    def check(folder: Path) -> None:
        cached = cached_at_size(images, 6, folder)
        for idx, pixels in enumerate(expected):
            require(np.array_equal(cached.pixels(idx), pixels), "a cached image is what was decoded")

    return files_below(scratch / "image_cache"), check


def _adapted_tail(scratch: Path) -> tuple[dict[str, bytes], Callable[[Path], object]]:
    """The tail that `discover --adapt` leaves behind, and how it is opened."""
    config = EncoderConfig(backbone=BACKBONE, weights="random", size=SIZE, cache=None)
    encoder = build_encoder(config, quarantine=Quarantine(limit=1.0))
    tensors = {f"model.tail.{name}": part for name, part in encoder.backbone.tail.state_dict().items()}
    write_tensors(scratch / "tail.safetensors", tensors, {"workspace.category_ids": "[1, 2]"})
    content = {"tail.safetensors": (scratch / "tail.safetensors").read_bytes()}
    return content, lambda folder: open_tail(encoder, folder / "tail.safetensors")


def model_readers(scratch: Path) -> list[Reader]:
    """The readers, each with its sample; `scratch` is a folder for making them, which takes some seconds."""
    scratch.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    state = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).state_dict()
    write_tensors(scratch / "w.safetensors", state, {"format": "pt"})
    checkpoint = io.BytesIO()
    torch.save({"state_dict": state, "epoch": 3}, checkpoint)
    EpochCheckpoint(scratch / "epoch.safetensors").save(3, {"a": torch.ones(4), "b": torch.zeros(2, 2)})
    cached = _cache_files(scratch)
    of_cache = {
        name: mutate_json if name.endswith("json") else mutate_npy for name in cached if name.endswith(("json", "npy"))
    }

    def of_model(method: str) -> tuple[dict[str, bytes], dict[str, Any]]:
        files = _finished_run(scratch, method)
        how = {
            "model/model.safetensors": mutate_model,
            "config.json": mutate_json,
            "stages/stage-1.json": mutate_json,
        }
        return files, how

    kept_images, check_images = _image_cache(scratch)
    tail, open_it = _adapted_tail(scratch)
    return [
        Reader("image cache", kept_images, dict.fromkeys(kept_images, mutate_npy), check_images),
        Reader("adapted tail", tail, {"tail.safetensors": mutate_model}, open_it, 0.3),
        Reader("trunk cache", cached, of_cache, check_cache),
        Reader(
            "weights safetensors",
            {"w.safetensors": (scratch / "w.safetensors").read_bytes()},
            {"w.safetensors": mutate_safetensors},
            lambda f: check_weights(f, "w.safetensors"),
        ),
        Reader(
            "weights pth",
            {"w.pth": checkpoint.getvalue()},
            {"w.pth": zip_mutation({"": mutate_bytes})},
            lambda f: check_weights(f, "w.pth"),
        ),
        Reader(
            "tensor file",
            {"w.safetensors": (scratch / "w.safetensors").read_bytes()},
            {"w.safetensors": mutate_model},
            lambda f: read_tensors(f / "w.safetensors"),
        ),
        Reader(
            "epoch checkpoint",
            {"epoch.safetensors": (scratch / "epoch.safetensors").read_bytes()},
            {"epoch.safetensors": mutate_model},
            lambda f: EpochCheckpoint(f / "epoch.safetensors").load(),
        ),
        Reader("model, frozen", *of_model(FROZEN), check_prediction, 0.1),
        Reader("model, trained", *of_model(SNN_DENSITY), check_prediction, 0.05),
    ]
