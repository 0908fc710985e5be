"""The classifier: one mean per category in the whitened space."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.discoverer.certainty import ROWS_AT_A_TIME, Certainty, certainty_of_later, fit_none
from igcd.functional.calibration import rehearsed_confidence
from igcd.functional.discovery import Discovered
from igcd.functional.refining import closeness, nearest_mean
from igcd.functional.whitening import Whitening
from igcd.types import UNLABELED


@dataclass
class CategoryMeans:
    """Means of categories, each with the number of rows behind it. Ids rise.

    Rows that were learned from lie closer to the means than later ones: each kind has a certainty of its own.
    """

    whitening: Whitening
    learned: Certainty
    ids: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))  # (c,)
    means: Tensor = field(default_factory=lambda: torch.empty(0, 0))  # (c, d)
    counts: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))  # (c,)
    later: Certainty | None = None  # None: as of rows that were learned from

    def calibrate(
        self,
        found: Discovered,
        unlabeled: Tensor,
        known: Tensor,
        categories: Tensor,
        *,
        is_guess: Tensor,
        seed: int = 0,
    ) -> None:
        """How sure distances are, for rows that are learned from now and for later ones. (n, d), (m, d), (m,), (m,)."""
        confidence = rehearsed_confidence(found, unlabeled, known, categories, is_guess=is_guess, seed=seed)
        self.learned = replace(self.learned, confidence=confidence)
        self.later = certainty_of_later(
            found, unlabeled, known, categories, is_guess=is_guess, confidence=confidence, seed=seed
        )

    def only_known(self, found: Discovered, rows: Tensor, categories: Tensor, is_labeled: Tensor) -> Self:
        """The known categories of a discovery, of which these rows were known, some of them by label. (m, d), (m,).

        How sure distances are stays; how far rows of none are is asked again.
        """
        places = torch.searchsorted(found.known_ids, categories)
        has_one = found.category >= 0
        counts = torch.bincount(torch.cat([places, found.category[has_one]]), minlength=len(found.means))
        labeled = found.whitening(rows[is_labeled])
        none = fit_none(labeled, places[is_labeled], found.means, counts) if len(labeled) else None
        n_known, learned = found.n_known, replace(self.learned, none=none)
        ids, means = found.known_ids, found.means[:n_known]
        return replace(self, whitening=found.whitening, learned=learned, ids=ids, means=means, counts=counts[:n_known])

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

    def probs(self, rows: Tensor, ids: Tensor, was_learned: Tensor) -> Tensor:
        """The probability of each of some categories. (n, d) whitened, (c,), (n,) -> (n, c), rows sum to 1."""
        if not len(rows) or not len(ids):
            return rows.new_empty(len(rows), len(ids))
        means = self.means[torch.isin(self.ids, ids)]
        return torch.cat([self._probs(closeness(part, means), own) for part, own in _parts(rows, was_learned)])

    def predict(self, rows: Tensor, ids: Tensor) -> Tensor:
        """The most probable of some categories for each row, −1 if there is none. (n, d) whitened, (c,) -> (n,)."""
        if not len(ids):
            return torch.full((len(rows),), UNLABELED)
        return ids[nearest_mean(rows, self.means[torch.isin(self.ids, ids)])]

    def assign(self, rows: Tensor, ids: Tensor, was_learned: Tensor, *, unsure: float) -> Tensor:
        """The same with −1 for unsure rows: the best is improbable, or not of these `ids`, or "none" is probable.

        (n, d) whitened, (c,), (n,) -> (n,). Probable is what has a probability of 1 − `unsure` or more.
        """
        if not len(ids):
            return self.predict(rows, ids)
        assigned = [rows.new_empty(0, dtype=torch.int64)]
        is_live = torch.isin(self.ids, ids)
        for part, own in _parts(rows, was_learned):  # all probabilities at once would not fit into memory
            close = closeness(part, self.means)
            closest = close.max(dim=1)
            best = self._probs(close[:, is_live], own).max(dim=1)
            is_none = self._none_probs(closest.values, own) > 1 - unsure
            is_unsure = (best.values < unsure) | ~is_live[closest.indices] | is_none
            assigned.append(ids[best.indices].masked_fill(is_unsure, UNLABELED))
        return torch.cat(assigned)

    def none_probs(self, rows: Tensor, was_learned: Tensor) -> Tensor:
        """The probability that a row is of none of the categories, if one row in two were.

        (n, d) whitened, (n,) -> (n,).
        """
        probs = [rows.new_empty(0)]
        for part, own in _parts(rows, was_learned):
            probs.append(self._none_probs(closeness(part, self.means).amax(dim=1), own))
        return torch.cat(probs)

    def _probs(self, close: Tensor, was_learned: Tensor) -> Tensor:
        """The same from the closeness to c means. (n, c), (n,) -> (n, c)."""
        probs = torch.empty_like(close)
        for certainty, own in self._by_kind(was_learned):
            probs[own] = certainty.confidence.probs(close[own])
        return probs

    def _none_probs(self, closest: Tensor, was_learned: Tensor) -> Tensor:
        """The same from the closeness to the nearest mean. (n,), (n,) -> (n,)."""
        probs = torch.empty_like(closest)
        for certainty, own in self._by_kind(was_learned):
            probs[own] = certainty.none_probs(closest[own])
        return probs

    def _by_kind(self, was_learned: Tensor) -> Iterator[tuple[Certainty, Tensor]]:
        """Each certainty that there is, with the mask of its rows. (n,)."""
        yield self.learned, was_learned
        yield self.later or self.learned, ~was_learned


def _parts(rows: Tensor, was_learned: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows part by part, with the mask of those that were learned from. (n, d), (n,)."""
    return zip(torch.split(rows, ROWS_AT_A_TIME), torch.split(was_learned, ROWS_AT_A_TIME), strict=True)
