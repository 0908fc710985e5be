"""How sharply distances to category means decide, so that probabilities are honest: found by a rehearsal.

Half of the labeled categories are hidden whole, and of the others every second row; discovery runs as if they were
unlabeled. What comes out right then says how sure one may be.
"""

import numpy as np
import torch
from torch import Tensor

from igcd.functional.assignment import contingency, match
from igcd.functional.discovery import Discovered, discover, nearest_mean
from igcd.functional.grouping import distinct, rank_within_group
from igcd.types import FloatArray, IntArray

DEFAULT_SHARPNESS = 18.0
"""Of features of images on the panel (benchmarks/panel.py), where nothing is labeled."""
MAX_ROWS = 4096
"""Of more rows a sample is rehearsed with."""
MIN_CATEGORIES = 4
"""With fewer labeled categories nothing is rehearsed."""


def rehearsed_sharpness(unlabeled: Tensor, labeled: Tensor, categories: Tensor, *, seed: int = 0) -> float:
    """The sharpness at which confidence equals the share that is right in rehearsals. (n, d), (m, d), (m,).

    It is the geometric mean of what two rehearsals ask for and the default, because two rehearsals are few.
    """
    ids, owners = distinct(categories)
    several = torch.bincount(owners, minlength=len(ids))[owners] > 1 if len(ids) else owners.bool()
    if len(distinct(owners[several])[0]) < MIN_CATEGORIES:
        return DEFAULT_SHARPNESS
    generator = torch.Generator().manual_seed(seed)
    if len(unlabeled) > MAX_ROWS:
        unlabeled = unlabeled[torch.randperm(len(unlabeled), generator=generator)[:MAX_ROWS]]
    turn = torch.randperm(len(ids), generator=generator)[owners] % 2  # in which rehearsal a category is hidden whole
    every_second = rank_within_group(owners) % 2
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    n_right, n_rows = 0.0, 0
    for fold in (0, 1):
        is_hidden = several & ((turn == fold) | (every_second == fold))
        if not is_hidden.any() or is_hidden.all():
            continue
        found = discover(torch.cat([labeled[is_hidden], unlabeled]), labeled[~is_hidden], owners[~is_hidden], seed=seed)
        rows = found.whitening(labeled[is_hidden])
        right = _share_right(found, found.category[: len(rows)].numpy(), owners[is_hidden].numpy())
        parts.append((rows, found.means, nearest_mean(rows, found.means)))
        n_right, n_rows = n_right + float(right.sum()), n_rows + len(rows)
    if not n_rows:
        return DEFAULT_SHARPNESS
    return float(np.sqrt(DEFAULT_SHARPNESS * _sharpness_for(n_right / n_rows, parts)))


def _share_right(found: Discovered, predicted: IntArray, categories: IntArray) -> FloatArray:
    """How right each row is: the mean of a generous and of a strict view. (n,), (n,) -> (n,), from 0 to 1.

    Generous: its group is matched to its category, one to one, by these very rows. Strict: it is in the group that most
    other rows of its category are in.
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
    return np.asarray((generous + strict) / 2)


def _sharpness_for(share_right: float, parts: list[tuple[Tensor, Tensor, Tensor]]) -> float:
    """The sharpness with that mean confidence, by bisection of its logarithm."""
    low, high = 0.0, 6.0
    for _ in range(20):
        middle = (low + high) / 2
        confidence = torch.cat([_confidence(rows, means, float(np.exp(middle))) for rows, means, _ in parts])
        low, high = (middle, high) if float(confidence.mean()) < share_right else (low, middle)
    return float(np.exp(middle))


def _confidence(rows: Tensor, means: Tensor, sharpness: float) -> Tensor:
    logits = sharpness * (rows @ means.T - means.square().sum(dim=1) / 2)
    return logits.softmax(dim=1).max(dim=1).values
