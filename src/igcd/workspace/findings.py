"""What a fitted classifier says about the rows of the evidence, in arrays as they are written into the catalog."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from igcd.discoverer import CategoryDiscoverer
from igcd.types import UNLABELED, BoolArray, FloatArray, IntArray
from igcd.workspace.comparing import fit_comparison
from igcd.workspace.doubts import check_labels
from igcd.workspace.evidence import Evidence
from igcd.workspace.feature_store import Features
from igcd.workspace.looks import most_teaching_first, n_looks
from igcd.workspace.outlook import VERY_LIKELY

N_NEAREST = 5
"""Known categories noted beside each discovered one."""
N_ALTERNATIVES = 3
"""Categories noted beside each photo."""
_ROWS_AT_A_TIME = 2048


@dataclass(frozen=True)
class Findings:
    """What the classifier says about the rows of the evidence, in arrays."""

    categories: IntArray  # (n,) catalog id; a number of `novel` for one that has none yet; -1 for unsure
    probability: FloatArray  # (n,)
    typicality: FloatArray  # (n,) similarity to the mean of its category, 0 where unsure
    is_peak: BoolArray  # (n,)
    novel: tuple[int, ...]  # numbers of categories found now, in the order they were found
    nearest: Mapping[int, list[tuple[int, float]]]  # undecided category -> known categories and similarity
    alternatives: IntArray  # (n, 3) the most probable categories, -1 where there are fewer
    alternative_probability: FloatArray  # (n, 3)
    looks: IntArray  # (n,) number of the group of photos that need a look; -1 for the others
    doubts: Mapping[int, tuple[float, int, float]]  # row -> P(label is right), another category, its P


def look(evidence: Evidence, features: Features, *, is_known: Mapping[int, bool], granularity: float = 0.0) -> Findings:
    """Categories of all rows. (n, d). `granularity` is the estimator's: from coarse (negative) to fine (positive)."""
    return describe(fit_classifier(evidence, features, granularity=granularity), evidence, features, is_known)


def fit_classifier(evidence: Evidence, features: Features, *, granularity: float = 0.0) -> CategoryDiscoverer:
    """A classifier that knows what the evidence knows, and has looked for categories among the other rows. (n, d).

    Guesses of earlier stages count as labels: their categories are there, and stay.
    """
    labels = np.where(evidence.guesses != UNLABELED, evidence.guesses, evidence.labels)
    model = CategoryDiscoverer(unlabeled=UNLABELED, granularity=granularity).fit(features, labels)
    for category in sorted(set(evidence.rejected) & set(evidence.guesses.tolist())):
        model.reject(category)
    return model


def describe(
    model: CategoryDiscoverer, evidence: Evidence, features: Features, is_known: Mapping[int, bool]
) -> Findings:
    """The answers of a fitted classifier, as they are written into the catalog."""
    decided = np.where(evidence.guesses != UNLABELED, evidence.guesses, evidence.labels)
    decided = np.where(np.isin(decided, evidence.rejected), UNLABELED, decided)
    assigned = np.where(decided != UNLABELED, decided, model.assign(features))
    probability, typicality, best, best_probability = _closeness(model, features, assigned)
    peaks = {discovery.id: discovery.peak for discovery in model.discoveries_}
    novel = [(int(model.ledger_.categories[found].label), peaks[found]) for found in model.ledger_.live("novel")]
    novel = [(label, peak) for label, peak in novel if (assigned == label).any()]  # some hold only what speaks for them
    is_peak = np.zeros(len(evidence), dtype=bool)
    for label, peak in novel:
        if assigned[peak] == label:
            is_peak[peak] = True
    known = [category for category, known in is_known.items() if known]
    is_likely = np.isin(assigned, [label for label, _ in novel]) | (probability >= VERY_LIKELY)
    to_look = evidence.is_new & ((assigned == UNLABELED) | ~(is_likely | ~np.isin(assigned, known)))
    return Findings(
        categories=assigned.astype(np.int64),
        probability=probability,
        typicality=typicality,
        is_peak=is_peak,
        novel=tuple(label for label, _ in novel),
        nearest=_nearest(model, known),
        alternatives=best,
        alternative_probability=best_probability,
        looks=_looks(model, features, to_look, assigned, probability),
        doubts=_doubts(evidence, features),
    )


