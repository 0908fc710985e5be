"""How sure one may be of what was discovered, so that probabilities are honest.

Labels say it by rehearsal: some of the labeled categories are hidden whole, and of the others every fourth row;
discovery runs as if they were unlabeled. What comes out right then says how sure one may be. Parts of the rows say it
without labels: what two of them find alike is right more often than what only one finds. The more rows are rehearsed,
and the fewer are in new categories, the more rehearsals count.
"""

import numpy as np
import torch
from torch import Tensor

from igcd.functional.assignment import contingency, match
from igcd.functional.confidence import Confidence, between
from igcd.functional.discovery import Discovered, discover
from igcd.functional.grouping import distinct, rank_within_group
from igcd.functional.refining import nearest_mean
from igcd.types import BoolArray, FloatArray, IntArray

DEFAULT_CONFIDENCE = Confidence(18.0)
"""Where rows are too few for two halves: the median over the panel (benchmarks/panel.py)."""
STRAYS = (0.0, 0.1, 0.2, 0.3)
"""Shares of the wrong rows that may be strays: rehearsed rows choose, and without any it is the last."""
AGREED = 1.8
"""The share that is right is the share that two parts as large as all rows would agree on to this power, because both
would make some mistakes alike: what fits best on the panel and on other sets."""
AGREED_ROWS = 120
"""What parts of the rows agree on counts as much as so many rehearsed rows, if all rows are in new categories."""
N_REHEARSALS = 2
N_SPLITS = 4
"""Ways to part the rows: the share that two parts agree on moves by several points from one way to another."""
ONE_IN = 4
"""In a rehearsal, one row in so many of the categories that are not hidden whole plays an unlabeled one."""
MOST_HIDDEN = 0.5
"""The largest share of the labeled categories that is hidden whole at a time."""
MAX_ROWS = 4096
"""Of more rows a sample is rehearsed with."""
MIN_CATEGORIES = 3
"""With fewer labeled categories nothing is rehearsed."""


