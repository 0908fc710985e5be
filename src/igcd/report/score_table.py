"""The scores in the layout of the paper's table 1: a group of columns per stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from igcd.data.taxonomy import Taxon
from igcd.metrics.taxonomy_levels import groups_by_level, scores_by_level
from igcd.report.paper import PublishedRow
from igcd.report.run_records import Results
from igcd.types import Predictions

MANY = {"species": "species", "genus": "genera", "family": "families"}


@dataclass(frozen=True)
class ScoreRow:
    """A row: a name, what stands small beside it, and a value per column."""

    name: str
    note: str
    values: tuple[float | None, ...]
    is_ours: bool


@dataclass(frozen=True)
class ScoreTable:
    """Columns as (stage, groups), and rows with a value for each group."""

    stages: tuple[tuple[int, tuple[str, ...]], ...]
    rows: tuple[ScoreRow, ...]


def score_table(results: Results, name: str, note: str, published: Sequence[PublishedRow]) -> ScoreTable:
    """Our row, and the published ones under it. Two more values end each row: M_f and M_d."""
    stages = tuple(
        (
            result.stage,
            groups_of_stage(
                result.scores, [group for row in published for at, group in row.scores if at == result.stage]
            ),
        )
        for result in results.stages
    )
    ours = {(result.stage, group): score for result in results.stages for group, score in result.scores.items()}

    def values(scores: Mapping[tuple[int, str], float | None]) -> list[float | None]:
        return [scores.get((stage, group)) for stage, groups in stages for group in groups]

    rows = [ScoreRow(name, note, (*values(ours), results.M_f, results.M_d), is_ours=True)]
    for row in published:
        scores = (*values(row.scores), row.forgetting, row.discovery)
        rows.append(ScoreRow(f"Paper, table {row.table}", row.backbone, scores, is_ours=False))
    return ScoreTable(stages, tuple(rows))


def level_table(predictions: Predictions, taxonomy: Mapping[str, Taxon], split: str) -> ScoreTable:
    """A row for each level of the tree of life, with the number of its groups beside it."""
    scores = scores_by_level(predictions, taxonomy, split=split)
    rows_of_split = zip(predictions.category, predictions.split, strict=True)
    present = sorted({category for category, split_of_row in rows_of_split if split_of_row == split})
    group_of = groups_by_level([taxonomy[name] for name in present])
    stages = tuple((stage.stage, groups_of_stage(stage.scores, [])) for stage in next(iter(scores.values())))
    rows = []
    for level, level_stages in scores.items():
        n_groups = len(set(group_of[level].tolist()))
        values = [
            stage.scores[group] for stage, (_, groups) in zip(level_stages, stages, strict=True) for group in groups
        ]
        note = f"{n_groups:,} {level if n_groups == 1 else MANY[level]}"
        rows.append(ScoreRow(f"Same {level}", note, tuple(values), is_ours=False))
    return ScoreTable(stages, tuple(rows))


def groups_of_stage(scores: Mapping[str, float | None], published: Sequence[str]) -> tuple[str, ...]:
    """The groups of a stage in the paper's order: All, Old, New, then S-t from the latest to the first.

    All says nothing beside a single group of the stage's own, so it stands alone at stage 0 and is left out where all
    categories are new, as in table 2.

    >>> groups_of_stage({"All": 80.0, "Old": 80.0, "New": None}, [])
    ('All',)
    >>> groups_of_stage({"All": 60.0, "Old": None, "New": 60.0, "S-0": 50.0, "S-1": 40.0}, [])
    ('New', 'S-1', 'S-0')
    """
    present = {group for group, score in scores.items() if score is not None}
    if scores.get("New") is None and not any(group.startswith("S-") for group in present):
        present = {"All"}
    elif scores.get("Old") is None and scores.get("New") is not None:
        present -= {"All"}
    return tuple(sorted(present | set(published), key=_rank))


def _rank(group: str) -> tuple[int, int]:
    own = ("All", "Old", "New")
    return (own.index(group), 0) if group in own else (len(own), -int(group.removeprefix("S-")))
