"""The table of a comparison as Markdown, CSV and LaTeX."""

import csv
import io
from collections.abc import Callable, Sequence

from igcd.report.comparison_table import Column, ComparisonTable, Row
from igcd.report.spread import FEW_SEEDS, MIN_SEEDS_FOR_TEST, PairedTest, Spread
from igcd.report.templating import duration, file_size

NO_VALUE = "–"
FOUND_NOTE = (
    "New categories that a new cluster wins on the scored images: it is matched with the category and has more of its "
    "images than any other cluster. In brackets the clusters that were opened for them."
)


def spread_text(value: Spread | None) -> str:
    """Mean ± standard deviation; the mean alone of one seed.

    >>> spread_text(Spread(31.25, 0.449, 3)), spread_text(Spread(31.2, None, 1)), spread_text(None)
    ('31.2 ± 0.4', '31.2', '–')
    """
    if value is None:
        return NO_VALUE
    return f"{value.mean:.1f}" if value.deviation is None else f"{value.mean:.1f} ± {value.deviation:.1f}"


def as_markdown(table: ComparisonTable, title: str, command: str, more: Sequence[str] = ()) -> str:
    """The scores, the new categories found, further parts, time and memory, and the paired tests."""
    score_heads = [f"{_head(column)} {column.arrow}" for column in table.columns]
    score_rows = []
    for row in table.rows:
        score_rows.append([row.name, row.seeds_note, *(_marked(row, column, _MARKDOWN) for column in table.columns)])
        if row.paper_figures:
            paper = [_paper(row, column) for column in table.columns]
            score_rows.append([f"↳ paper, table {row.paper.table if row.paper else ''}", "", *paper])
    parts = [
        f"# {title}",
        f"`{command}`",
        f"Stream {table.stream}. Encoder: {table.encoder}. Percent; mean ± standard deviation over seeds; **best**, "
        f"<u>second</u>{_bound_note(table)}.{_paper_note(table)}",
        pipe_table(["method", "seeds", *score_heads], score_rows),
    ]
    if table.true_new and any(row.opened for row in table.rows):
        parts += ["## New categories found", FOUND_NOTE, pipe_table(*_found(table))]
    parts += [
        *more,
        "## Time and memory",
        "Learning and predicting, all stages, mean over seeds; the first run of a seed also fills the trunk cache. "
        "Memory: the largest peak of a process. Kept: of the past, after the last stage; bytes of images, features and "
        "statistics.",
        pipe_table(
            ["method", "time", "peak memory", "images kept", "bytes kept"],
            [[row.name, *cost(row), *kept(row)] for row in table.rows],
        ),
        "## Paired tests over seeds",
        pairs_note(table),
    ]
    for column in table.overall or table.columns[:1]:
        if table.pairs[column.key]:
            rows = [
                [first, second, f"{test.difference:+.1f}", *significance(test)]
                for (first, second), test in table.pairs[column.key].items()
            ]
            parts += [
                f"{_head(column)}, first minus second:",
                pipe_table(["first", "second", "difference", "t", "p", "seeds"], rows),
            ]
    return "\n\n".join(parts) + "\n"


