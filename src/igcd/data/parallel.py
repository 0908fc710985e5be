"""Work on many images at once, in order and within bounded memory."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from igcd.errors import IgcdError

T = TypeVar("T")
R = TypeVar("R")


def n_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(work: Callable[[T], R], items: Iterable[T], *, n_workers: int | None, n_ahead: int) -> Iterator[R]:
    """`work(item)` for each item, in order, by threads that run at most `n_ahead` items ahead of the reader.

    Threads suffice: Pillow lets go of the interpreter while it decodes and resizes.

    >>> list(map_in_order(abs, [-3, 1, -2], n_workers=2, n_ahead=2))
    [3, 1, 2]
    """
    if n_workers is not None and n_workers < 1:
        raise IgcdError(f"n_workers must be at least 1, got {n_workers}; leave it out to use every core")
    return _map_in_order(work, iter(items), n_workers or n_cores(), max(1, n_ahead))


def _map_in_order(work: Callable[[T], R], items: Iterator[T], n_workers: int, n_ahead: int) -> Iterator[R]:
    executor = ThreadPoolExecutor(n_workers)
    try:
        pending: deque[Future[R]] = deque(executor.submit(work, item) for item in islice(items, n_ahead))
        while pending:
            result = pending.popleft().result()
            pending.extend(executor.submit(work, item) for item in islice(items, 1))
            yield result
    finally:  # also when the reader stops early or a worker fails
        executor.shutdown(wait=True, cancel_futures=True)
