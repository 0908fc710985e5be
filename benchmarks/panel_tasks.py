"""What the panel asks of a set of features, and how an answer is scored.

A scene says which rows are labeled, which come in a second batch and which take part at all. Scores are shares of the
unlabeled rows, in percent, after one Hungarian matching of predicted to true categories.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from panel_sets import Features, FeatureSet

from igcd.functional.assignment import contingency, match
from igcd.types import UNLABELED, BoolArray, FloatArray, IntArray

N_LABELS = {"many": 20, "next": 20, "few": 3, "one": 1, "none": 0, "all_known": 20}
"""The scenes, and how many rows of a known category are labeled in each: so many, or half of the category's rows."""
SCENES = tuple(N_LABELS)
N_BINS = 15
"""Of the expected calibration error."""


class Discoverer(Protocol):
    """What the panel uses of `igcd.CategoryDiscoverer`."""

    classes_: npt.NDArray[Any]
    labels_: npt.NDArray[Any]
    n_novel_: int

    def fit(self, X: Features, y: IntArray) -> Self: ...  # noqa: N803, D102
    def partial_fit(self, X: Features, y: IntArray) -> Self: ...  # noqa: N803, D102
    def predict(self, X: Features) -> npt.NDArray[Any]: ...  # noqa: N803, D102
    def predict_proba(self, X: Features) -> npt.NDArray[Any]: ...  # noqa: N803, D102


@dataclass(frozen=True)
class Task:
    """One scene on one set with one seed: what is given, and the truth that only the scores see."""

    set_name: str
    scene: str
    seed: int
    x: Features  # (n, d)
    labels: IntArray  # (n,), 0 … for known categories, -1 where unlabeled
    is_second: BoolArray  # (n,), rows of the second batch
    truth: IntArray  # (n,), of a known category its label, of the others the numbers that follow
    n_known: int

    @property
    def is_unlabeled(self) -> BoolArray:
        """The rows that are scored, (n,)."""
        return np.asarray(self.labels == UNLABELED, dtype=np.bool_)

    @property
    def is_new(self) -> BoolArray:
        """The rows of categories that nobody labeled, (n,)."""
        return np.asarray(self.truth >= self.n_known, dtype=np.bool_)

    @property
    def n_categories(self) -> int:
        """Of all rows, known and new: the number that baselines are given."""
        return len(np.unique(self.truth))

    @property
    def n_new(self) -> int:
        """The number of new categories, which is asked for."""
        return len(np.unique(self.truth[self.is_new]))


