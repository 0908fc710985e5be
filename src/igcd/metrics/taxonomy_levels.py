"""Accuracy at the levels of the tree of life: the wrong species may still be of the right genus or family."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from igcd.data.taxonomy import Taxon, groups_at
from igcd.functional.assignment import contingency, match
from igcd.metrics.accuracy import accuracy, hits_under
from igcd.metrics.groups import rows_by_code
from igcd.metrics.predictions import ABSENT, NEW, OLD, SPLITS, code_predictions
from igcd.types import UNLABELED, BoolArray, IntArray, Predictions, StageScores

LEVELS = ("species", "genus", "family")
"""From the narrowest to the broadest; the species is the category itself."""


def groups_by_level(taxa: Sequence[Taxon]) -> dict[str, IntArray]:
    """The group of each category at each level, (n_categories,) each; the groups of a level are parts of the next's.

    A category without a name at a level stays in its group of the level below: with its genus where the genus is known
    and the family is not, alone where neither is.

    >>> monarch = Taxon("Danaus plexippus", ("", "", "", "", "Nymphalidae", "Danaus"))
    >>> comma = Taxon("Polygonia c-album", ("", "", "", "", "Nymphalidae", "Polygonia"))
    >>> unplaced = Taxon("Incerta sedis", ("", "", "", "", "", ""))
    >>> {level: groups.tolist() for level, groups in groups_by_level([monarch, comma, unplaced]).items()}
    {'species': [0, 1, 2], 'genus': [0, 1, 2], 'family': [0, 0, 2]}
    """
    by_level = {LEVELS[0]: np.arange(len(taxa), dtype=np.int64)}
    for below, level in pairwise(LEVELS):
        codes, _ = groups_at(taxa, level)
        is_named = np.array([bool(taxon.at(level)) for taxon in taxa], dtype=np.bool_)
        # A group is written as its first category: those kept from the level below cannot meet another's number.
        by_level[level] = np.where(is_named, _firsts(codes), by_level[below])
    return by_level


def _firsts(codes: IntArray) -> IntArray:
    """The first position that holds each position's code. (n,) -> (n,)."""
    _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return firsts[inverse].astype(np.int64)


def hits_at_level(category_of: IntArray, clusters: IntArray, categories: IntArray, group_of: IntArray) -> BoolArray:
    """Whether the category matched to each image's cluster is of the same group as the image's own.

    Under a matching of clusters with categories: (clusters,), (n,), (n,), (categories,) -> (n,). A cluster matched to
    no category is right for nobody, at any level.

    >>> category_of, genus_of = np.array([0, 2, -1]), np.array([0, 0, 1])
    >>> hits_at_level(category_of, np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0]), genus_of)
    array([ True,  True, False, False])
    """
    group_of_cluster = np.where(category_of == UNLABELED, UNLABELED, group_of[category_of])
    return hits_under(group_of_cluster, clusters, group_of[categories])


def scores_by_level(
    predictions: Predictions, taxonomy: Mapping[str, Taxon], *, split: str
) -> dict[str, tuple[StageScores, ...]]:
    """Accuracy of All, Old and New at each level and stage, from one matching of species per stage.

    At species level these are the scores of the variant `split/v2/image/paper`. `taxonomy` must have every category.
    """
    coded = code_predictions(predictions)
    group_of = groups_by_level([taxonomy[name] for name in sorted(set(predictions.category))])
    rows = coded.take(np.flatnonzero(coded.split == SPLITS.index(split)))
    by_level: dict[str, list[StageScores]] = {level: [] for level in LEVELS}
    for stage, rows_now in rows_by_code(rows.stage).items():
        now = rows.take(rows_now)
        category_of = match(contingency(now.cluster, now.category))
        members = {"All": now.group < ABSENT, "Old": now.group == OLD, "New": now.group == NEW}
        for level in LEVELS:
            hits = hits_at_level(category_of, now.cluster, now.category, group_of[level])
            scores = {name: accuracy(hits[is_in], now.category[is_in]) for name, is_in in members.items()}
            by_level[level].append(StageScores(stage, scores))
    return {level: tuple(stages) for level, stages in by_level.items()}
