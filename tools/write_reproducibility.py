"""Writes the measured tables of REPRODUCIBILITY.md and docs/results/*.md from `results/`, each between its markers.

    python tools/write_reproducibility.py [--check]

`igcd compare … --record results/NAME.jsonl` and `igcd ablate … --record results/NAME.jsonl` write the records; one of
the pages has a place for them between `<!-- begin NAME -->` and `<!-- end NAME -->`. What else has a place:

- `earlier/NAME`: records of earlier versions, `results/earlier/NAME.jsonl`
- `counts-NAME`: counts of categories by `benchmarks/counting.py --record results/counts/NAME.jsonl`
- `leads`: what leads on the four streams, with paired tests; `streams`: `density_gaussian` on them, stage by stage

What is outside of the markers stays. A place whose records are not there says so; records without a place are an error.
With --check nothing is written, and a page that differs from its records is an error.
"""

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from scipy import stats

from igcd.comparison.ledger import read_ledger
from igcd.report.comparison import render_figure
from igcd.report.comparison_table import ComparisonTable, Row, RowRecords, comparison_table, parse_results
from igcd.report.comparison_text import NO_VALUE, cost, kept, pipe_table, spread_text
from igcd.report.spread import paired_test, spread

ROOT = Path(__file__).parents[1]
LAST_STAGE = ("All", "Old", "New")
NOT_YET = "*Not measured yet.*\n"
PLACE = re.compile(r"<!-- begin (?P<name>\S+) -->\n(?P<text>.*?)<!-- end (?P=name) -->", re.DOTALL)

Records = Sequence[dict[str, Any]]
STREAMS = {
    "cifar100-cpu": "CIFAR-100 MI",
    "cifar100-igcd-l-cpu": "CIFAR-100 IGCD-l",
    "cifar100-igcd-u-cpu": "CIFAR-100 IGCD-u",
    "cub-cpu": "CUB MI",
}
OURS = "density_gaussian"
SAME_CORE = ("rls", "snn_density")
"""Methods that ask the same discovery core; they are no rivals of it."""
UPPER_BOUND = "supervised"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout with the pages and `results/`")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is not of the records")
    arguments = parser.parse_args()
    for target, text in written(arguments.root).items():
        if not arguments.check:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        elif not target.is_file() or target.read_text(encoding="utf-8") != text:
            sys.exit(f"{target} is not what the records say; run {Path(__file__).name}")


def written(root: Path) -> dict[Path, str]:
    """The pages with the tables of all records in their places, and the figures they show."""
    paths = [root / "REPRODUCIBILITY.md", *sorted(root.glob("docs/results/*.md"))]
    pages = {path: path.read_text(encoding="utf-8") for path in paths}
    page_of = places(pages)
    tables, figures = {}, {}
    for path in [*sorted(root.glob("results/*.jsonl")), *sorted(root.glob("results/earlier/*.jsonl"))]:
        name = path.relative_to(root / "results").with_suffix("").as_posix()
        records = read_ledger(path)
        if not records:
            sys.exit(f"{path} has no records; remove it, or record a comparison")
        table = comparison_table(rows_of(records, str(path)))
        tables[name] = table_text(records, table)
        figure = render_figure(table) if records[0]["command"].startswith("igcd compare") else None
        if figure is not None and name in page_of:
            target = root / "docs" / "images" / f"{name.replace('/', '-')}-old-new.svg"
            figures[target] = figure
            link = Path(os.path.relpath(target, page_of[name].parent)).as_posix()
            tables[name] += f"\n![Old against New at the last stage, a point per method]({link})\n"
    for path in sorted(root.glob("results/counts/*.jsonl")):
        estimates = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        tables[f"counts-{path.stem}"] = counts_text(estimates)
    if without_place := sorted(set(tables) - set(page_of)):
        name = without_place[0]
        lines = f"a line <!-- begin {name} --> and after it a line <!-- end {name} -->"
        sys.exit(f"no page has a place for the records {name}; add {lines}")
    by_stream = {name: read_ledger(root / "results" / f"{name}.jsonl") for name in STREAMS}
    if all(by_stream.values()):
        tables |= {"leads": leads_text(by_stream), "streams": streams_text(by_stream)}
    return {path: PLACE.sub(lambda place: _filled(place, tables), text) for path, text in pages.items()} | figures


