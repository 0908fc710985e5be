"""Forgetting M_f and discovery M_d from the accuracies of the stages, in percentage points."""

from collections.abc import Callable, Sequence

import numpy as np

from igcd.types import IntArray


def maximum_forgetting(base_accuracy: float | None, later: Sequence[float | None]) -> float | None:
    """M_f of the paper, GM and Happy: stage 0's accuracy minus the lowest reached later on its categories.

    Negative where every later stage does better. None without a stage 0 or a later accuracy.

    >>> maximum_forgetting(41.0, [16.5, 14.0, None])
    27.0
    """
    known = [accuracy for accuracy in later if accuracy is not None]
    return base_accuracy - min(known) if base_accuracy is not None and known else None


def final_forgetting(base_accuracy: float | None, later: Sequence[float | None]) -> float | None:
    """M_f of VB-CGCD: stage 0's accuracy minus that of the final stage on its categories.

    >>> final_forgetting(41.0, [14.0, 16.5])
    24.5
    """
    return maximum_forgetting(base_accuracy, later[-1:])


def final_discovery(stages: IntArray, score: Callable[[IntArray], float | None]) -> float | None:
    """M_d of the paper: the accuracy of the final stage on all categories met so far. (n,) the stage of each image.

    `score` is the accuracy of the images at these positions.

    >>> hits = np.array([0, 1, 1, 0])
    >>> final_discovery(np.array([0, 0, 1, 1]), lambda members: 100 * float(hits[members].mean()))
    50.0
    """
    return score(np.flatnonzero(stages == stages.max()))


def mean_discovery(new_accuracies: Sequence[float | None]) -> float | None:
    """M_d of Happy: the mean accuracy on New over the stages after stage 0 that have New.

    >>> mean_discovery([50.0, None, 40.0])
    45.0
    """
    known = [accuracy for accuracy in new_accuracies if accuracy is not None]
    return sum(known) / len(known) if known else None
