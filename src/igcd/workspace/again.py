"""Which categories of an earlier look were found again: they keep their ids."""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment

MIN_SHARED = 0.5
"""A category is the same one if it shares at least this much of its photos, those of then or those of now."""


def found_again(now: Mapping[int, Iterable[int]], former: Mapping[int, int]) -> dict[int, int]:
    """For each category found now the former one it is, where there is one; one to one.

    now: photos of each category found now. former: category of each photo before.

    >>> found_again({1000: [1, 2, 3], 1001: [4]}, {1: 7, 2: 7, 3: 8, 9: 8, 10: 8})
    {1000: 7}
    """
    numbers = sorted(now)
    old = sorted(set(former.values()))
    if not numbers or not old:
        return {}
    n_before = Counter(former.values())
    shared = np.zeros((len(numbers), len(old)))
    enough = np.zeros((len(numbers), len(old)), dtype=bool)
    for row, number in enumerate(numbers):
        photos = list(now[number])
        for category, n in Counter(former[photo] for photo in photos if photo in former).items():
            column = old.index(category)
            shared[row, column] = n
            enough[row, column] = n >= MIN_SHARED * min(len(photos), n_before[category])
    rows, columns = linear_sum_assignment(-np.where(enough, shared, 0))
    return {numbers[r]: old[c] for r, c in zip(rows.tolist(), columns.tolist(), strict=True) if enough[r, c]}
