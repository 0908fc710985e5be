"""What is taken for what, from the rows of `predictions.csv`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from igcd.functional.assignment import contingency, match
from igcd.metrics.accuracy import accuracy, matched_hits
from igcd.metrics.groups import rows_by_code
from igcd.metrics.predictions import NO_CLUSTER, OLD, SPLITS, code_predictions
from igcd.types import UNLABELED, Predictions


@dataclass(frozen=True)
class KnownNovel:
    """Images by what they are (first word) and by the cluster they were given (second)."""

    known_known: int
    known_novel: int
    novel_known: int
    novel_novel: int
    no_prediction: int


@dataclass(frozen=True)
class ConfusedPair:
    """Images of one category in the cluster that stands for another."""

    category: str
    taken_for: str | None  # None where the cluster was matched to no category
    cluster: str
    n_images: int
    n_of_category: int


def known_and_novel(
    predictions: Predictions, *, stage: int, split: str, known_clusters: Mapping[str, str]
) -> KnownNovel:
    """Known and novel categories against known and novel clusters at one stage.

    `known_clusters` gives the categories labeled by then, by the cluster that stands for each.
    """
    known_categories = set(known_clusters.values())
    counts = dict.fromkeys([(True, True), (True, False), (False, True), (False, False)], 0)
    n_without = 0
    for row in _rows(predictions, stage, split):
        cluster = predictions.cluster[row]
        if cluster == NO_CLUSTER:
            n_without += 1
        else:
            counts[predictions.category[row] in known_categories, cluster in known_clusters] += 1
    return KnownNovel(counts[True, True], counts[True, False], counts[False, True], counts[False, False], n_without)


def most_confused(predictions: Predictions, *, stage: int, split: str, n_pairs: int) -> list[ConfusedPair]:
    """The pairs with the most images at one stage, under the matching that the scores use."""
    rows = _rows(predictions, stage, split)
    names = sorted({predictions.category[row] for row in rows})
    code_of = {name: code for code, name in enumerate(names)}
    clusters = list(dict.fromkeys(c for c in (predictions.cluster[row] for row in rows) if c != NO_CLUSTER))
    number_of = {name: number for number, name in enumerate(clusters)} | {NO_CLUSTER: UNLABELED}
    categories_now = np.array([code_of[predictions.category[row]] for row in rows], dtype=np.int64)
    clusters_now = np.array([number_of[predictions.cluster[row]] for row in rows], dtype=np.int64)

    counts = contingency(clusters_now, categories_now)
    category_of = match(counts)
    n_of_category = np.bincount(categories_now, minlength=len(names))
    cells = counts.tocoo()
    pairs = [
        ConfusedPair(
            category=names[category],
            taken_for=names[category_of[cluster]] if category_of[cluster] != UNLABELED else None,
            cluster=clusters[cluster],
            n_images=n_images,
            n_of_category=int(n_of_category[category]),
        )
        for cluster, category, n_images in zip(cells.row.tolist(), cells.col.tolist(), cells.data.tolist(), strict=True)
        if category_of[cluster] != category
    ]
    return sorted(pairs, key=lambda pair: (-pair.n_images, pair.category, pair.cluster))[:n_pairs]


def accuracy_on_first_categories(predictions: Predictions, *, split: str) -> dict[int, float | None]:
    """Percent right at each stage of the images of the categories of stage 0: the forgetting curve of figure 4.

    The maximum forgetting M_f is the value at stage 0 minus the lowest one after it.
    """
    coded = code_predictions(predictions)
    rows = coded.take(np.flatnonzero(coded.split == SPLITS.index(split)))
    is_first = np.zeros(rows.n_categories, dtype=np.bool_)
    is_first[rows.category[(rows.stage == 0) & (rows.group == OLD)]] = True
    curve = {}
    for stage, now in rows_by_code(rows.stage).items():
        hits = matched_hits(rows.cluster[now], rows.category[now])
        first = is_first[rows.category[now]]
        curve[stage] = accuracy(hits[first], rows.category[now][first])
    return curve


def categories_of_group(predictions: Predictions, *, stage: int, group: str, split: str) -> set[str]:
    """The true categories of one group among the images of a stage."""
    return {predictions.category[row] for row in _rows(predictions, stage, split) if predictions.group[row] == group}


def missed(new_categories: Collection[str], majorities: Collection[str | None]) -> list[str]:
    """The new categories that are the majority of no discovery."""
    return sorted(set(new_categories) - set(majorities))


def _rows(predictions: Predictions, stage: int, split: str) -> list[int]:
    return [row for row in np.flatnonzero(predictions.stage == stage).tolist() if predictions.split[row] == split]
