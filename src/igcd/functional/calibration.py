"""How sharply distances to category means decide, so that probabilities are honest.

Labels say it by rehearsal: half of the labeled categories are hidden whole, and of the others every second row;
discovery runs as if they were unlabeled. What comes out right then says how sure one may be. Without enough labels, how
far rows vary around their mean towards the nearest other mean gives an answer.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.assignment import contingency, match
from igcd.functional.discovery import Discovered, discover
from igcd.functional.grouping import distinct, rank_within_group
from igcd.types import BoolArray, FloatArray, IntArray

DEFAULT_SHARPNESS = 18.0
"""Where there is no second mean to look towards: the median over the panel (benchmarks/panel.py)."""
INDEPENDENT = 0.25
"""Share of a Gaussian's sharpness that is left where directions depend on each other: its mean over the panel."""
N_REHEARSALS = 2
"""In each, one category in so many is hidden whole, and one row in so many of the others."""
MAX_ROWS = 4096
"""Of more rows a sample is rehearsed with."""
MIN_CATEGORIES = 4
"""With fewer labeled categories nothing is rehearsed."""
_ROWS_AT_A_TIME = 65536


def spread_sharpness(found: Discovered, unlabeled: Tensor) -> float:
    """The sharpness of a Gaussian with the variance of rows towards the nearest other mean, tempered. (n, d)."""
    if len(found.means) < 2 or len(unlabeled) == 0:
        return DEFAULT_SHARPNESS
    distances = torch.cdist(found.means, found.means).fill_diagonal_(torch.inf)
    towards = normalize(found.means[distances.argmin(dim=1)] - found.means, dim=1)
    total = 0.0
    parts = torch.split(unlabeled, _ROWS_AT_A_TIME), torch.split(found.category, _ROWS_AT_A_TIME)
    for rows, own in zip(*parts, strict=True):
        apart = found.whitening(rows) - found.means[own]
        total += float((apart * towards[own]).sum(dim=1).square().sum())
    variance = total / len(unlabeled)
    return INDEPENDENT / variance if variance > 0 else DEFAULT_SHARPNESS


def rehearsed_sharpness(
    found: Discovered, unlabeled: Tensor, labeled: Tensor, categories: Tensor, *, seed: int = 0
) -> float:
    """The sharpness at which confidence equals the share that is right in rehearsals. (n, d), (m, d), (m,).

    With too few labels to rehearse, the spread of the rows says it. `found` is what was discovered with all labels.
    """
    ids, owners = distinct(categories)
    several = torch.bincount(owners, minlength=len(ids))[owners] > 1 if len(ids) else owners.bool()
    if len(distinct(owners[several])[0]) < MIN_CATEGORIES:
        return spread_sharpness(found, unlabeled)
    generator = torch.Generator().manual_seed(seed)
    if len(unlabeled) > MAX_ROWS:
        unlabeled = unlabeled[torch.randperm(len(unlabeled), generator=generator)[:MAX_ROWS]]
    turn = torch.randperm(len(ids), generator=generator)[owners] % N_REHEARSALS  # in which a category is hidden whole
    row_turn = rank_within_group(owners) % N_REHEARSALS
    share_new = float((found.category >= found.n_known).double().mean())
    parts: list[tuple[Tensor, Tensor]] = []
    rights: list[FloatArray] = []
    are_new: list[BoolArray] = []
    for rehearsal in range(N_REHEARSALS):
        is_hidden = several & ((turn == rehearsal) | (row_turn == rehearsal))
        if not is_hidden.any() or is_hidden.all():
            continue
        again = discover(torch.cat([labeled[is_hidden], unlabeled]), labeled[~is_hidden], owners[~is_hidden], seed=seed)
        rows = again.whitening(labeled[is_hidden])
        right = _share_right(again, again.category[: len(rows)].numpy(), owners[is_hidden].numpy())
        parts.append((rows, again.means))
        rights.append(right)
        are_new.append((again.category[: len(rows)] >= again.n_known).numpy())
    if not parts:
        return spread_sharpness(found, unlabeled)
    weights = _weights_for(share_new, np.concatenate(are_new))
    return _sharpness_for(float(weights @ np.concatenate(rights)), parts, torch.from_numpy(weights))


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


def _sharpness_for(share_right: float, parts: list[tuple[Tensor, Tensor]], weights: Tensor) -> float:
    """The sharpness with that mean confidence, by bisection of its logarithm. `weights` (n,) of all rows sum to 1."""
    low, high = 0.0, 6.0
    for _ in range(20):
        middle = (low + high) / 2
        confidence = torch.cat([_confidence(rows, means, float(np.exp(middle))) for rows, means in parts])
        low, high = (middle, high) if float(weights @ confidence.to(weights.dtype)) < share_right else (low, middle)
    return float(np.exp(middle))


def _confidence(rows: Tensor, means: Tensor, sharpness: float) -> Tensor:
    logits = sharpness * (rows @ means.T - means.square().sum(dim=1) / 2)
    return logits.softmax(dim=1).max(dim=1).values