def make_task(features: FeatureSet, scene: str, seed: int) -> Task:
    """A scene on a set. Draws are those of the experiments before the panel, so that figures can be compared.

    Half of the categories are known. `next`: the second batch has a quarter of all categories for itself, and half of
    the other unlabeled rows. `all_known`: rows of the other half are left out. `none`: nothing is labeled, all is new.
    """
    rng = np.random.default_rng(seed)
    y = features.y
    shuffled = rng.permutation(np.unique(y))
    known, others = np.split(shuffled, [len(shuffled) // 2])
    labels = np.full(len(y), UNLABELED, dtype=np.int64)
    for label, category in enumerate(known):
        rows = rng.permutation(np.flatnonzero(y == category))
        labels[rows[: min(N_LABELS[scene], len(rows) // 2)]] = label

    is_second = np.zeros(len(y), dtype=np.bool_)
    if scene == "next":
        comes_late = np.isin(y, shuffled[len(shuffled) * 3 // 4 :])
        is_second = (labels == UNLABELED) & (comes_late | (rng.random(len(y)) < 0.5))
    used = ~np.isin(y, others) if scene == "all_known" else np.ones(len(y), dtype=np.bool_)
    truth = np.argsort(shuffled)[np.searchsorted(np.sort(shuffled), y)].astype(np.int64)
    return Task(
        features.name,
        scene,
        seed,
        features.x[used],
        labels[used],
        is_second[used],
        truth[used],
        n_known=0 if scene == "none" else len(known),
    )


# Scores --------------------------------------------------------------------------------------------------------------


def is_right(predicted: npt.NDArray[Any], truth: IntArray) -> BoolArray:
    """Whether each row's predicted category is matched to its true one. (n,), (n,) -> (n,).

    A prediction of -1 is no category, and counts as wrong.

    >>> is_right(np.array([7, 7, 3, -1]), np.array([0, 0, 1, 1])).tolist()
    [True, True, True, False]
    """
    is_predicted = predicted != UNLABELED
    clusters = np.full(len(predicted), UNLABELED, dtype=np.int64)
    clusters[is_predicted] = np.unique(predicted[is_predicted], return_inverse=True)[1]
    category_of = np.append(match(contingency(clusters, truth)), UNLABELED)  # the last one for a cluster of -1
    return np.asarray(category_of[clusters] == truth, dtype=np.bool_)


def percent(right: BoolArray | FloatArray) -> float | None:
    """The mean in percent; None without rows."""
    return round(100 * float(np.mean(right)), 2) if len(right) else None


def accuracies(predicted: npt.NDArray[Any], task: Task) -> dict[str, float | None]:
    """The share of unlabeled rows right: of all, of known categories (old), of new ones. (unlabeled rows,)."""
    right = is_right(predicted, task.truth[task.is_unlabeled])
    is_new = task.is_new[task.is_unlabeled]
    return {"all": percent(right), "old": percent(right[~is_new]), "new": percent(right[is_new])}


def calibration_error(confidence: FloatArray, right: BoolArray, *, n_bins: int = N_BINS) -> float:
    """The expected calibration error (Guo et al., 2017): |right − confidence| of each bin, weighted by its rows.

    Bins are equally wide between 0 and 1, the upper end belongs to a bin. (n,), (n,) -> a number between 0 and 1.

    >>> calibration_error(np.array([0.75, 0.75, 0.75, 0.75]), np.array([True, True, True, False]))
    0.0
    """
    bins = np.clip(np.ceil(np.asarray(confidence) * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    gaps = np.bincount(bins, weights=right.astype(np.float64) - confidence, minlength=n_bins)
    return float(np.abs(gaps).sum() / max(len(confidence), 1))


def kept_share(before: npt.NDArray[Any], after: npt.NDArray[Any], opened: npt.NDArray[Any]) -> float | None:
    """The share of rows with the category they had, in percent, without rows that moved into one just opened.

    >>> kept_share(np.array([1, 1, 2, 2]), np.array([1, 9, 2, 1]), opened=np.array([9]))
    66.67
    """
    stayed = ~np.isin(after, opened)
    return percent(np.asarray(before == after, dtype=np.bool_)[stayed])


def confidences(probs: npt.NDArray[Any], classes: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> FloatArray:
    """The probability of each row's predicted category. (n, c), (c,), (n,) -> (n,).

    A prediction that is no category has probability 0.
    """
    column_of = {category: column for column, category in enumerate(classes.tolist())}
    columns = np.array([column_of.get(category, -1) for category in predicted.tolist()], dtype=np.int64)
    padded = np.column_stack([probs, np.zeros(len(probs))])  # the last column for -1
    return np.asarray(padded[np.arange(len(probs)), columns], dtype=np.float64)


def score_discoverer(task: Task, make: Callable[[], Discoverer]) -> dict[str, float | None]:
    """Every score of one discoverer on one task; `make` gives a fresh one."""
    first, unlabeled = ~task.is_second, task.is_unlabeled
    started = time.process_time()
    model = make().fit(task.x[first], task.labels[first])
    unsure = [np.asarray(model.labels_)[unlabeled[first]] == UNLABELED]
    kept = unchanged = None
    if task.is_second.any():
        before, classes_before = model.predict(task.x[first]), model.classes_
        model.partial_fit(task.x[task.is_second], task.labels[task.is_second])
        unsure.append(np.asarray(model.labels_) == UNLABELED)
        opened = np.setdiff1d(model.classes_, classes_before)
        after = model.predict(task.x[first])
        kept, unchanged = kept_share(before, after, opened), percent(np.asarray(before == after, dtype=np.bool_))
    predicted = np.asarray(model.predict(task.x[unlabeled]))
    probs = np.asarray(model.predict_proba(task.x[unlabeled]))
    seconds = time.process_time() - started

    classes, truth = np.asarray(model.classes_), task.truth[unlabeled]
    right = is_right(predicted, truth)
    return {
        **accuracies(predicted, task),
        "found": int(model.n_novel_),
        "true": task.n_new,
        "in_new": percent(~np.isin(predicted, np.arange(task.n_known))),
        "ece": round(calibration_error(confidences(probs, classes, predicted), right), 4),
        "confidence": percent(confidences(probs, classes, predicted)),
        "unsure": percent(np.concatenate(unsure)),
        "kept": kept,
        "unchanged": unchanged,
        "known_only": known_only(probs, classes, task),
        "seconds": round(seconds, 2),
    }


def known_only(probs: npt.NDArray[Any], classes: npt.NDArray[Any], task: Task) -> float | None:
    """The share of old rows whose most probable *known* category is the true one, as a classifier is scored."""
    columns = np.flatnonzero(np.isin(classes, np.arange(task.n_known)))
    truth = task.truth[task.is_unlabeled]
    if not len(columns) or not (truth < task.n_known).any():
        return None
    predicted = classes[columns[probs[:, columns].argmax(axis=1)]]
    return percent((predicted == truth)[truth < task.n_known])