def _closeness(
    model: CategoryDiscoverer, features: Features, assigned: IntArray
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Probability of the category each row is assigned to, or of the best one where unsure; its typicality; the best.

    (n, d), (n,) -> (n,), (n,), (n, 3) categories, (n, 3) probabilities.
    """
    labels = model.categories_.astype(np.int64)
    columns = {int(label): column for column, label in enumerate(labels.tolist())}
    probability, typicality = np.zeros(len(features)), np.zeros(len(features))
    best = np.full((len(features), N_ALTERNATIVES), UNLABELED, dtype=np.int64)
    best_probability = np.zeros((len(features), N_ALTERNATIVES))
    if not columns:
        return probability, typicality, best, best_probability
    n_best = min(N_ALTERNATIVES, len(columns))
    for start in range(0, len(features), _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        probs, similarity = model.predict_proba(features[rows]), model.transform(features[rows])
        column = np.array([columns.get(int(category), -1) for category in assigned[rows]])
        at = np.arange(len(probs))
        probability[rows] = np.where(column >= 0, probs[at, column], probs.max(axis=1))
        typicality[rows] = np.where(column >= 0, similarity[at, column], 0.0)
        order = largest_columns(probs, n_best)
        best[rows, :n_best] = labels[order]
        best_probability[rows, :n_best] = np.take_along_axis(probs, order, axis=1)
    return probability, typicality, best, best_probability


def largest_columns(values: FloatArray, n: int) -> IntArray:
    """The columns of the n largest values of each row, the largest first, of equal ones the first. (r, c) -> (r, n).

    For a few of very many columns: sorting 2,000 takes 25 times as long.

    >>> largest_columns(np.array([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4]]), 2).tolist()
    [[1, 2], [0, 2]]
    """
    left, rows = values.copy(), np.arange(len(values))
    columns = np.empty((len(values), n), dtype=np.int64)
    for place in range(n):
        columns[:, place] = left.argmax(axis=1)
        left[rows, columns[:, place]] = -np.inf
    return columns


def _looks(
    model: CategoryDiscoverer, features: Features, to_look: BoolArray, assigned: IntArray, probability: FloatArray
) -> IntArray:
    """The group of each row that needs a look, -1 for others; they count from 0, what teaches most first. (n,)."""
    looks = np.full(len(features), UNLABELED, dtype=np.int64)
    rows = np.flatnonzero(to_look)
    if len(rows) < 2 or not len(model.categories_):
        looks[rows] = 0
        return looks
    groups = model.sub_categories(features[rows], n=n_looks(len(rows)))
    n_groups = int(groups.max()) + 1
    sums = np.zeros((n_groups, features.shape[1]))
    np.add.at(sums, groups, features[rows])
    means = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    wrong = np.where(assigned[rows] == UNLABELED, 1.0, 1 - probability[rows])
    novelty = 1 - model.transform(features[rows]).max(axis=1)
    n_in = np.maximum(np.bincount(groups, minlength=n_groups), 1)
    order = most_teaching_first(
        means,
        np.bincount(groups, weights=wrong, minlength=n_groups).astype(np.float64),
        np.bincount(groups, weights=novelty, minlength=n_groups) / n_in,
    )
    place = np.empty(n_groups, dtype=np.int64)
    place[order] = np.arange(n_groups)
    looks[rows] = place[groups]
    return looks


def _doubts(evidence: Evidence, features: Features) -> dict[int, tuple[float, int, float]]:
    """Labeled rows whose label is more likely wrong than right, by all the others."""
    rows = np.flatnonzero(evidence.labels != UNLABELED)
    if len(set(evidence.labels[rows].tolist())) < 2:
        return {}
    labels = evidence.labels[rows]
    compared = fit_comparison(features[rows], labels)(features[rows])
    check = check_labels(compared, torch.from_numpy(labels))
    return {
        int(rows[at]): (float(check.probability[at]), int(check.other[at]), float(check.other_probability[at]))
        for at in np.flatnonzero(check.is_doubtful).tolist()
    }


def _nearest(model: CategoryDiscoverer, known: Iterable[int]) -> dict[int, list[tuple[int, float]]]:
    """For each category that is not known the known ones whose mean is most like its own."""
    labels = model.categories_.astype(np.int64)
    means = model.means_ / np.maximum(np.linalg.norm(model.means_, axis=1, keepdims=True), 1e-12)
    is_known = np.isin(labels, sorted(known))
    nearest = {}
    for row in np.flatnonzero(~is_known).tolist() if is_known.any() else []:
        similarity = means[is_known] @ means[row]
        best = np.argsort(-similarity, kind="stable")[:N_NEAREST]
        nearest[int(labels[row])] = [(int(labels[is_known][column]), float(similarity[column])) for column in best]
    return nearest
