"""Every score of a system's predictions, in every variant by its name."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

import numpy as np

from igcd.metrics import later_work
from igcd.metrics.accuracy import Average, accuracy, matched_hits
from igcd.metrics.counts import CategoryCount, agreement, count_categories, count_won
from igcd.metrics.forgetting import final_discovery, final_forgetting, maximum_forgetting, mean_discovery
from igcd.metrics.groups import OldDefinition, first_stages, regroup, rows_by_code
from igcd.metrics.identity import identity_stability
from igcd.metrics.predictions import ABSENT, NEW, OLD, SPLITS, CodedPredictions, code_predictions, group_name
from igcd.types import UNLABELED, BoolArray, IntArray, Predictions, StageScores

MATCHINGS = ("v2", "v1")


@dataclass(frozen=True)
class Variant:
    """Accuracies per stage, forgetting and discovery under one choice of split, matching, average and Old."""

    stages: tuple[StageScores, ...]
    forgetting: Mapping[str, float | None]  # M_f by whose definition
    discovery: Mapping[str, float | None]  # M_d by whose definition

    def to_json(self) -> dict[str, Any]:
        """M_f and M_d are the paper's; the other definitions stand under their names."""
        return {
            "stages": [{"stage": stage.stage, "scores": dict(stage.scores)} for stage in self.stages],
            "M_f": self.forgetting["paper"],
            "M_d": self.discovery["paper"],
            "M_f_by": dict(self.forgetting),
            "M_d_by": dict(self.discovery),
        }


@dataclass(frozen=True)
class StageDetail:
    """What is known of a stage beside its accuracies. Percent."""

    n_images: int
    n_categories: int
    n_clusters: int
    nmi: float
    ari: float
    identity: float
    count_all: CategoryCount
    count_new: CategoryCount  # categories and clusters that have no row in an earlier stage
    count_won: CategoryCount  # New categories without a row in an earlier stage, and those that a new cluster wins

    def to_json(self) -> dict[str, Any]:
        """The detail as plain data."""
        return {
            "n_images": self.n_images,
            "n_categories": self.n_categories,
            "n_clusters": self.n_clusters,
            "NMI": self.nmi,
            "ARI": self.ari,
            "identity": self.identity,
            "count": {
                "all": self.count_all.to_json(),
                "new": self.count_new.to_json(),
                "won": self.count_won.to_json(),
            },
        }


@dataclass(frozen=True)
class Scorecard:
    """All variants by name, and the details of each stage of the default one."""

    default: str
    variants: Mapping[str, Variant]
    details: tuple[StageDetail, ...]
    later_work: Mapping[str, later_work.Scores]  # what Happy, VB-CGCD and PromptCCD report, each by its own definition

    def to_json(self) -> dict[str, Any]:
        """The default variant on top, all of them under `variants`. Percent; None where undefined."""
        top = self.variants[self.default].to_json()
        top["stages"] = [stage | detail.to_json() for stage, detail in zip(top["stages"], self.details, strict=True)]
        return {
            "default": self.default,
            **top,
            "later_work": {whose: dict(scores) for whose, scores in self.later_work.items()},
            "variants": {k: v.to_json() for k, v in self.variants.items()},
        }


def scorecard(predictions: Predictions, source: str = "predictions") -> Scorecard:
    """Score predictions in every variant: `split/matching/average/Old`, the default one first.

    The default split is test, or unlabeled where there are no test images, and for static GCD: one stage with unlabeled
    images. Its published figures are of the unlabeled images. Errors name the source and the line.
    """
    coded = code_predictions(predictions, source)
    rows_of_splits = rows_by_code(coded.split)
    if len(np.unique(coded.stage)) == 1:
        rows_of_splits = dict(sorted(rows_of_splits.items(), reverse=True))
    groups_by: dict[OldDefinition, IntArray | None] = {
        old: regroup(coded.stage, coded.category, coded.group, old=old) for old in get_args(OldDefinition)
    }
    variants: dict[str, Variant] = {}
    details: tuple[StageDetail, ...] = ()
    for split_code, rows_of_split in rows_of_splits.items():
        rows = coded.take(rows_of_split)
        groups = {old: None if by is None else by[rows_of_split] for old, by in groups_by.items()}
        variants |= {f"{SPLITS[split_code]}/{name}": variant for name, variant in _variants(rows, groups).items()}
        details = details or _details(coded, rows)
    return Scorecard(
        default=next(iter(variants)), variants=variants, details=details, later_work=_later_work(coded, variants)
    )


def _later_work(coded: CodedPredictions, variants: Mapping[str, Variant]) -> dict[str, later_work.Scores]:
    """By whose definition; of a stream with test images and later stages alone."""
    soft, hard = (variants.get(f"test/v2/image/{old}") for old in ("soft", "hard"))
    if soft is None or hard is None or coded.stage.max() == 0:
        return {}
    return {
        "Happy": later_work.happy(soft.stages, soft.forgetting["paper"]),
        "VB-CGCD": later_work.vb_cgcd(coded),
        "PromptCCD": later_work.promptccd(hard.stages),
    }


