"""Writes the measured tables of docs/results/methods.md from `results/*.jsonl`, each between its markers, with figures.

    python tools/write_reproducibility.py [--check]

`igcd compare … --record results/NAME.jsonl` and `igcd ablate … --record results/NAME.jsonl` write the records; the page
has a place for them between `<!-- begin NAME -->` and `<!-- end NAME -->`. Counts of categories are those of
`benchmarks/counting.py --record results/counts/NAME.jsonl`, at `counts-NAME`. What is outside of the markers stays.
With --check nothing is written, and a page that differs from its records is an error.
"""

import argparse
import json
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any

from igcd.comparison.ledger import read_ledger
from igcd.report.comparison import render_figure
from igcd.report.comparison_table import ComparisonTable, Row, RowRecords, comparison_table, parse_results
from igcd.report.comparison_text import NO_VALUE, cost, kept, pipe_table, spread_text
from igcd.report.spread import spread

ROOT = Path(__file__).parents[1]
LAST_STAGE = ("All", "Old", "New")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "results" / "methods.md")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is not of the records")
    arguments = parser.parse_args()
    before = arguments.page.read_text(encoding="utf-8")
    texts = {arguments.page: before}
    for path in sorted(arguments.results.glob("*.jsonl")):
        records = read_ledger(path)
        if not records:
            sys.exit(f"{path} has no records; remove it, or record a comparison")
        table = comparison_table(rows_of(records, str(path)))
        text = table_text(records, table)
        figure = render_figure(table) if records[0]["command"].startswith("igcd compare") else None
        if figure is not None:
            place = f"../images/{path.stem}-old-new.svg"
            texts[arguments.page.parent / place] = figure
            text += f"\n![Old against New at the last stage, a point per method]({place})\n"
        texts[arguments.page] = with_table(texts[arguments.page], path.stem, text)
    for path in sorted(arguments.results.glob("counts/*.jsonl")):
        estimates = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        texts[arguments.page] = with_table(texts[arguments.page], f"counts-{path.stem}", counts_text(estimates))
    if arguments.check:
        for target, text in texts.items():
            if not target.is_file() or target.read_text(encoding="utf-8") != text:
                sys.exit(f"{target} is not what the records say; run {Path(__file__).name}")
        return
    for target, text in texts.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def with_table(page: str, name: str, table: str) -> str:
    """The page with a table in its place."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        sys.exit(f"the page needs one place for the records {name}: a line {begin.strip()} and after it a line {end}")
    head, _, rest = page.partition(begin)
    return head + begin + table + end + rest.partition(end)[2]


def rows_of(records: list[dict[str, Any]], source: str) -> list[RowRecords]:
    """The records of each row, seed by seed."""
    wanted = len({record["seed"] for record in records})
    rows = []
    for name, several in groupby(records, key=lambda record: record["variant"]):
        own = list(several)
        results = {record["seed"]: parse_results(record, f"{source}, {name}") for record in own}
        rows.append(RowRecords(name, results, wanted, own[0].get("paper"), own[0].get("paper_row", "")))
    return rows


def table_text(records: list[dict[str, Any]], table: ComparisonTable) -> str:
    """The table of some records: ours beside the paper's, with the command and the verdict of each row."""
    last = max(stage for stage, _ in table.stages)
    columns = [column for column in table.columns if column.stage is None]
    columns += [column for column in table.columns if column.stage == last and column.group in LAST_STAGE]
    columns.sort(key=lambda column: (column.stage is not None, column.group == "M_f"))  # M_d, M_f, All, Old, New
    has_paper = {column.key for column in columns if any(column.key in row.paper_figures for row in table.rows)}
    heads = ["row"]
    for column in columns:
        place = "" if column.stage is None else f"stage {last} "
        heads.append(f"{place}{column.group} {column.arrow}")
        heads += ["paper"] if column.key in has_paper else []
    heads += ["new won per stage (opened)", "images kept", "bytes kept", "seeds", "time", "command"]
    heads += ["order as in the paper"] if has_paper else []
    commands = {record["variant"]: record.get("run") for record in records}
    lines = []
    for row in table.rows:
        cells = [row.name + (" (upper bound)" if row.is_upper_bound else "")]
        for column in columns:
            cells.append(_marked(row, column.key))
            cells += [_figure(row.paper_figures.get(column.key))] if column.key in has_paper else []
        cells += [_found(row), *kept(row), row.seeds_note, cost(row)[0], _code(_without_seed(commands[row.name]))]
        cells += [verdict(row, table)] if has_paper else []
        lines.append(cells)
    return "\n".join([*_preface(records, table), "", pipe_table(heads, lines), "", *_sources(records), ""])