def rehearsed_confidence(
    found: Discovered,
    unlabeled: Tensor,
    labeled: Tensor,
    categories: Tensor,
    *,
    is_guess: Tensor | None = None,
    seed: int = 0,
) -> Confidence:
    """The confidence that equals the share that is right in rehearsals. (n, d), (m, d), (m,).

    `found` is what was discovered with all of it, and `is_guess` (m,) marks rows that an earlier call has found: they
    play unlabeled ones. The more of the categories are new, the more are hidden. A rehearsal finds as many new
    categories as `found` has, and those that are hidden: one that finds another number would say little of these.
    Where rehearsed rows are few, parts of all rows count as well (`agreed_confidence`), and with too few labels to
    rehearse they decide.
    """
    has_label = torch.ones(len(labeled), dtype=torch.bool) if is_guess is None else ~is_guess
    ids, owners = distinct(categories[has_label])
    several = torch.bincount(owners, minlength=len(ids))[owners] > 1 if len(ids) else owners.bool()
    if len(distinct(owners[several])[0]) < MIN_CATEGORIES:
        return agreed_confidence(found, unlabeled, labeled, categories, seed=seed) or DEFAULT_CONFIDENCE
    is_new = ~torch.isin(found.known_ids, ids)  # found now, or in an earlier call
    is_new = torch.cat([is_new, is_new.new_ones(found.n_novel)])
    share_new = float(is_new[found.category].double().mean()) if len(unlabeled) else 0.0
    n_hidden = round(min(MOST_HIDDEN, float(is_new.double().mean())) * len(ids))
    n_hidden = max(1, min(n_hidden, len(ids) - 2))  # a known category needs another one to be told from
    agreed = agreed_confidence(found, unlabeled, labeled, categories, seed=seed) if share_new else None
    generator = torch.Generator().manual_seed(seed)
    if len(unlabeled) > MAX_ROWS:
        unlabeled = unlabeled[torch.randperm(len(unlabeled), generator=generator)[:MAX_ROWS]]
    unlabeled, labeled = torch.cat([labeled[~has_label].to(unlabeled.dtype), unlabeled]), labeled[has_label]
    turn = torch.randperm(len(ids), generator=generator)  # those at its beginning are hidden whole
    row_turn = rank_within_group(owners) % ONE_IN
    parts: list[tuple[Tensor, Tensor]] = []
    rights: list[FloatArray] = []
    are_new: list[BoolArray] = []
    for rehearsal in range(N_REHEARSALS):
        hidden_whole = turn.roll(-(rehearsal * len(ids)) // N_REHEARSALS)[:n_hidden]
        is_hidden = several & (torch.isin(owners, hidden_whole) | (row_turn == rehearsal))
        seen, of_seen = labeled[~is_hidden], owners[~is_hidden]
        n_novel = int(is_new.sum()) + len(ids) - len(distinct(of_seen)[0])
        again = discover(torch.cat([labeled[is_hidden], unlabeled]), seen, of_seen, n_novel=n_novel, seed=seed)
        rows = again.whitening(labeled[is_hidden])
        right = _share_right(again, again.category[: len(rows)].numpy(), owners[is_hidden].numpy())
        parts.append((rows, again.means))
        rights.append(right)
        are_new.append((again.category[: len(rows)] >= again.n_known).numpy())
    weights = _weights_for(share_new, np.concatenate(are_new))
    rehearsed = fit_confidence(np.concatenate(rights), parts, weights)
    return rehearsed if agreed is None else between(rehearsed, agreed, _weight_of_rehearsed(len(weights), share_new))


def _weight_of_rehearsed(n_rows: int, share_new: float) -> float:
    """How much rehearsals count beside what parts of the rows agree on, from 0 to 1.

    >>> [round(_weight_of_rehearsed(n, 0.5), 2) for n in (20, 200)]
    [0.25, 0.77]
    """
    return n_rows / (n_rows + AGREED_ROWS * share_new)


def agreed_confidence(
    found: Discovered, unlabeled: Tensor, known: Tensor, categories: Tensor, *, seed: int = 0
) -> Confidence | None:
    """The confidence that is as high as two sets of rows like these would agree. (n, d), (m, d), (m,).

    Known rows are among them, or known categories would have too few; what they are is hidden. Halves of the rows agree
    less than wholes would, and quarters less again: the share they disagree on is taken to fall in the same ratio from
    halves to wholes as from quarters to halves. None where rows are too few.
    """
    category = torch.cat([torch.searchsorted(found.known_ids, categories), found.category])
    generator = torch.Generator().manual_seed(seed)
    own = _of_whole_categories(category, generator)
    n_groups = len(distinct(category[own])[0])
    if n_groups < 2 or len(own) < 4 * n_groups:
        return None
    n_parts = (2, 4) if len(own) >= 8 * n_groups else (2,)  # two rows for each group in a quarter
    agreed = np.zeros((N_SPLITS, len(n_parts)))
    for split in range(N_SPLITS):
        own = own[torch.randperm(len(own), generator=generator)]
        is_known = own < len(known)
        rows = torch.cat([known[own[is_known]].to(unlabeled.dtype), unlabeled[own[~is_known] - len(known)]])
        agreed[split] = [_agreement(found, rows, n_groups, n, seed=seed) for n in n_parts]
    by_parts = 1 - agreed.mean(axis=0)
    disagreed = by_parts[0] * min(1.0, by_parts[0] / max(by_parts[-1], 1e-9))
    share_right = float((1 - disagreed) ** AGREED)
    weights = np.full(len(rows), 1 / len(rows))
    return confidence_for(share_right, [(found.whitening(rows), found.means)], weights, stray=STRAYS[-1])


def _agreement(found: Discovered, rows: Tensor, n_groups: int, n_parts: int, *, seed: int) -> float:
    """The share of rows that two parts of them place alike, each by as many categories as it finds itself. (n, d).

    Rows come in a random order; each part says of all of them where they belong, without labels.
    """
    white, nothing = found.whitening(rows), torch.empty(0, dtype=torch.int64)
    answers: list[IntArray] = []
    for part in range(n_parts):
        alone = discover(rows[part::n_parts], rows[:0], nothing, n_novel=n_groups, whitening=found.whitening, seed=seed)
        answers.append(nearest_mean(white, alone.means).numpy())
    pairs = zip(answers[::2], answers[1::2], strict=True)
    return float(np.mean([match(contingency(one, other))[one] == other for one, other in pairs]))


def _of_whole_categories(category: Tensor, generator: torch.Generator) -> Tensor:
    """Rows in a random order: all, or those of some categories, of which no more than `MAX_ROWS`. (n,).

    Where categories are too large for two of them, rows are drawn from all.
    """
    order = torch.randperm(len(category), generator=generator)
    if len(order) <= MAX_ROWS:
        return order
    sizes = torch.bincount(category)
    drawn = torch.randperm(len(sizes), generator=generator)
    drawn = drawn[sizes[drawn].cumsum(dim=0) <= MAX_ROWS]
    return order[torch.isin(category[order], drawn)] if int((sizes[drawn] > 0).sum()) > 1 else order[:MAX_ROWS]


def _share_right(found: Discovered, predicted: IntArray, categories: IntArray) -> FloatArray:
    """How right each row is, between a generous and a strict view. (n,), (n,) -> (n,), from 0 to 1.

    Generous: its group is matched to its category, one to one, by these very rows. Strict: it is in the group that most
    other rows of its category are in. Of m rows each has a share of 1 / m in the matching, so the generous view is
    worth 1 − 1 / m.
    """
    groups = np.where(predicted < found.n_known, found.known_ids.numpy()[np.minimum(predicted, found.n_known - 1)], -1)
    is_known = groups >= 0
    groups = np.where(is_known, groups, int(categories.max()) + 1 + predicted)
    generous = match(contingency(groups, categories))[groups] == categories
    strict = np.zeros(len(groups))
    for category in np.unique(categories):
        own = np.flatnonzero(categories == category)
        n_in = np.bincount(groups[own])
        for row in own:
            others = n_in.copy()
            others[groups[row]] -= 1
            top = others == others.max()
            strict[row] = top[groups[row]] / top.sum() if len(own) > 1 and others.max() > 0 else 0.0
    hidden_whole = ~np.isin(categories, found.known_ids.numpy())
    strict = np.where(hidden_whole, strict * ~is_known, groups == categories)
    own_share = 1 / np.bincount(categories)[categories]
    return np.asarray((1 - own_share) * generous + own_share * strict)


def _weights_for(share_new: float, is_new: BoolArray) -> FloatArray:
    """Weights of rehearsed rows with which such a share of them is in new categories; they sum to 1. (n,)."""
    rehearsed = float(is_new.mean())
    if not 0 < rehearsed < 1:
        return np.full(len(is_new), 1 / len(is_new))
    return np.where(is_new, share_new / rehearsed, (1 - share_new) / (1 - rehearsed)) / len(is_new)


def fit_confidence(right: FloatArray, parts: list[tuple[Tensor, Tensor]], weights: FloatArray) -> Confidence:
    """Of the confidences whose mean is the share that is right, the one with the least squared error (Brier). (n,).

    `parts` are rows and the means they are compared with; `weights` (n,) of all rows sum to 1.
    """
    share_right = float(weights @ right)
    fitted = [confidence_for(share_right, parts, weights, stray=stray) for stray in STRAYS]
    errors = [float(weights @ (_best_probs(parts, each) - right) ** 2) for each in fitted]
    return fitted[int(np.argmin(errors))]


def confidence_for(
    share_right: float, parts: list[tuple[Tensor, Tensor]], weights: FloatArray, *, stray: float
) -> Confidence:
    """The confidence with that mean, by bisection of the logarithm of its sharpness. `weights` (n,) sum to 1.

    `stray` is the share of the wrong rows that are strays.
    """
    stray *= 1 - share_right
    low, high = 0.0, 6.0
    for _ in range(20):
        middle = (low + high) / 2
        mean = float(weights @ _best_probs(parts, Confidence(float(np.exp(middle)), stray)))
        low, high = (middle, high) if mean < share_right else (low, middle)
    return Confidence(float(np.exp(middle)), stray)


def _best_probs(parts: list[tuple[Tensor, Tensor]], confidence: Confidence) -> FloatArray:
    return torch.cat([confidence.of_best(rows, means) for rows, means in parts]).double().numpy()