def as_csv(table: ComparisonTable) -> str:
    """A line per row and score, with nothing rounded."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["variant", "method", "score", "better", "mean", "deviation", "seeds", "rank", "paper"])
    for row in table.rows:
        seeds = " ".join(map(str, row.seeds))
        for column in table.columns:
            value = row.scores.get(column.key)
            direction = "lower" if column.lower_is_better else "higher"
            figures = ["", ""] if value is None else [value.mean, _or_empty(value.deviation)]
            place, paper = row.ranks.get(column.key, ""), _or_empty(row.paper_figures.get(column.key))
            writer.writerow([row.name, row.method, column.key, direction, *figures, seeds, place, paper])
        if row.seconds is not None:
            figures = [row.seconds.mean, _or_empty(row.seconds.deviation)]
            writer.writerow([row.name, row.method, "seconds", "lower", *figures, seeds, "", ""])
            writer.writerow([row.name, row.method, "peak_memory_bytes", "lower", row.peak_memory, "", seeds, "", ""])
        for name, count in _counts(row).items():
            writer.writerow([row.name, row.method, name, "", count.mean, _or_empty(count.deviation), seeds, "", ""])
    return file.getvalue()


def as_latex(table: ComparisonTable, title: str) -> str:
    """A table for a paper; needs the packages booktabs, graphicx and xcolor."""
    groups = [(f"Stage-{stage}", len(columns)) for stage, columns in table.stages]
    groups += [("Overall", len(table.overall))] if table.overall else []
    arrows = {"↑": r"$\uparrow$", "↓": r"$\downarrow$"}
    heads = [f"{_latex_head(column)} {arrows[column.arrow]}" for column in table.columns]
    lines = [
        r"\begin{table*}[t]",
        r"\centering",
        rf"\caption{{{escape_latex(title)} ({escape_latex(table.stream)}). Percent, mean $\pm$ standard deviation over "
        rf"seeds. Encoder: {escape_latex(table.encoder)}. Gray: the paper's figures.}}",
        r"\resizebox{\linewidth}{!}{%",
        rf"\begin{{tabular}}{{l{'|'.join('c' * n for _, n in groups)}}}",
        r"\toprule",
        " & ".join(["", *(rf"\multicolumn{{{n}}}{{c}}{{{name}}}" for name, n in groups)]) + r" \\",
        " & ".join(["Method", *heads]) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        name = escape_latex(row.name) + (f" ({row.seeds_note} seeds)" if len(row.seeds) != row.n_wanted else "")
        lines.append(" & ".join([name, *(_marked(row, column, _LATEX) for column in table.columns)]) + r" \\")
        if row.paper_figures:
            paper = [_paper(row, column).replace(NO_VALUE, "--") for column in table.columns]
            label = f"\\quad paper, table {row.paper.table if row.paper else ''}"
            lines.append(" & ".join(rf"\textcolor{{gray}}{{{cell}}}" for cell in [label, *paper]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def pipe_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def pairs_note(table: ComparisonTable) -> str:
    """What to keep in mind about the tests."""
    n = max((len(row.seeds) for row in table.rows), default=0)
    note = (
        "Student's t-test on the differences between runs of the same seed, two-sided, not corrected for the number of "
        f"pairs. A dash: fewer than {MIN_SEEDS_FOR_TEST} seeds in common, or the same difference for all of them."
    )
    if n >= FEW_SEEDS:
        return note
    if n < MIN_SEEDS_FOR_TEST:
        return f"{note} With {n} {'seed' if n == 1 else 'seeds'} there is no test."
    return f"{note} With {n} seeds such a test finds only large and steady differences."


def significance(test: PairedTest) -> list[str]:
    """t, p and the number of seeds, as tables print them."""
    return [
        NO_VALUE if test.t is None else f"{test.t:.2f}",
        NO_VALUE if test.p is None else "<0.001" if test.p < 0.001 else f"{test.p:.3f}",
        str(test.n),
    ]


def cost(row: Row) -> list[str]:
    """Time and memory of a row, for people."""
    memory = NO_VALUE if row.peak_memory is None else file_size(int(row.peak_memory))
    return [NO_VALUE if row.seconds is None else duration(row.seconds.mean), memory]


def kept(row: Row) -> list[str]:
    """Images and bytes of the past, for people."""
    images = NO_VALUE if row.kept_images is None else f"{row.kept_images.mean:,.0f}"
    return [images, NO_VALUE if row.kept_bytes is None else file_size(int(row.kept_bytes.mean))]


def found_text(row: Row, stage: int) -> str:
    """New categories that a cluster wins, and how many clusters were opened for them."""
    return f"{spread_text(row.won.get(stage))} ({spread_text(row.opened.get(stage))})"


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> escape_latex("method.K_d=5 & 10%")
    'method.K\\_d=5 \\& 10\\%'
    """
    for character in r"\&%$#_{}":
        text = text.replace(character, r"\textbackslash " if character == "\\" else f"\\{character}")
    return text


Marks = dict[int | None, Callable[[str], str]]
_MARKDOWN: Marks = {1: lambda text: f"**{text}**", 2: lambda text: f"<u>{text}</u>", None: lambda text: text}
_LATEX: Marks = {
    1: lambda text: rf"\textbf{{{text}}}",
    2: lambda text: rf"\underline{{{text}}}",
    None: lambda text: text,
}


def _marked(row: Row, column: Column, marks: Marks) -> str:
    text = spread_text(row.scores.get(column.key))
    if marks is _LATEX:
        text = text.replace(" ± ", r"{\scriptsize$\pm$") + ("}" if " ± " in text else "")
        text = text.replace(NO_VALUE, "--")
    return marks[row.ranks.get(column.key)](text)


def _paper(row: Row, column: Column) -> str:
    figure = row.paper_figures.get(column.key)
    return NO_VALUE if figure is None else f"{figure:.1f}"


def _found(table: ComparisonTable) -> tuple[list[str], list[list[str]]]:
    stages = list(table.true_new)
    heads = ["method", *(f"stage {stage} (of {table.true_new[stage]:,})" for stage in stages)]
    rows = []
    for row in table.rows:
        rows.append([row.name, *(found_text(row, stage) for stage in stages)])
        if row.paper_found is not None:
            counts = dict(zip(stages, zip(row.paper_found.found, row.paper_found.true, strict=True), strict=False))
            cells = [
                f"{counts[stage][0]:,} of {counts[stage][1]:,}" if stage in counts else NO_VALUE for stage in stages
            ]
            rows.append([f"↳ paper, table {row.paper_found.table}", *cells])
    return heads, rows


def _counts(row: Row) -> dict[str, Spread]:
    """Counts, which are not scores, by their names in the CSV file."""
    counts = {f"S{stage}.won": value for stage, value in row.won.items()}
    counts |= {f"S{stage}.opened": value for stage, value in row.opened.items()}
    counts |= {f"{whose} {name}": value for whose, scores in row.later_work.items() for name, value in scores.items()}
    held = {"kept_images": row.kept_images, "kept_bytes": row.kept_bytes}
    return counts | {name: value for name, value in held.items() if value is not None}


def _head(column: Column) -> str:
    return column.group if column.stage is None else f"stage {column.stage} {column.group}"


def _latex_head(column: Column) -> str:
    return f"$M_{column.group[-1]}$" if column.stage is None else column.group


def _bound_note(table: ComparisonTable) -> str:
    return "; `supervised` is an upper bound and takes no part" if any(r.is_upper_bound for r in table.rows) else ""


def _paper_note(table: ComparisonTable) -> str:
    if not table.paper_tables:
        return ""
    return (
        f" The paper's figures, of table {' and '.join(table.paper_tables)}, are of another encoder and of full-size "
        "runs: compare the order, not the level."
    )


def _or_empty(value: float | None) -> float | str:
    return "" if value is None else value
