"""What the panel compares with: methods that are given the number of categories, HDBSCAN, and a classifier.

Features are scaled to length 1, as k-means needs them on features of networks. Gaussian mixture and HDBSCAN see their
first 32 principal components, because in all dimensions neither ends in minutes.
"""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from panel_sets import Features
from panel_tasks import Task, accuracies, percent
from sklearn.cluster import HDBSCAN, KMeans  # type: ignore[import-untyped]
from sklearn.decomposition import PCA  # type: ignore[import-untyped]
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
from sklearn.mixture import GaussianMixture  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

from igcd.functional.kmeans import semi_supervised_kmeans
from igcd.records import read_json, write_json
from igcd.types import UNLABELED, IntArray

N_STARTS = 3
N_COMPONENTS = 32
VERSION = 1
"""Raise it when a score changes here: baselines of another version are computed again."""

Scores = dict[str, float | None]


def all_baselines(task: Task) -> dict[str, Scores]:
    """Scores of every baseline on a task, by name; semi-supervised k-means only where rows are labeled."""
    x = task.x / np.maximum(np.linalg.norm(task.x, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    unlabeled = task.is_unlabeled
    reduced = PCA(min(N_COMPONENTS, *x.shape), random_state=task.seed).fit_transform(x)
    kmeans = KMeans(task.n_categories, n_init=N_STARTS, random_state=task.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # after its usual number of steps a baseline is what it is
        warnings.filterwarnings("ignore", message="The number of unique classes")  # in `one`, of logistic regression
        mixture = GaussianMixture(task.n_categories, covariance_type="diag", random_state=task.seed)
        found = {
            "kmeans": kmeans.fit_predict(x)[unlabeled],
            "gaussian_mixture": mixture.fit_predict(reduced)[unlabeled],
            "hdbscan": np.maximum(HDBSCAN(copy=True).fit_predict(reduced)[unlabeled], UNLABELED),
        }
        if not unlabeled.all():
            found["semi_supervised_kmeans"] = _semi_supervised(x, task)
        scores = {name: accuracies(predicted, task) for name, predicted in found.items()}
        scores["hdbscan"]["found"] = len(np.unique(found["hdbscan"][found["hdbscan"] != UNLABELED]))
        scores["logistic_regression"] = {"known_only": _logistic_regression(x, task)}
    return scores


def _semi_supervised(x: Features, task: Task) -> IntArray:
    unlabeled = task.is_unlabeled
    found = semi_supervised_kmeans(
        torch.from_numpy(x[~unlabeled]),
        torch.from_numpy(task.labels[~unlabeled]),
        torch.from_numpy(x[unlabeled]),
        n_clusters=task.n_categories,
        generator=torch.Generator().manual_seed(task.seed),
        n_starts=N_STARTS,
    )
    return np.asarray(found.clusters.numpy(), dtype=np.int64)


def _logistic_regression(x: Features, task: Task) -> float | None:
    """The share of old rows right if the known categories were the only ones."""
    is_old = task.is_unlabeled & ~task.is_new
    if len(np.unique(task.labels[~task.is_unlabeled])) < 2 or not is_old.any():
        return None
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
    model.fit(x[~task.is_unlabeled], task.labels[~task.is_unlabeled])
    return percent(model.predict(x[is_old]) == task.truth[is_old])


class BaselineFile:
    """Scores of baselines in a JSON file, so that a change of the estimator costs only the estimator."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._scores: dict[str, dict[str, Any]] = read_json(path) if path.is_file() else {}

    def get(self, task: Task, set_key: str) -> dict[str, Scores] | None:
        """What is stored of a task; None where nothing is."""
        return self._scores.get(_key(task, set_key))

    def compute(self, task: Task, set_key: str) -> dict[str, Scores]:
        """What is stored, or computed and stored now."""
        stored = self.get(task, set_key)
        if stored is None:
            stored = all_baselines(task)
            self._scores[_key(task, set_key)] = stored
            write_json(self._path, self._scores)
        return stored


def _key(task: Task, set_key: str) -> str:
    return json.dumps([VERSION, task.set_name, set_key, task.scene, task.seed])
