"""Suspected mistakes among labels: each label is judged by all the others, without itself.

Every row has a leave-one-out probability p_c of each category c. Its label ℓ came about in one of three ways: it is
right; it is a slip, any other category as likely as the next; or it is a mix-up, one of the categories most alike:

    P(ℓ | row) = (1 − slips − mix-ups) p_ℓ + slips Σ_c≠ℓ p_c / (C − 1) + mix-ups Σ_c alike ℓ p_c / N

How often slips and mix-ups happen, and how sharply distances decide, are the most probable values, given all labels and
`SEEN_BEFORE`. A row that could be of several categories is then no mistake, as long as its label is one of them.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.grouping import distinct
from igcd.types import BoolArray, FloatArray, IntArray

N_ALIKE = 5
"""Categories that one is mixed up with."""
MAX_FITTED = 4096
"""Of more rows a sample says how often mistakes happen; of less than that where there are very many categories."""
SEEN_BEFORE = np.array([98.0, 1.0, 1.0])
"""Right labels, slips and mix-ups that count as seen before: few labels alone could explain hard rows by mistakes."""
_N_ROUNDS = 60
_CELLS_AT_A_TIME = 4 * 2**20


@dataclass(frozen=True)
class LabelCheck:
    """What the other labels say about each label, one entry per row."""

    probability: FloatArray  # (n,) that the label is right
    other: IntArray  # (n,) the most probable other category
    other_probability: FloatArray  # (n,)

    @property
    def is_doubtful(self) -> BoolArray:
        """Where a mistake is more probable than not. (n,)."""
        return np.asarray(self.probability < 0.5)


@dataclass(frozen=True)
class _Means:
    """Categories, as rows are compared with them."""

    sums: Tensor  # (c, d)
    counts: Tensor  # (c,)
    alike: Tensor  # (c, k) the other categories most like each

    def closeness(self, rows: Tensor, owners: Tensor) -> Tensor:
        """Half of (1 − d²) to the mean of each category, of its own without the row. (n, d), (n,) -> (n, c)."""
        means = self.sums / self.counts[:, None]
        closeness = rows @ means.T - means.square().sum(dim=1) / 2
        others = (self.sums[owners] - rows) / (self.counts[owners] - 1).clamp(min=1)[:, None]
        closeness[torch.arange(len(rows)), owners] = (rows * others).sum(dim=1) - others.square().sum(dim=1) / 2
        return closeness.double()


@dataclass(frozen=True)
class _Habits:
    """How sharply distances decide, and how often labels are right, slips and mix-ups."""

    sharpness: float
    rates: FloatArray  # (3,), sum to 1

    def judge(self, closeness: Tensor, owners: Tensor, alike: Tensor) -> Tensor:
        """How probable it is that each category is the one shown, given the label. (n, c), (n,), (c, k) -> (n, c)."""
        probs = (self.sharpness * closeness).softmax(dim=1)
        said = torch.full_like(probs, self.rates[1] / (probs.shape[1] - 1))
        said.scatter_add_(1, alike[owners], torch.full_like(probs[:, : alike.shape[1]], self.rates[2] / alike.shape[1]))
        said[torch.arange(len(probs)), owners] = self.rates[0]
        joint = probs * said
        return joint / joint.sum(dim=1, keepdim=True).clamp(min=1e-300)


def check_labels(rows: Tensor, labels: Tensor, *, seed: int = 0) -> LabelCheck:
    """How probable it is that each label is right. (n, d) of length 1, (n,) -> n entries.

    A row is compared with the mean of each category, with its own without itself: p_c ∝ exp(−sharpness d² / 2). The
    only row of a category says nothing about it, and is in no doubt.
    """
    ids, owners = distinct(labels)
    if len(ids) < 2:
        return LabelCheck(np.ones(len(rows)), labels.numpy(), np.zeros(len(rows)))
    counts = torch.bincount(owners, minlength=len(ids))
    sums = rows.new_zeros(len(ids), rows.shape[1]).index_add_(0, owners, rows)
    means = _Means(sums, counts, _most_alike(sums))
    several = counts[owners] > 1
    fitted = torch.nonzero(several)[:, 0]
    rows_at_a_time = max(64, _CELLS_AT_A_TIME // len(ids))
    n_fitted = min(MAX_FITTED, rows_at_a_time)
    if len(fitted) > n_fitted:
        fitted = fitted[torch.randperm(len(fitted), generator=torch.Generator().manual_seed(seed))[:n_fitted]]
    habits = _fit_habits(means.closeness(rows[fitted], owners[fitted]), owners[fitted], means.alike)
    right, other, other_probability = [], [], []
    for part, own in zip(torch.split(rows, rows_at_a_time), torch.split(owners, rows_at_a_time), strict=True):
        shown = habits.judge(means.closeness(part, own), own, means.alike)
        at = torch.arange(len(part))
        right.append(shown[at, own].clone())
        shown[at, own] = -1.0
        best = shown.max(dim=1)
        other.append(ids[best.indices])
        other_probability.append(best.values)
    nothing = torch.zeros(len(rows), dtype=torch.float64)
    return LabelCheck(
        torch.where(several, torch.cat(right), nothing + 1).numpy(),
        torch.cat(other).numpy(),
        torch.where(several, torch.cat(other_probability), nothing).numpy(),
    )


def _most_alike(sums: Tensor) -> Tensor:
    """The categories most like each. (c, d) -> (c, k)."""
    means = normalize(sums, dim=1)
    n_alike = min(N_ALIKE, len(sums) - 1)
    found = []
    rows_at_a_time = max(64, _CELLS_AT_A_TIME // len(means))
    for start in range(0, len(means), rows_at_a_time):
        part = means[start : start + rows_at_a_time]
        similarity = part @ means.T
        similarity[torch.arange(len(part)), start + torch.arange(len(part))] = -torch.inf
        found.append(similarity.topk(n_alike, dim=1).indices)
    return torch.cat(found)


def _fit_habits(closeness: Tensor, owners: Tensor, alike: Tensor) -> _Habits:
    """The most probable sharpness and rates. (n, c), (n,), (c, k)."""

    def fit(log_sharpness: float) -> tuple[float, FloatArray]:
        return _fit_rates(_label_probability(float(np.exp(log_sharpness)), closeness, owners, alike))

    best = minimize_scalar(lambda value: fit(value)[0], bounds=(0.0, 6.0), method="bounded", options={"xatol": 0.01})
    return _Habits(float(np.exp(best.x)), fit(float(best.x))[1])


def _label_probability(sharpness: float, closeness: Tensor, owners: Tensor, alike: Tensor) -> FloatArray:
    """The probability of each label if it is right, a slip, or a mix-up. (n, c), (n,), (c, k) -> (n, 3)."""
    probs = (sharpness * closeness).softmax(dim=1)
    right = probs[torch.arange(len(probs)), owners]
    slip = (1 - right) / (probs.shape[1] - 1)
    mixed_up = probs.gather(1, alike[owners]).mean(dim=1)
    return np.asarray(torch.stack([right, slip, mixed_up], dim=1).numpy())


def _fit_rates(ways: FloatArray) -> tuple[float, FloatArray]:
    """Minus the logarithm of the posterior, and the rates of right labels, slips and mix-ups. (n, 3) -> (3,).

    By expectation and maximization.
    """
    rates = SEEN_BEFORE / SEEN_BEFORE.sum()
    for _ in range(_N_ROUNDS):
        shares = ways * rates
        counts = (shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)).sum(axis=0) + SEEN_BEFORE
        rates = counts / counts.sum()
    likelihood = np.log(np.maximum(ways @ rates, 1e-300)).sum() + SEEN_BEFORE @ np.log(rates)
    return -float(likelihood), rates
