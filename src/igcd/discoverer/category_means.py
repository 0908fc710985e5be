"""The classifier: one mean per category in the whitened space, and how sure distances to them are."""

import math
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.confidence import Confidence
from igcd.functional.discovery import Discovered
from igcd.functional.refining import closeness, nearest_mean
from igcd.functional.whitening import Whitening
from igcd.types import UNLABELED

ROWS_AT_A_TIME = 4096
MIN_SPREAD = 0.01
"""Of closeness: that of copies of a row is not less."""


@dataclass(frozen=True)
class NoneOfThese:
    """How close to the nearest mean rows are that have a category, and rows that have none: a Gaussian each."""

    known: float  # the mean closeness of rows that have a category
    known_spread: float
    other: float  # of rows whose category is not there
    other_spread: float

    def __call__(self, closest: Tensor) -> Tensor:
        """The probability of having none, if one row in two had none. (n,) closeness to the nearest mean -> (n,).

        Rows closer than the known or farther than the others are no surer than these.
        """
        at = closest.clamp(min(self.other, self.known), self.known)
        known = -(((at - self.known) / self.known_spread) ** 2) / 2 - math.log(self.known_spread)
        other = -(((at - self.other) / self.other_spread) ** 2) / 2 - math.log(self.other_spread)
        return torch.sigmoid(other - known)