def places(pages: Mapping[Path, str]) -> dict[str, Path]:
    """The page that has the place of each name; every name has one."""
    page_of: dict[str, Path] = {}
    for path, text in pages.items():
        names = [place["name"] for place in PLACE.finditer(text)]
        if len(names) != text.count("<!-- begin ") or len(names) != text.count("<!-- end "):
            sys.exit(f"{path} has a marker without its other half; a place begins and ends with the same name")
        for name in names:
            if name in page_of:
                sys.exit(f"{path} and {page_of[name]} both have a place for {name}, or one has two; keep one")
            page_of[name] = path
    return page_of


def _filled(place: re.Match[str], tables: Mapping[str, str]) -> str:
    name = place["name"]
    return f"<!-- begin {name} -->\n{tables.get(name, NOT_YET)}<!-- end {name} -->"


def leads_text(by_stream: Mapping[str, Records]) -> str:
    """By how much our best method leads on each stream, with a paired test over seeds, and what stands beside it."""
    leads, beside, seeds = [], [], []
    for name, title in STREAMS.items():
        m_d, m_f = (by_method(by_stream[name], key) for key in ("M_d", "M_f"))
        leads.append([title, *_lead_cells(m_d)])
        others = [mean_of(m_d.get(method, {}), len(m_d[OURS])) for method in (*SAME_CORE, UPPER_BOUND)]
        beside.append([title, *_forgetting_cells(m_f), *others])
        seeds.append(f"- {title}: {fewer_seeds(m_d)}.")
    heads = ["stream", f"M_d of `{OURS}`", "best other", "lead, seed by seed", "mean lead (95% interval)", "t", "p"]
    other_heads = ["stream", f"M_f of `{OURS}` (place)", "lowest M_f of others"]
    other_heads += [*(f"M_d of `{method}`" for method in SAME_CORE), "M_d, trained with all labels"]
    return "\n".join([pipe_table(heads, leads), "", pipe_table(other_heads, beside), "", *seeds, ""])


def _lead_cells(m_d: Mapping[str, Mapping[int, float]]) -> list[str]:
    ours, rival = m_d[OURS], best_rival(m_d)
    by_seed = [ours[seed] - m_d[rival][seed] for seed in sorted(ours)]
    low, high = confidence_interval(by_seed)
    test = paired_test(ours, m_d[rival])
    assert test is not None, "the rival has all seeds of ours"
    return [
        f"**{mean_of(ours)}**",
        f"{mean_of(m_d[rival])} (`{rival}`)",
        ", ".join(f"{lead:.1f}" for lead in by_seed),
        f"**{fmean(by_seed):.1f}** ({low:.1f} to {high:.1f})",
        NO_VALUE if test.t is None else f"{test.t:.1f}",
        NO_VALUE if test.p is None else "< 0.001" if test.p < 0.0005 else f"{test.p:.3f}",
    ]


def _forgetting_cells(m_f: Mapping[str, Mapping[int, float]]) -> list[str]:
    """M_f of ours and its place among all methods but the bound, and the lowest of the others."""
    means = {method: round(fmean(own.values()), 1) for method, own in m_f.items() if method != UPPER_BOUND}
    place = 1 + sum(mean < means[OURS] for mean in means.values())
    lowest = sorted((mean, method) for method, mean in means.items() if method != OURS)[:2]
    return [f"{means[OURS]:.1f} ({place} of {len(means)})", ", ".join(f"`{name}` {mean:.1f}" for mean, name in lowest)]


