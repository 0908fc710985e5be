"""Shards made by the workers of a Ray cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from igcd.allocation import keep_freed_memory
from igcd.assembly import build_encoder
from igcd.config import EncoderConfig
from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.embedding.embed import make_shard
from igcd.embedding.engines import EngineName, photo_encoder
from igcd.embedding.shards import Shard
from igcd.embedding.workers import Cluster


class Worker:
    """Loads the encoder once and makes shards of files; every machine sees the files below the same path."""

    def __init__(self, config: dict[str, Any], engine: EngineName, n_threads: int) -> None:
        import torch

        keep_freed_memory()
        torch.set_num_threads(n_threads)
        encoder = build_encoder(EncoderConfig(**config), quarantine=Quarantine())
        self._encoder = photo_encoder(encoder, engine)

    def make(self, root: str, paths: list[str]) -> Shard:
        """The shard of some files below a folder."""
        return make_shard(FileImages(Path(root), paths), self._encoder)


class OnRay:
    """Makes shards on the workers of a cluster."""

    def __init__(self, cluster: Cluster, config: EncoderConfig, *, engine: EngineName) -> None:
        self._cluster, self._engine = cluster, engine
        self._config = config.model_dump(mode="json")

    def __call__(
        self,
        images: FileImages,
        shards: dict[int, range],
        done: Callable[[int, Shard], None],
        progress: Callable[[int], None],  # noqa: ARG002 - workers tell nothing before a shard is whole
    ) -> None:
        """Calls `done` with each shard as it arrives."""

        def job(number: int) -> tuple[str, list[str]]:
            return str(images.root), [images.ids[position] for position in shards[number]]

        def describe(number: int) -> str:
            first = images.ids[shards[number][0]]
            return f"shard {number}; look for an image that cannot be read among {first} and those after it"

        self._cluster.run(Worker, (self._config, self._engine), shards, job, done, describe=describe)
