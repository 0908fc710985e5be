"""What needs a look: photos in groups that are alike, in the order in which a decision teaches most."""

import numpy as np

from igcd.types import FloatArray, IntArray

PHOTOS_PER_LOOK = 6
"""Photos of a group on average: few enough to see at a glance, many enough to be worth a decision."""


def n_looks(n_photos: int) -> int:
    """How many groups so many photos make.

    >>> [n_looks(n) for n in (0, 1, 5, 330)]
    [0, 1, 1, 55]
    """
    return 0 if n_photos == 0 else max(1, round(n_photos / PHOTOS_PER_LOOK))


def most_teaching_first(means: FloatArray, gains: FloatArray, novelty: FloatArray) -> IntArray:
    """The order of groups: uncertain, novel and different ones first. (k, d) of length 1, (k,), (k,) -> (k,).

    A group's worth is its gain, the number of photos expected to be wrong now, times 1 + novelty. Each next group is
    the one whose worth, times its distance 1 − cosine to the nearest group before it, is largest: the first decisions
    see something of everything.
    """
    worth = np.asarray(gains, dtype=np.float64) * (1 + np.asarray(novelty, dtype=np.float64))
    apart = np.ones(len(worth))
    order: list[int] = []
    is_left = np.ones(len(worth), dtype=bool)
    for _ in range(len(worth)):
        chosen = int(np.argmax(np.where(is_left, worth * apart, -1.0)))
        order.append(chosen)
        is_left[chosen] = False
        apart = np.minimum(apart, np.clip(1 - means @ means[chosen], 0.0, 1.0))
    return np.array(order, dtype=np.int64)


def expected_growth(n_right: float, n_photos: int, gains: FloatArray) -> list[float]:
    """Share of photos expected to be right now and after each decision that settles its whole group. (k,) -> k + 1.

    >>> expected_growth(6.0, 10, np.array([2.0, 1.0]))
    [0.6, 0.8, 0.9]
    """
    if not n_photos:
        return []
    return [float(min(share, 1.0)) for share in np.concatenate([[n_right], n_right + np.cumsum(gains)]) / n_photos]
