"""Shuffling that gives the same order on every machine and with every numpy."""

import numpy as np

from igcd.types import IntArray


def generator(*seed: int) -> np.random.Generator:
    """A generator that depends on these numbers alone; several of them name independent streams."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def shuffled(n: int, rng: np.random.Generator) -> IntArray:
    """The numbers 0 to n - 1 in random order, (n,).

    `Generator.permutation` may change between numpy releases; the raw output of a bit generator may not. Split
    files must come out byte for byte the same everywhere, so the order is that of raw 64-bit numbers.

    >>> shuffled(5, generator(0)).tolist()
    [3, 2, 1, 0, 4]
    """
    return np.argsort(rng.bit_generator.random_raw(n), kind="stable").astype(np.int64)