def streams_text(by_stream: Mapping[str, Records]) -> str:
    """Our best method on each stream: seed by seed, and what it opened at each stage."""
    rows, commits = [], set()
    for name, title in STREAMS.items():
        own = sorted((one for one in by_stream[name] if one["variant"] == OURS), key=itemgetter("seed"))
        later = [[stage for stage in one["stages"] if stage["stage"] > 0] for one in own]
        counts = [(stage["opened"], stage["count"]["new"]["true"]) for stages in later for stage in stages]
        near = sum(abs(found - true) <= 0.2 * true for found, true in counts)
        commits |= {str(one.get("commit")) for one in own}
        rows.append(
            [
                title,
                ", ".join(f"{one['M_d']:.1f}" for one in own) + f": **{fmean(one['M_d'] for one in own):.1f}**",
                f"{fmean(one['M_f'] for one in own):.1f}",
                *(f"{fmean(one['stages'][-1]['scores'][group] for one in own):.1f}" for group in ("Old", "New")),
                "; ".join(" ".join(str(stage["opened"]) for stage in stages) for stages in later),
                ", ".join(map(str, sorted({true for _, true in counts}))),
                f"{near} of {len(counts)}",
                f"{fmean(found - true for found, true in counts):+.1f}",
            ]
        )
    heads = ["stream", "M_d, seed by seed", "M_f", "last Old", "last New", "opened per stage, seed by seed", "new"]
    heads += ["stages within 20%", "mean error"]
    return "\n".join([pipe_table(heads, rows), "", f"Commit {', '.join(sorted(commits))}.", ""])


def by_method(records: Records, key: str) -> dict[str, dict[int, float]]:
    """A score of every method, seed by seed."""
    scores: dict[str, dict[int, float]] = {}
    for record in records:
        scores.setdefault(record["variant"], {})[record["seed"]] = record[key]
    return scores


def best_rival(scores: Mapping[str, Mapping[int, float]]) -> str:
    """The best of the other methods that have run with all seeds of ours, without the upper bound."""
    rivals = [
        method
        for method, own in scores.items()
        if method not in (OURS, *SAME_CORE, UPPER_BOUND) and set(own) >= set(scores[OURS])
    ]
    return max(rivals, key=lambda method: fmean(scores[method][seed] for seed in scores[OURS]))


def fewer_seeds(scores: Mapping[str, Mapping[int, float]]) -> str:
    """Which methods have fewer seeds than ours, and how near the nearest rival of them comes on the seeds they have."""
    ours = scores[OURS]
    few = {method: own for method, own in scores.items() if len(own) < len(ours)}
    if not few:
        return f"all {len(scores)} methods have {len(ours)} seeds"
    text = f"of {len(scores)} methods, fewer than {len(ours)} seeds have "
    text += ", ".join(f"`{method}` ({len(own)})" for method, own in few.items())
    leads = {
        method: fmean(ours[seed] - own[seed] for seed in set(ours) & set(own))
        for method, own in few.items()
        if method not in (*SAME_CORE, UPPER_BOUND) and set(ours) & set(own)
    }
    if not leads:
        return text
    nearest = min(leads, key=lambda method: leads[method])
    return f"{text}; nearest of these rivals is `{nearest}`, {leads[nearest]:.1f} behind on the seeds it has"


def confidence_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Where the mean lies by Student's distribution; not finite for fewer than two values."""
    if len(values) < 2:
        return -math.inf, math.inf
    half = float(stats.t.ppf((1 + level) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def mean_of(by_seed: Mapping[int, float], n_seeds: int = 0) -> str:
    """The mean over seeds; where there are fewer than `n_seeds`, with their number."""
    if not by_seed:
        return NO_VALUE
    note = f" ({len(by_seed)} seed{'s' if len(by_seed) > 1 else ''})" if len(by_seed) < n_seeds else ""
    return f"{fmean(by_seed.values()):.1f}{note}"


def rows_of(records: list[dict[str, Any]], source: str) -> list[RowRecords]:
    """The records of each row, seed by seed; rows in the order in which they first appear."""
    wanted = len({record["seed"] for record in records})
    rows = []
    for name in dict.fromkeys(record["variant"] for record in records):
        own = [record for record in records if record["variant"] == name]
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