def counts_text(estimates: list[dict[str, Any]]) -> str:
    """Numbers of categories by each estimator, from what `benchmarks/counting.py --record` wrote."""
    stages = sorted({estimate["stage"] for estimate in estimates})
    heads = ["estimator", *(f"stage {stage}, of {_true_count(estimates, stage)}" for stage in stages)]
    heads += ["mean error", "seconds of the processor", "times the density peaks'"]
    key = itemgetter("method", "starts")
    rows, fastest = [], fmean(estimate["seconds"] for estimate in estimates if estimate["method"] == "density")
    for (method, starts), several in groupby(sorted(estimates, key=key), key=key):
        own = list(several)
        found = [
            ", ".join(str(estimate["novel_found"]) for estimate in own if estimate["stage"] == stage)
            for stage in stages
        ]
        error = fmean(abs(estimate["novel_found"] - estimate["novel"]) for estimate in own)
        seconds = fmean(estimate["seconds"] for estimate in own)
        name = "density peaks" if method == "density" else f"{method}, {starts} start{'s' if starts > 1 else ''}"
        rows.append([name, *found, f"{error:.1f}", f"{seconds:.2f}", f"{seconds / fastest:.0f}"])
    commands = list(dict.fromkeys(estimate["command"] for estimate in estimates))
    return "\n".join(["```", *commands, "```", "", pipe_table(heads, rows), ""])


def _true_count(estimates: list[dict[str, Any]], stage: int) -> str:
    return " or ".join(str(n) for n in sorted({one["novel"] for one in estimates if one["stage"] == stage}))


def verdict(row: Row, table: ComparisonTable) -> str:
    """Whether the row stands to every other row as in the paper, by M_d and M_f or the last stage's All.

    A difference that is the other way round but smaller than the spread over seeds is named as such.
    """
    if row.is_upper_bound:
        return "upper bound"
    parts = []
    keys = [key for key in ("M_d", "M_f", f"S{table.stages[-1][0]}.All") if key in row.paper_figures]
    for key in keys[:2]:
        others = [
            other
            for other in table.rows
            if other is not row and not other.is_upper_bound and key in other.paper_figures and key in other.scores
        ]
        if not others or key not in row.scores:
            continue
        wrong = []
        for other in others:
            ours = row.scores[key].mean - other.scores[key].mean
            paper = row.paper_figures[key] - other.paper_figures[key]
            if ours * paper < 0:
                noise = max(row.scores[key].deviation or 0.0, other.scores[key].deviation or 0.0)
                wrong.append(f"{other.name} (by {abs(ours):.1f}{', within the spread' if abs(ours) <= noise else ''})")
        parts.append(f"{key} differs: {', '.join(wrong)}" if wrong else f"{key} same order")
    return "; ".join(parts) if parts else NO_VALUE


def _preface(records: list[dict[str, Any]], table: ComparisonTable) -> list[str]:
    commands = list(dict.fromkeys(record["command"] for record in records if record.get("command")))
    numbers = f" Paper: table {' and '.join(table.paper_tables)}." if table.paper_tables else ""
    lines = [
        f"Stream {table.stream}, percent, mean ± standard deviation over seeds, **best** and <u>second</u> of ours. "
        f"Encoder: {table.encoder}.{numbers}"
    ]
    return [*lines, "", "```", *commands, "```"] if commands else lines


def _sources(records: list[dict[str, Any]]) -> list[str]:
    seeds = sorted({record["seed"] for record in records})
    commits = sorted({record.get("commit") or "not recorded" for record in records})
    return [f"Seeds {', '.join(map(str, seeds))}; commit {', '.join(commits)}."]


def _marked(row: Row, key: str) -> str:
    text = spread_text(row.scores.get(key))
    return {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(row.ranks.get(key, 0), text)


def _figure(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.1f}"


def _found(row: Row) -> str:
    """Means over the later stages: new categories that a cluster wins, and clusters opened for them."""
    won, opened = ([value.mean for stage, value in of.items() if stage > 0] for of in (row.won, row.opened))
    texts = [spread_text(spread([fmean(later)])) if later else NO_VALUE for later in (won, opened)]
    return f"{texts[0]} ({texts[1]})"


def _without_seed(command: str | None) -> str | None:
    return None if command is None else " ".join(part for part in command.split(" ") if not part.startswith("seed="))


def _code(command: str | None) -> str:
    return NO_VALUE if command is None else f"`{command}`"


if __name__ == "__main__":
    main()
