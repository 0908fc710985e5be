"""Suspected mistakes among labels: each label is judged by all the others, without itself."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from igcd.functional.grouping import distinct
from igcd.types import BoolArray, FloatArray, IntArray

_ROWS_AT_A_TIME = 2048


@dataclass(frozen=True)
class LabelCheck:
    """What the other labels say about each label, one entry per row."""

    probability: FloatArray  # (n,) of the label
    other: IntArray  # (n,) the most probable other category
    other_probability: FloatArray  # (n,)

    @property
    def is_doubtful(self) -> BoolArray:
        """Where another category is more probable than the label. (n,)."""
        return np.asarray(self.other_probability > self.probability)


def check_labels(rows: Tensor, labels: Tensor) -> LabelCheck:
    """The leave-one-out probability of each label. (n, d) of length 1, (n,) -> n entries.

    A row is compared with the mean of each category, with its own without itself: exp(−sharpness d² / 2). The sharpness
    is the one at which the mean confidence is the share of labels that come out right. The only row of a category says
    nothing about it, and is in no doubt.
    """
    ids, owners = distinct(labels)
    counts = torch.bincount(owners, minlength=len(ids))
    sums = rows.new_zeros(len(ids), rows.shape[1]).index_add_(0, owners, rows)
    closeness = torch.cat(
        [
            _without_itself(part, sums, counts, own)
            for part, own in zip(torch.split(rows, _ROWS_AT_A_TIME), torch.split(owners, _ROWS_AT_A_TIME), strict=True)
        ]
    )
    at = torch.arange(len(rows))
    several = counts[owners] > 1
    if len(ids) < 2:
        return LabelCheck(np.ones(len(rows)), labels.numpy(), np.zeros(len(rows)))
    share_right = float((closeness.argmax(dim=1) == owners)[several].double().mean()) if several.any() else 1.0
    probs = (_sharpness_for(share_right, closeness[several]) * closeness).softmax(dim=1)
    own = torch.where(several, probs[at, owners], torch.ones(len(rows), dtype=probs.dtype))
    probs[at, owners] = -1.0
    best = probs.max(dim=1)
    other_probability = torch.where(several, best.values, torch.zeros(len(rows), dtype=probs.dtype))
    return LabelCheck(own.double().numpy(), ids[best.indices].numpy(), other_probability.double().numpy())


def _without_itself(rows: Tensor, sums: Tensor, counts: Tensor, owners: Tensor) -> Tensor:
    """Half of (1 − d²) to the mean of each category, of its own without the row.

    (n, d), (c, d), (c,), (n,) -> (n, c).
    """
    means = sums / counts[:, None]
    closeness = rows @ means.T - means.square().sum(dim=1) / 2
    others = (sums[owners] - rows) / (counts[owners] - 1).clamp(min=1)[:, None]
    closeness[torch.arange(len(rows)), owners] = (rows * others).sum(dim=1) - others.square().sum(dim=1) / 2
    return closeness


def _sharpness_for(share_right: float, closeness: Tensor) -> float:
    """The sharpness with that mean confidence, by bisection of its logarithm. (n, c)."""
    low, high = 0.0, 6.0
    for _ in range(20):
        middle = (low + high) / 2
        confidence = (np.exp(middle) * closeness).softmax(dim=1).max(dim=1).values
        low, high = (middle, high) if float(confidence.mean()) < share_right else (low, middle)
    return float(np.exp(middle))
