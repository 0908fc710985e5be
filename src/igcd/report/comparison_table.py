"""Methods beside each other: mean and spread over seeds, laid out as the paper's tables, from the records of runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pydantic import ValidationError

from igcd.errors import IgcdError
from igcd.report.paper import (
    PublishedCount,
    PublishedFigures,
    later_work_published,
    published_count,
    published_figures,
)
from igcd.report.run_records import Results, StageResult
from igcd.report.score_table import groups_of_stage
from igcd.report.spread import PairedTest, Spread, paired_test, ranks, spread

UPPER_BOUND = "supervised"
"""It sees the true labels, so it takes no part in the contest for best."""
OVERALL = ("M_f", "M_d")
LATER_WORK_LAYOUT = "-cgcd"
"""How streams in the layout of later work are called."""
LITE0 = "tf_efficientnet_lite0"


@dataclass(frozen=True)
class Column:
    """A score: `S1.Old`, `M_f`."""

    key: str
    stage: int | None
    group: str

    @property
    def lower_is_better(self) -> bool:
        """Forgetting is the one score to keep low."""
        return self.group == "M_f"

    @property
    def arrow(self) -> str:
        """Which way is better."""
        return "↓" if self.lower_is_better else "↑"


@dataclass(frozen=True)
class RowRecords:
    """The runs of one row by seed, how many were asked for, and where the paper has it."""

    name: str
    results: Mapping[int, Results]
    n_wanted: int
    paper: str | None = None
    paper_row: str = ""
    method: str = ""
    """Known before the first run is there."""


@dataclass(frozen=True)
class Row:
    """A row: a spread per column where there is one, its rank among the rows, and the paper's figures."""

    name: str
    method: str
    seeds: tuple[int, ...]
    n_wanted: int
    scores: Mapping[str, Spread]
    ranks: Mapping[str, int]
    paper: PublishedFigures | None
    paper_figures: Mapping[str, float]
    """By column of this table."""
    seconds: Spread | None
    peak_memory: float | None
    opened: Mapping[int, Spread]
    """Clusters opened for new categories, by stage."""
    won: Mapping[int, Spread]
    """New categories that such a cluster wins, by stage; empty for records that do not have it."""
    kept_images: Spread | None
    """Images of the past that are held after the last stage."""
    kept_bytes: Spread | None
    """What is held of the past after the last stage: images, features, statistics."""
    paper_found: PublishedCount | None
    later_work: Mapping[str, Mapping[str, Spread]]
    """What later work reports, by whose definition and score."""

    @property
    def is_upper_bound(self) -> bool:
        """Whether it was given what the others have to find."""
        return self.method == UPPER_BOUND

    @property
    def seeds_note(self) -> str:
        """How many seeds there are, and of how many where some are missing."""
        n = len(self.seeds)
        return str(n) if n == self.n_wanted else f"{n} of {self.n_wanted}"


@dataclass(frozen=True)
class ComparisonTable:
    """Rows and columns, the test of every pair of rows by score, and what there was to find."""

    stream: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    pairs: Mapping[str, Mapping[tuple[str, str], PairedTest]]
    true_new: Mapping[int, int]
    encoder: str
    later_work: Mapping[str, Any]
    """What later work has published for the setting of these runs, an entry of `igcd.report.paper.LATER_WORK`."""

    @property
    def stages(self) -> list[tuple[int, list[Column]]]:
        """The columns of each stage, in order."""
        stages: dict[int, list[Column]] = {}
        for column in self.columns:
            if column.stage is not None:
                stages.setdefault(column.stage, []).append(column)
        return list(stages.items())

    @property
    def overall(self) -> list[Column]:
        """The columns that are of no stage."""
        return [column for column in self.columns if column.stage is None]

    @property
    def later_work_columns(self) -> list[tuple[str, str]]:
        """Whose definition and which score, for a stream in the layout of later work; none for others."""
        if not self.stream.endswith(LATER_WORK_LAYOUT):
            return []
        found = {
            (whose, name): None for row in self.rows for whose, scores in row.later_work.items() for name in scores
        }
        return list(found)

    @property
    def paper_tables(self) -> list[str]:
        """The numbers of the paper's tables that have some of these rows."""
        return list(dict.fromkeys(row.paper.table for row in self.rows if row.paper and row.paper_figures))


