"""What is taken for what, from the rows of `predictions.csv`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from igcd.functional.assignment import contingency, match
from igcd.metrics.accuracy import accuracy, matched_hits
from igcd.metrics.groups import rows_by_code
from igcd.metrics.predictions import NO_CLUSTER, OLD, SPLITS, code_predictions
from igcd.types import UNLABELED, BoolArray, IntArray, Predictions


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


@dataclass(frozen=True)
class Crossing:
    """Clusters against categories at one stage: cells with images, and the category that scores match a cluster with.

    A cell is a cluster, a category and the number of images that are in both, (n_cells,) each.
    """

    categories: tuple[str, ...]
    clusters: tuple[str, ...]
    cell_cluster: IntArray
    cell_category: IntArray
    cell_images: IntArray
    category_of: IntArray  # (n_clusters,) UNLABELED where a cluster is matched with none
    n_images: IntArray  # (n_categories,), also those without a prediction

    @property
    def is_right(self) -> BoolArray:
        """Whether the images of a cell are where the matching wants them. (n_cells,)."""
        return np.asarray(self.category_of[self.cell_cluster] == self.cell_category, dtype=np.bool_)

    @property
    def n_right(self) -> IntArray:
        """Images of each category that are right. (n_categories,)."""
        right = self.is_right
        counts = np.bincount(self.cell_category[right], self.cell_images[right], minlength=len(self.categories))
        return counts.astype(np.int64)

    def stands_for(self, cluster: int) -> str | None:
        """The category that a cluster is matched with."""
        category = int(self.category_of[cluster])
        return None if category == UNLABELED else self.categories[category]


def cross(predictions: Predictions, *, stage: int, split: str) -> Crossing:
    """Counts what is taken for what, under the matching that the scores use."""
    rows = _rows(predictions, stage, split)
    names = sorted({predictions.category[row] for row in rows})
    code_of = {name: code for code, name in enumerate(names)}
    clusters = list(dict.fromkeys(c for c in (predictions.cluster[row] for row in rows) if c != NO_CLUSTER))
    number_of = {name: number for number, name in enumerate(clusters)} | {NO_CLUSTER: UNLABELED}
    categories_now = np.array([code_of[predictions.category[row]] for row in rows], dtype=np.int64)
    clusters_now = np.array([number_of[predictions.cluster[row]] for row in rows], dtype=np.int64)
    counts = contingency(clusters_now, categories_now)
    cells = counts.tocoo()
    return Crossing(
        categories=tuple(names),
        clusters=tuple(clusters),
        cell_cluster=cells.row.astype(np.int64),
        cell_category=cells.col.astype(np.int64),
        cell_images=cells.data.astype(np.int64),
        category_of=match(counts),
        n_images=np.bincount(categories_now, minlength=len(names)).astype(np.int64),
    )


def most_confused(crossing: Crossing, *, n_pairs: int) -> list[ConfusedPair]:
    """The pairs with the most images."""
    wrong = np.flatnonzero(~crossing.is_right)
    pairs = [
        ConfusedPair(
            category=crossing.categories[crossing.cell_category[cell]],
            taken_for=crossing.stands_for(crossing.cell_cluster[cell]),
            cluster=crossing.clusters[crossing.cell_cluster[cell]],
            n_images=int(crossing.cell_images[cell]),
            n_of_category=int(crossing.n_images[crossing.cell_category[cell]]),
        )
        for cell in wrong.tolist()
    ]
    return sorted(pairs, key=lambda pair: (-pair.n_images, pair.category, pair.cluster))[:n_pairs]


@dataclass(frozen=True)
class ConfusionTable:
    """The part of a crossing with the most errors: some categories, and the clusters that their images are in."""

    categories: IntArray  # (r,) rows, positions in the crossing
    clusters: IntArray  # (c,) columns
    counts: IntArray  # (r, c) images
    n_elsewhere: IntArray  # (r,) images in other clusters, or without a prediction
    is_right: BoolArray  # (r, c)


def confusion_table(crossing: Crossing, *, n_rows: int, n_columns: int) -> ConfusionTable:
    """The categories with the most errors, each with its own cluster; the remaining columns take most of the errors."""
    wrong = crossing.n_images - crossing.n_right
    rows = np.sort(np.argsort(-wrong, kind="stable")[:n_rows])
    in_rows = np.isin(crossing.cell_category, rows)
    own = np.isin(crossing.category_of, rows)
    received = np.bincount(
        crossing.cell_cluster[in_rows], crossing.cell_images[in_rows], minlength=len(crossing.clusters)
    )
    ranked = np.argsort(-received - own * received.sum(), kind="stable")[:n_columns]
    chosen = ranked[(received[ranked] > 0) | own[ranked]]
    # Where a cluster stands for a row, it stands in the same order, so that what is right lies on the diagonal.
    place = {category: at for at, category in enumerate(rows.tolist())}
    columns = np.array(
        sorted(
            chosen.tolist(), key=lambda cluster: (place.get(int(crossing.category_of[cluster]), len(rows)), cluster)
        ),
        dtype=np.int64,
    )
    counts = np.zeros((len(rows), len(columns)), dtype=np.int64)
    shown = in_rows & np.isin(crossing.cell_cluster, columns)
    column_of = {cluster: at for at, cluster in enumerate(columns.tolist())}
    for category, cluster, n in zip(
        crossing.cell_category[shown].tolist(),
        crossing.cell_cluster[shown].tolist(),
        crossing.cell_images[shown].tolist(),
        strict=True,
    ):
        counts[place[category], column_of[cluster]] = n
    return ConfusionTable(
        categories=rows,
        clusters=columns,
        counts=counts,
        n_elsewhere=crossing.n_images[rows] - counts.sum(axis=1),
        is_right=crossing.category_of[columns][None, :] == rows[:, None],
    )


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
