"""Jobs on the workers of a Ray cluster: a job whose worker dies is done again by another."""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from igcd.errors import IgcdError

MAX_DEATHS = 3
"""Workers that may die over one job; what kills its worker would go on killing."""


def leave_print_alone() -> None:
    """Keeps Ray from replacing `print` in this process: Numba, which PyNNDescent needs, could not compile it."""
    os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster, and how much of it to use: so many actors, each with so many threads and one job at a time."""

    address: str
    n_workers: int
    n_threads: int = 1

    def run(
        self,
        worker: type,
        settings: tuple[Any, ...],
        numbers: Iterable[int],
        job: Callable[[int], tuple[Any, ...]],
        done: Callable[[int, Any], None],
        *,
        describe: Callable[[int], str],
    ) -> None:
        """Calls `done` with each number and what `worker(*settings, n_threads).make(*job(number))` returned.

        `describe` says where to look when workers keep dying over a job.
        """
        try:
            import ray  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            raise IgcdError(
                "--ray needs the package ray, it is not installed; pip install 'igcd[ray]', or leave --ray out"
            ) from None
        leave_print_alone()
        began = not ray.is_initialized()
        if began:
            try:
                ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
            except ConnectionError as error:
                raise IgcdError(f"expected a Ray cluster at {self.address}, found none ({error}); start it") from None
        try:
            actor: Any = ray.remote(num_cpus=self.n_threads, max_restarts=0)(worker)
            self._run(ray, lambda: actor.remote(*settings, self.n_threads), list(numbers), job, done, describe)
        finally:
            if began:
                ray.shutdown()

    def _run(
        self,
        ray: Any,  # noqa: ANN401 - untyped
        new_worker: Callable[[], Any],
        numbers: list[int],
        job: Callable[[int], tuple[Any, ...]],
        done: Callable[[int, Any], None],
        describe: Callable[[int], str],
    ) -> None:
        waiting, deaths = numbers[::-1], dict.fromkeys(numbers, 0)
        running: dict[Any, tuple[int, Any]] = {}  # the answer to come -> which job, by which worker

        def start(worker: Any) -> None:  # noqa: ANN401
            number = waiting.pop()
            running[worker.make.remote(*job(number))] = number, worker

        for _ in range(min(self.n_workers, len(waiting))):
            start(new_worker())
        while running:
            (answer,), _ = ray.wait(list(running), num_returns=1)
            number, worker = running.pop(answer)
            try:
                result = ray.get(answer)
            except ray.exceptions.RayActorError as error:
                deaths[number] += 1
                if deaths[number] >= MAX_DEATHS:
                    raise IgcdError(
                        f"{MAX_DEATHS} workers died over {describe(number)} ({type(error).__name__})"
                    ) from None
                waiting.append(number)
                worker = new_worker()
            else:
                done(number, result)
            if waiting:
                start(worker)