def parse_results(record: Any, source: str) -> Results:  # noqa: ANN401 - whatever JSON holds
    """The part of `results.json` that tables need."""
    try:
        return Results.model_validate(record)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the record"
        raise IgcdError(f"{source} is not what `igcd run` writes: {where}: {fault['msg']}; repeat the run") from None


def comparison_table(rows: Sequence[RowRecords]) -> ComparisonTable:
    """The table of some rows; at least one run must be there."""
    runs = [results for row in rows for results in row.results.values()]
    if not runs:
        raise IgcdError("there is nothing to compare: no run is complete")
    streams = sorted({results.stream for results in runs})
    if len(streams) > 1:
        raise IgcdError(f"runs of one stream can be compared, got {', '.join(streams)}; compare each in its own folder")
    columns = _columns(runs)
    last_stage = max((column.stage for column in columns if column.stage is not None), default=0)
    values = {row.name: _scores_by_seed(row.results) for row in rows}
    spreads = {
        row.name: {column.key: spread(list(values[row.name].get(column.key, {}).values())) for column in columns}
        for row in rows
    }
    places = _ranks(rows, columns, spreads)
    return ComparisonTable(
        stream=streams[0],
        columns=columns,
        rows=tuple(_row(row, spreads[row.name], places[row.name], streams[0], last_stage) for row in rows),
        pairs={
            column.key: _pairs(
                [row.name for row in rows], {name: by.get(column.key, {}) for name, by in values.items()}
            )
            for column in columns
        },
        true_new={
            stage.stage: (stage.count.won or stage.count.new).true
            for stage in runs[0].stages
            if stage.stage > 0 or len(runs[0].stages) == 1
        },
        encoder=encoder_note([results.config for results in runs]),
        later_work=later_work_published(streams[0], [results.config for results in runs]),
    )


def encoder_note(configs: Sequence[Mapping[str, Any]]) -> str:
    """Which encoder the figures are of, and that the default one has seen labels.

    >>> encoder_note([{"encoder": {"backbone": "tf_efficientnet_lite0", "weights": "pip", "size": 112}}])
    'EfficientNet-Lite0 at 112 px; this encoder was trained with ImageNet labels'
    >>> encoder_note([{"encoder": {"backbone": "resnet18", "weights": "moco.pth", "size": 224}}])
    'resnet18 (moco.pth) at 224 px'
    """
    notes = []
    for config in configs:
        encoder = config.get("encoder", {})
        name, weights = encoder.get("backbone"), str(encoder.get("weights"))
        size = f"at {encoder.get('size')} px"
        if name == LITE0 and weights == "pip":
            notes.append(f"EfficientNet-Lite0 {size}; this encoder was trained with ImageNet labels")
        else:
            notes.append(f"{name} ({weights.rpartition('/')[2]}) {size}")
    return ", ".join(dict.fromkeys(notes))


def _columns(runs: Sequence[Results]) -> tuple[Column, ...]:
    """The columns of table 1: the groups of each stage that any run has, then M_f and M_d where they are defined."""
    groups: dict[int, dict[str, float | None]] = {}
    for results in runs:
        for stage in results.stages:
            known: dict[str, float | None] = {group: s for group, s in stage.scores.items() if s is not None}
            groups[stage.stage] = {"Old": None, "New": None} | groups.get(stage.stage, {}) | known
    found = [
        Column(f"S{stage}.{group}", stage, group)
        for stage, scores in sorted(groups.items())
        for group in groups_of_stage(scores, [])
    ]
    found += [Column(name, None, name) for name in OVERALL if any(getattr(run, name) is not None for run in runs)]
    return tuple(found)


def _scores_by_seed(runs: Mapping[int, Results]) -> dict[str, dict[int, float]]:
    """Every score by column and seed."""
    scores: dict[str, dict[int, float]] = {}
    for seed, results in sorted(runs.items()):
        own = {f"S{stage.stage}.{group}": score for stage in results.stages for group, score in stage.scores.items()}
        for key, score in (own | {name: getattr(results, name) for name in OVERALL}).items():
            if score is not None:
                scores.setdefault(key, {})[seed] = score
    return scores


