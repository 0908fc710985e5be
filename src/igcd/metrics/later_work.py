"""What later work reports of a stream, each by its own definition: Happy, VB-CGCD and PromptCCD.

Happy and PromptCCD are read from variants of the scores. VB-CGCD fixes the names of clusters in training and matches
nothing at test time.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from igcd.metrics.accuracy import accuracy
from igcd.metrics.forgetting import final_forgetting, mean_discovery
from igcd.metrics.groups import regroup
from igcd.metrics.identity import hits_by_fixed_names
from igcd.metrics.predictions import NEW, OLD, SPLITS, CodedPredictions
from igcd.types import BoolArray, IntArray, StageScores

GROUPS = ("All", "Old", "New")
TEST = SPLITS.index("test")

Scores = Mapping[str, float | None]


def happy(stages: Sequence[StageScores], forgetting: float | None) -> Scores:
    """The final stage under `soft`; M_f of the paper, and M_d the mean of New over the stages after stage 0."""
    later = [stage.scores["New"] for stage in stages if stage.stage > 0]
    return {
        **{group: stages[-1].scores[group] for group in GROUPS},
        "M_f": forgetting,
        "M_d": mean_discovery(later),
    }


def promptccd(stages: Sequence[StageScores]) -> Scores:
    """The means over the stages after stage 0, under `hard`: Old are the categories of stage 0."""
    later = [stage.scores for stage in stages if stage.stage > 0]
    return {group: mean_discovery([scores[group] for scores in later]) for group in GROUPS}


def vb_cgcd(coded: CodedPredictions) -> Scores:
    """The final stage under `soft`, and M_f = a_0 − a_T, with names of clusters that the training images fixed.

    A cluster is named at the stage it first appears in, by a matching on the unlabeled images of that stage, or on its
    test images where it has none, as at stage 0. Names stay; test images are matched with nothing.
    """
    has_unlabeled = np.zeros(int(coded.stage.max(initial=0)) + 1, dtype=np.bool_)
    has_unlabeled[coded.stage[coded.split != TEST]] = True
    gives_names = (coded.split != TEST) | ~has_unlabeled[coded.stage]
    hits = hits_by_fixed_names(coded.stage, coded.cluster, coded.category, gives_names=gives_names)
    groups = regroup(coded.stage, coded.category, coded.group, old="soft")
    last, first = int(coded.stage.max(initial=0)), coded.stage == 0
    is_base = np.zeros(coded.n_categories, dtype=np.bool_)
    is_base[coded.category[first & (coded.group == OLD)]] = True

    def percent(rows: BoolArray) -> float | None:
        members: IntArray = np.flatnonzero(rows & (coded.split == TEST))
        return accuracy(hits[members], coded.category[members])

    final = coded.stage == last
    of_base = is_base[coded.category]
    return {
        "All": percent(final),
        "Old": None if groups is None else percent(final & (groups == OLD)),
        "New": None if groups is None else percent(final & (groups == NEW)),
        "M_f": final_forgetting(percent(first & of_base), [percent(final & of_base)] if last else []),
    }
