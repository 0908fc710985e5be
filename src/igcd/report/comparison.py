"""The page and the tables of a comparison, from the records of its runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from igcd import __version__
from igcd.records import write_bytes
from igcd.report.comparison_pictures import ComparedPictures
from igcd.report.comparison_table import ComparisonTable, Row
from igcd.report.comparison_text import FOUND_NOTE, as_csv, as_latex, as_markdown, kept, pairs_note, pipe_table
from igcd.report.later_work_text import later_work_note, later_work_table
from igcd.report.scatter import old_against_new
from igcd.report.spread import PairedTest, Spread
from igcd.report.templating import make_environment, read_script, script_json


@dataclass(frozen=True)
class RunLink:
    """A run of the comparison: its M_d (All of the last stage where there is none), its page, or why it failed."""

    is_complete: bool
    discovery: float | None = None
    report: str | None = None
    failure: str | None = None


@dataclass(frozen=True)
class ComparisonPage:
    """What a comparison has beside its table."""

    title: str
    command: str
    table: ComparisonTable
    seeds: tuple[int, ...]
    runs: Mapping[tuple[str, int], RunLink]
    what: str = "Method"
    """What the rows are."""
    curves: Mapping[str, Mapping[str, Mapping[int, float]]] = field(default_factory=dict)
    """Mean accuracy by row, group and stage."""
    pictures: ComparedPictures | None = None
    pictures_fault: str | None = None
    """Why they are missing although they should be there."""


def write_comparison(page: ComparisonPage, folder: Path) -> Path:
    """Writes the tables, the figure and index.html, each whole or not at all; the path of the page."""
    texts = {
        "table.md": as_markdown(page.table, page.title, page.command, _more(page.table)),
        "table.csv": as_csv(page.table),
        "table.tex": as_latex(page.table, page.title),
        "index.html": render(page),
    }
    if (figure := render_figure(page.table)) is not None:
        texts["old_new.svg"] = figure
    for name, text in texts.items():
        write_bytes(folder / name, text.encode())
    return folder / "index.html"


def _more(table: ComparisonTable) -> list[str]:
    """Further parts of the Markdown file."""
    shown = later_work_table(table)
    return [] if shown is None else ["## As later work scores", later_work_note(table), pipe_table(*shown)]


def render_figure(table: ComparisonTable) -> str | None:
    """Old against New as an SVG file of its own; None where no row has both."""
    scatter = old_against_new(table)
    return None if scatter is None else make_environment().get_template("scatter_file.svg.j2").render(scatter=scatter)


def render(page: ComparisonPage) -> str:
    """The page of a comparison."""
    table = page.table
    overall = table.overall or list(table.columns[:1])
    groups = list(dict.fromkeys(group for own in page.curves.values() for group in own))
    template = make_environment().get_template("comparison.html.j2")
    return template.render(
        title=page.title,
        what=page.what,
        table=table,
        headline=headline(table),
        starts={columns[0].key for _, columns in table.stages} | {column.key for column in table.overall[:1]},
        has_paper=any(row.paper_figures for row in table.rows),
        has_bound=any(row.is_upper_bound for row in table.rows),
        has_found=bool(table.true_new) and any(row.opened for row in table.rows),
        has_lite0="ImageNet labels" in table.encoder,
        scatter=old_against_new(table),
        pairs_note=pairs_note(table),
        found_note=FOUND_NOTE,
        later_work=later_work_table(table),
        later_work_note=later_work_note(table),
        kept=kept,
        matrices=[(column, both_ways(table.pairs[column.key])) for column in overall if table.pairs[column.key]],
        names=[row.name for row in table.rows],
        slowest=max((row.seconds.mean for row in table.rows if row.seconds), default=1.0) or 1.0,
        seeds=page.seeds,
        runs=page.runs,
        n_cells=len(page.runs),
        n_done=sum(run.is_complete for run in page.runs.values()),
        failures=[(f"{name}, seed {seed}", run.failure) for (name, seed), run in page.runs.items() if run.failure],
        command=page.command,
        version=__version__,
        exploration=None,
        script=read_script(["tables.js", "tiles.js", "compare.js"]),
        pictures=page.pictures,
        pictures_fault=page.pictures_fault,
        groups=groups,
        data=script_json(
            {
                "rows": [{"name": row.name, "is_bound": row.is_upper_bound} for row in table.rows],
                "curves": [page.curves.get(row.name, {}) for row in table.rows],
                "pictures": page.pictures.to_json() if page.pictures else None,
            }
        ),
    )


def headline(table: ComparisonTable) -> str:
    """Who leads in M_d and who forgets least, in a sentence each."""
    sentences = []
    for key, words in (("M_d", "recognizes most in the end"), ("M_f", "forgets least")):
        ranked = {place: [row for row in table.rows if row.ranks.get(key) == place] for place in (1, 2)}
        if ranked[1]:
            first = " and ".join(_with_score(row, key) for row in ranked[1])
            second = ", followed by " + " and ".join(_with_score(row, key) for row in ranked[2]) if ranked[2] else ""
            sentences.append(f"{first} {words}{second}")
    return ". ".join(sentences) + "." if sentences else "Scores of one row, over its seeds."


def both_ways(pairs: Mapping[tuple[str, str], PairedTest]) -> dict[tuple[str, str], PairedTest]:
    """Every pair and its mirror image, for a square of rows and columns."""
    mirrored = {
        (second, first): replace(test, difference=-test.difference, t=None if test.t is None else -test.t)
        for (first, second), test in pairs.items()
    }
    return dict(pairs) | mirrored


def comparison_json(page: ComparisonPage) -> dict[str, Any]:
    """The table for machines."""
    table = page.table
    return {
        "title": page.title,
        "stream": table.stream,
        "encoder": table.encoder,
        "command": page.command,
        "columns": [column.key for column in table.columns],
        "rows": [
            {
                "variant": row.name,
                "method": row.method,
                "seeds": list(row.seeds),
                "seeds_wanted": row.n_wanted,
                "scores": {
                    key: _spread_json(value) | {"rank": row.ranks.get(key), "paper": row.paper_figures.get(key)}
                    for key, value in row.scores.items()
                },
                "opened": {str(stage): _spread_json(value) for stage, value in row.opened.items()},
                "won": {str(stage): _spread_json(value) for stage, value in row.won.items()},
                "later_work": {
                    whose: {name: _spread_json(value) for name, value in scores.items()}
                    for whose, scores in row.later_work.items()
                },
                "kept_images": None if row.kept_images is None else _spread_json(row.kept_images),
                "kept_bytes": None if row.kept_bytes is None else _spread_json(row.kept_bytes),
                "seconds": None if row.seconds is None else _spread_json(row.seconds),
                "peak_memory_bytes": None if row.peak_memory is None else int(row.peak_memory),
            }
            for row in table.rows
        ],
        "pairs": [
            {
                "score": key,
                "first": first,
                "second": second,
                "difference": test.difference,
                "t": test.t,
                "p": test.p,
                "seeds": test.n,
            }
            for key, tests in table.pairs.items()
            for (first, second), test in tests.items()
        ],
        "failures": [
            {"variant": name, "seed": seed, "failure": run.failure}
            for (name, seed), run in page.runs.items()
            if run.failure
        ],
    }


def _spread_json(value: Spread) -> dict[str, Any]:
    return {"mean": value.mean, "deviation": value.deviation, "n": value.n}


def _with_score(row: Row, key: str) -> str:
    return f"{row.name} ({row.scores[key].mean:.1f})"