@dataclass
class CategoryMeans:
    """Means of categories, each with the number of rows behind it. Ids rise."""

    whitening: Whitening
    confidence: Confidence
    ids: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))  # (c,)
    means: Tensor = field(default_factory=lambda: torch.empty(0, 0))  # (c, d)
    counts: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))  # (c,)
    none: NoneOfThese | None = None  # None: as if "none" were a category with its mean at the origin

    @classmethod
    def of_known(
        cls, found: Discovered, rows: Tensor, categories: Tensor, is_labeled: Tensor, *, confidence: Confidence
    ) -> Self:
        """The known categories of a discovery, of which these rows were known, some of them by label. (m, d), (m,)."""
        places = torch.searchsorted(found.known_ids, categories)
        has_one = found.category >= 0
        counts = torch.bincount(torch.cat([places, found.category[has_one]]), minlength=len(found.means))
        labeled = found.whitening(rows[is_labeled])
        none = fit_none(labeled, places[is_labeled], found.means, counts) if len(labeled) else None
        n_known = found.n_known
        return cls(found.whitening, confidence, found.known_ids, found.means[:n_known], counts[:n_known], none)

    def put(self, category_id: int, mean: Tensor, count: int) -> None:
        """Sets the mean of a category, a new one or one there is. (d,)."""
        self.remove([category_id])
        width = len(mean)
        ids = torch.cat([self.ids, torch.tensor([category_id])])
        order = ids.argsort()
        self.means = torch.cat([self.means.reshape(-1, width).to(mean.dtype), mean[None]])[order]
        self.counts = torch.cat([self.counts, torch.tensor([max(count, 1)])])[order]
        self.ids = ids[order]

    def add(self, category_id: int, rows: Tensor) -> None:
        """More rows of a category, whitened: its mean moves by their share. (n, d)."""
        n_new = len(rows)
        if category_id not in self:
            self.put(category_id, rows.mean(dim=0), n_new)
            return
        mean, n_before = self[category_id]
        self.put(category_id, (n_before * mean + rows.sum(dim=0)) / (n_before + n_new), n_before + n_new)

    def join(self, into: int, others: list[int]) -> None:
        """One mean for several categories, weighted by their rows."""
        held = [self[category_id] for category_id in (into, *others) if category_id in self]
        total = sum(count for _, count in held)
        self.remove(others)
        if held:
            self.put(into, sum((count / total * mean for mean, count in held), torch.zeros_like(held[0][0])), total)

    def remove(self, category_ids: list[int]) -> None:
        """Forgets categories."""
        stays = ~torch.isin(self.ids, torch.tensor(category_ids, dtype=torch.int64))
        self.ids, self.means, self.counts = self.ids[stays], self.means[stays], self.counts[stays]

    def __contains__(self, category_id: int) -> bool:
        return bool((self.ids == category_id).any())

    def __getitem__(self, category_id: int) -> tuple[Tensor, int]:
        """Mean and number of rows of a category."""
        row = int((self.ids == category_id).nonzero()[0, 0])
        return self.means[row], int(self.counts[row])

    def most_alike(self, mean: Tensor) -> tuple[int | None, float | None]:
        """The category whose mean is most similar to this one, and the cosine; None without categories. (c,)."""
        if not len(self.ids):
            return None, None
        best = (normalize(self.means, dim=1) @ normalize(mean, dim=0)).max(dim=0)
        return int(self.ids[best.indices]), float(best.values)

    def probs(self, rows: Tensor, ids: Tensor) -> Tensor:
        """The probability of each of some categories. (n, d) whitened, (c,) -> (n, c), rows sum to 1."""
        if not len(rows) or not len(ids):
            return rows.new_empty(len(rows), len(ids))
        means = self.means[torch.isin(self.ids, ids)]
        parts = torch.split(rows, ROWS_AT_A_TIME)
        return torch.cat([self.confidence.probs(closeness(part, means)) for part in parts])

    def predict(self, rows: Tensor, ids: Tensor) -> Tensor:
        """The most probable of some categories for each row, −1 if there is none. (n, d) whitened, (c,) -> (n,)."""
        if not len(ids):
            return torch.full((len(rows),), UNLABELED)
        return ids[nearest_mean(rows, self.means[torch.isin(self.ids, ids)])]

    def assign(self, rows: Tensor, ids: Tensor, *, unsure: float) -> Tensor:
        """The same with −1 for unsure rows: the best is improbable, or not of these `ids`, or "none" is probable.

        (n, d) whitened, (c,) -> (n,). Probable is what has a probability of 1 − `unsure` or more.
        """
        if not len(ids):
            return self.predict(rows, ids)
        parts = []
        is_live = torch.isin(self.ids, ids)
        for part in torch.split(rows, ROWS_AT_A_TIME):  # all probabilities at once would not fit into memory
            close = closeness(part, self.means)
            closest = close.max(dim=1)
            best = self.confidence.probs(close[:, is_live]).max(dim=1)
            is_none = self._none(closest.values) > 1 - unsure
            is_unsure = (best.values < unsure) | ~is_live[closest.indices] | is_none
            parts.append(ids[best.indices].masked_fill(is_unsure, UNLABELED))
        return torch.cat(parts)

    def none_probs(self, rows: Tensor) -> Tensor:
        """The probability that a row is of none of the categories, if one row in two were. (n, d) whitened -> (n,)."""
        parts = [
            self._none(closeness(part, self.means).max(dim=1).values) for part in torch.split(rows, ROWS_AT_A_TIME)
        ]
        return torch.cat(parts) if parts else rows.new_empty(0)

    def _none(self, closest: Tensor) -> Tensor:
        """The same from the closeness to the nearest mean. (n,) -> (n,)."""
        return self.none(closest) if self.none else torch.sigmoid(-self.confidence.sharpness * closest)


def fit_none(rows: Tensor, places: Tensor, means: Tensor, counts: Tensor) -> NoneOfThese | None:
    """How close rows are that have a category, and rows that have none. (n, d), (n,), (c, d), (c,).

    `places` are the rows' means. Each labeled row is asked twice: beside all means, its own without the row itself, and
    with its own mean taken away, as if nobody knew its category. None where rows or categories are too few to ask.
    """
    several = counts[places] > 1
    rows, places = rows[several], places[several]
    if len(means) < 2 or len(rows) < 2:
        return None
    own, n = means[places], counts[places][:, None]
    own = (n * own - rows) / (n - 1)
    others = torch.cat(
        [
            closeness(part, means).scatter(1, place[:, None], -torch.inf).max(dim=1).values
            for part, place in zip(torch.split(rows, ROWS_AT_A_TIME), torch.split(places, ROWS_AT_A_TIME), strict=True)
        ]
    )
    closeness_to_own = (rows * own).sum(dim=1) - own.square().sum(dim=1) / 2
    known = torch.maximum(closeness_to_own, others)
    return NoneOfThese(*_mean_and_spread(known), *_mean_and_spread(others))


def _mean_and_spread(close: Tensor) -> tuple[float, float]:
    return float(close.mean()), max(MIN_SPREAD, float(close.std()))
