"""How sure distances to category means are: for rows that were learned from, and for rows that come later."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from igcd.functional.calibration import fit_confidence
from igcd.functional.confidence import Confidence
from igcd.functional.discovery import Discovered
from igcd.functional.left_out import can_leave_out, leave_out
from igcd.functional.refining import closeness

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

    @classmethod
    def of(cls, known: Tensor, other: Tensor) -> Self:
        """From the closeness of rows to the nearest mean, and to the nearest that is not their own. (n,), (n,)."""
        spreads = [max(MIN_SPREAD, float(close.std())) for close in (known, other)]
        return cls(float(known.mean()), spreads[0], float(other.mean()), spreads[1])


@dataclass(frozen=True)
class Certainty:
    """What is made of distances: the probability of each category, and of none of them."""

    confidence: Confidence
    none: NoneOfThese | None = None  # None: as if "none" were a category with its mean at the origin

    def none_probs(self, closest: Tensor) -> Tensor:
        """The probability of having no category, if one row in two had none, from the closeness to the nearest mean.

        (n,) -> (n,).
        """
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
    pairs = zip(torch.split(rows, ROWS_AT_A_TIME), torch.split(places, ROWS_AT_A_TIME), strict=True)
    others = torch.cat([_closest_other(part, place, means) for part, place in pairs])
    closeness_to_own = (rows * own).sum(dim=1) - own.square().sum(dim=1) / 2
    return NoneOfThese.of(torch.maximum(closeness_to_own, others), others)


def certainty_of_later(
    found: Discovered,
    unlabeled: Tensor,
    known: Tensor,
    categories: Tensor,
    *,
    is_guess: Tensor,
    confidence: Confidence,
    seed: int = 0,
) -> Certainty | None:
    """That of rows which nothing was learned from, as rows that are left out show it. (n, d), (m, d), (m,).

    A labeled row is right where it comes out as its category. An unlabeled one is right with the probability that
    `confidence`, which holds for rows that were learned from, gives to what comes out. None where nothing can be asked.
    """
    if not can_leave_out(len(known) + len(unlabeled)):
        return None
    features = torch.cat([known.to(unlabeled.dtype), unlabeled])
    category = torch.cat([torch.searchsorted(found.known_ids, categories), found.category])
    has_label = torch.cat([~is_guess, is_guess.new_zeros(len(unlabeled))])
    parts, rights, closest, closest_others = [], [], [], []
    for part in leave_out(features, category, n_known=len(known), seed=seed):
        own, is_labeled = part.place_of(category[part.idx]), has_label[part.idx]
        can_ask = ~is_labeled | (own >= 0)
        if not len(part.means) or not can_ask.any():
            continue
        close = closeness(part.rows, part.means)
        best = close.max(dim=1)
        learned = confidence.probs(closeness(found.whitening(features[part.idx]), found.means))
        believed = learned.gather(1, part.category[best.indices][:, None])[:, 0]
        parts.append((part.rows[can_ask], part.means))
        rights.append(torch.where(is_labeled, (best.indices == own).to(believed), believed)[can_ask])
        asked = is_labeled & can_ask
        closest.append(best.values[asked])
        closest_others.append(_closest_other(part.rows[asked], own[asked], part.means))
    if not parts:
        return None
    known_close, other_close = torch.cat(closest), torch.cat(closest_others)
    can_tell = len(known_close) > 1 and bool(other_close.isfinite().all())
    none = NoneOfThese.of(known_close, other_close) if can_tell else None
    rights_of_all = torch.cat(rights).double().numpy()
    weights = np.full(len(rights_of_all), 1 / len(rights_of_all))
    return Certainty(fit_confidence(rights_of_all, parts, weights), none)


def _closest_other(rows: Tensor, places: Tensor, means: Tensor) -> Tensor:
    """How close rows are to the nearest mean that is not their own, −∞ where there is none. (n, d), (n,) -> (n,)."""
    return closeness(rows, means).scatter(1, places[:, None], -torch.inf).max(dim=1).values