def _variants(rows: CodedPredictions, groups_by: Mapping[OldDefinition, IntArray | None]) -> dict[str, Variant]:
    """The variants of one split, named `matching/average/Old`."""
    variants: dict[str, Variant] = {}
    hits_of_all = _hits(rows, np.zeros_like(rows.group))
    for matching in MATCHINGS:
        hits_by = {
            old: hits_of_all if matching == "v2" or groups is None else _hits(rows, groups)
            for old, groups in groups_by.items()
        }
        for average, old in product(get_args(Average), groups_by):
            groups = groups_by[old]
            variants[f"{matching}/{average}/{old}"] = (
                _undefined(rows) if groups is None else _variant(rows, groups, hits_by[old], average)
            )
    return variants


def _hits(rows: CodedPredictions, parts: IntArray) -> BoolArray:
    """Hits with a matching of its own for each part of each stage."""
    hits = np.zeros(len(parts), dtype=np.bool_)
    for now in rows_by_code(rows.stage).values():
        hits[now] = matched_hits(rows.cluster[now], rows.category[now], parts[now])
    return hits


def _variant(rows: CodedPredictions, groups: IntArray, hits: BoolArray, average: Average) -> Variant:
    """One variant's scores from each row's group and whether it is right."""

    def percent(members: IntArray) -> float | None:
        return accuracy(hits[members], rows.category[members], average=average)

    is_base = np.zeros(rows.n_categories, dtype=np.bool_)
    is_base[rows.category[(rows.stage == 0) & (rows.group == OLD)]] = True

    stages: list[StageScores] = []
    base: dict[int, float | None] = {}  # accuracy on the categories of stage 0, by stage
    base_absent: list[float | None] = []  # the same on those that are absent from the stage, after stage 0
    for stage, now in rows_by_code(rows.stage).items():
        scores = {
            "All": percent(now[groups[now] < ABSENT]),
            "Old": percent(now[groups[now] == OLD]),
            "New": percent(now[groups[now] == NEW]),
        }
        for code, members in rows_by_code(groups[now]).items():
            if code >= ABSENT:
                scores[group_name(code)] = percent(now[members])
        stages.append(StageScores(stage, scores))
        base[stage] = percent(now[is_base[rows.category[now]]])
        if stage > 0:
            base_absent.append(percent(now[rows.group[now] == ABSENT]))

    base_at_start = base.pop(0, None)
    return Variant(
        stages=tuple(stages),
        forgetting={
            "paper": maximum_forgetting(base_at_start, list(base.values())),
            "S-0 group": maximum_forgetting(base_at_start, base_absent),
            "VB-CGCD": final_forgetting(base_at_start, list(base.values())),
        },
        discovery={
            "paper": final_discovery(rows.stage, percent),
            "Happy": mean_discovery([stage.scores["New"] for stage in stages if stage.stage > 0]),
        },
    )


def _undefined(rows: CodedPredictions) -> Variant:
    """The variant where the file does not tell who is Old."""
    nothing = {"All": None, "Old": None, "New": None}
    return Variant(
        stages=tuple(StageScores(int(stage), nothing) for stage in np.unique(rows.stage)),
        forgetting=dict.fromkeys(("paper", "S-0 group", "VB-CGCD")),
        discovery=dict.fromkeys(("paper", "Happy")),
    )


def _details(coded: CodedPredictions, rows: CodedPredictions) -> tuple[StageDetail, ...]:
    """Details of the stages of one split; the rows of both splits define what is new."""
    predicted = coded.cluster != UNLABELED
    category_first = first_stages(coded.stage, coded.category)
    cluster_first = first_stages(coded.stage[predicted], coded.cluster[predicted])
    identity = identity_stability(rows.stage, rows.cluster, rows.category)
    details = []
    for stage, rows_now in rows_by_code(rows.stage).items():
        now = rows.take(rows_now)
        clusters = now.cluster[now.cluster != UNLABELED]
        nmi, ari = agreement(now.cluster, now.category)
        count_all = count_categories(clusters, now.category)
        is_new_category = category_first == stage
        is_new_category[now.category[now.group != NEW]] = False
        details.append(
            StageDetail(
                n_images=len(now.stage),
                n_categories=count_all.true,
                n_clusters=count_all.found,
                nmi=nmi,
                ari=ari,
                identity=identity[stage],
                count_all=count_all,
                count_new=count_categories(
                    clusters[cluster_first[clusters] == stage], now.category[category_first[now.category] == stage]
                ),
                count_won=count_won(
                    now.cluster,
                    now.category,
                    is_new_cluster=cluster_first == stage,
                    is_new_category=is_new_category,
                ),
            )
        )
    return tuple(details)