def _ranks(
    rows: Sequence[RowRecords], columns: Sequence[Column], spreads: Mapping[str, Mapping[str, Spread | None]]
) -> dict[str, dict[str, int]]:
    """Best and second best of each column, by row."""
    places: dict[str, dict[str, int]] = {row.name: {} for row in rows}
    contest = [row.name for row in rows if _method(row) != UPPER_BOUND]
    for column in columns:
        of_column = [spreads[name][column.key] for name in contest]
        means = [None if one is None else one.mean for one in of_column]
        for name, place in zip(contest, ranks(means, lower_is_better=column.lower_is_better), strict=True):
            if place is not None:
                places[name][column.key] = place
    return places


def _method(row: RowRecords) -> str:
    return next((results.method for results in row.results.values()), row.method)


def _row(
    row: RowRecords, scores: Mapping[str, Spread | None], places: Mapping[str, int], stream: str, last_stage: int
) -> Row:
    published = published_figures(row.paper, row.paper_row or row.name) if row.paper else None
    figures = {} if published is None else dict(published.figures)
    on_stages = {
        key if "." in key or key in OVERALL else f"S{last_stage}.{key}": value for key, value in figures.items()
    }
    runs = list(row.results.values())
    return Row(
        name=row.name,
        method=_method(row),
        seeds=tuple(sorted(row.results)),
        n_wanted=row.n_wanted,
        scores={key: value for key, value in scores.items() if value is not None},
        ranks=places,
        paper=published,
        paper_figures={key: value for key, value in on_stages.items() if key in scores},
        seconds=spread([results.seconds.learn + results.seconds.predict for results in runs]),
        peak_memory=max((float(results.peak_memory_bytes) for results in runs), default=None),
        opened=_by_stage(runs, lambda stage: stage.opened),
        won=_by_stage(runs, lambda stage: None if stage.count.won is None else stage.count.won.found),
        kept_images=spread([float(results.stages[-1].kept.images) for results in runs]),
        kept_bytes=spread([float(results.stages[-1].kept.bytes) for results in runs]),
        paper_found=published_count(stream, row.paper_row or _method(row)) if row.paper else None,
        later_work=_later_work(runs),
    )


def _later_work(runs: Sequence[Results]) -> dict[str, dict[str, Spread]]:
    """Mean and spread over the runs of every score that later work reports."""
    values: dict[str, dict[str, list[float]]] = {}
    for results in runs:
        for whose, scores in results.later_work.items():
            for name, value in scores.items():
                if value is not None:
                    values.setdefault(whose, {}).setdefault(name, []).append(value)
    return {
        whose: {name: over for name, several in scores.items() if (over := spread(several)) is not None}
        for whose, scores in values.items()
    }


def _by_stage(runs: Sequence[Results], count: Callable[[StageResult], int | None]) -> dict[int, Spread]:
    """A count of the stages, over the runs that have it."""
    found: dict[int, Spread] = {}
    for stage in sorted({one.stage for results in runs for one in results.stages}):
        counts = [count(one) for results in runs for one in results.stages if one.stage == stage]
        over_seeds = spread([float(value) for value in counts if value is not None])
        if over_seeds is not None:
            found[stage] = over_seeds
    return found


def _pairs(names: Sequence[str], values: Mapping[str, Mapping[int, float]]) -> dict[tuple[str, str], PairedTest]:
    tests = {pair: paired_test(values[pair[0]], values[pair[1]]) for pair in combinations(names, 2)}
    return {pair: test for pair, test in tests.items() if test is not None}


def curves(rows: Sequence[RowRecords]) -> dict[str, dict[str, dict[int, float]]]:
    """Mean accuracy over seeds by row, group and stage; of groups that a row has at two stages or more."""
    means: dict[str, dict[str, dict[int, float]]] = {}
    for row in rows:
        values: dict[str, dict[int, list[float]]] = {}
        for results in row.results.values():
            for stage in results.stages:
                for group, score in stage.scores.items():
                    if score is not None:
                        values.setdefault(group, {}).setdefault(stage.stage, []).append(score)
        means[row.name] = {
            group: {stage: sum(scores) / len(scores) for stage, scores in sorted(by_stage.items())}
            for group, by_stage in values.items()
            if len(by_stage) > 1
        }
    return means
