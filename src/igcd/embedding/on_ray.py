"""Shards made by the workers of a Ray cluster; a shard whose worker dies is made again by another."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from igcd.assembly import build_encoder
from igcd.config import EncoderConfig
from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.embedding.embed import make_shard
from igcd.embedding.engines import EngineName, photo_encoder
from igcd.embedding.shards import Shard
from igcd.errors import IgcdError

MAX_DEATHS = 3
"""Workers that may die over one shard; an image that kills its reader would go on killing."""


class Worker:
    """Loads the encoder once and makes shards of files; every machine sees the files below the same path."""

    def __init__(self, config: dict[str, Any], engine: EngineName, n_threads: int) -> None:
        import torch

        torch.set_num_threads(n_threads)
        encoder = build_encoder(EncoderConfig(**config), quarantine=Quarantine())
        self._encoder = photo_encoder(encoder, engine)

    def make(self, root: str, paths: list[str]) -> Shard:
        """The shard of some files below a folder."""
        return make_shard(FileImages(Path(root), paths), self._encoder)


class OnRay:
    """Makes shards on the workers of a cluster: one actor per worker, each with one shard at a time."""

    def __init__(
        self, address: str, config: EncoderConfig, *, engine: EngineName, n_workers: int, n_threads: int = 1
    ) -> None:
        self._address, self._engine = address, engine
        self._config = config.model_dump(mode="json")
        self._n_workers, self._n_threads = n_workers, n_threads

    def __call__(self, images: FileImages, shards: dict[int, range], done: Callable[[int, Shard], None]) -> None:
        """Calls `done` with each shard as it arrives."""
        try:
            import ray  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            raise IgcdError(
                "--ray needs the package ray, it is not installed; pip install 'igcd[ray]', or leave --ray out"
            ) from None
        began = not ray.is_initialized()
        if began:
            try:
                ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR)
            except ConnectionError as error:
                raise IgcdError(f"expected a Ray cluster at {self._address}, found none ({error}); start it") from None
        try:
            self._run(ray, images, shards, done)
        finally:
            if began:
                ray.shutdown()

    def _run(
        self,
        ray: Any,  # noqa: ANN401 - untyped
        images: FileImages,
        shards: dict[int, range],
        done: Callable[[int, Shard], None],
    ) -> None:
        actor = ray.remote(num_cpus=self._n_threads, max_restarts=0)(Worker)
        waiting, deaths = list(reversed(shards)), dict.fromkeys(shards, 0)
        running: dict[Any, tuple[int, Any]] = {}  # the answer to come -> which shard, by which worker

        def start(worker: Any) -> None:  # noqa: ANN401
            number = waiting.pop()
            paths = [images.ids[position] for position in shards[number]]
            running[worker.make.remote(str(images.root), paths)] = number, worker

        for _ in range(min(self._n_workers, len(waiting))):
            start(actor.remote(self._config, self._engine, self._n_threads))
        while running:
            (answer,), _ = ray.wait(list(running), num_returns=1)
            number, worker = running.pop(answer)
            try:
                shard = ray.get(answer)
            except ray.exceptions.RayActorError as error:
                deaths[number] += 1
                if deaths[number] >= MAX_DEATHS:
                    raise IgcdError(
                        f"{MAX_DEATHS} workers died over shard {number}; look for an image that cannot be read among "
                        f"{images.ids[shards[number][0]]} and those after it ({type(error).__name__})"
                    ) from None
                waiting.append(number)
                worker = actor.remote(self._config, self._engine, self._n_threads)
            else:
                done(number, shard)
            if waiting:
                start(worker)
