"""From the folders of the cells to what the report shows."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from igcd.comparison.folder import is_complete
from igcd.comparison.plan import Cell, Comparison, Variant
from igcd.errors import IgcdError
from igcd.records import read_json
from igcd.report.comparison import ComparisonPage, RunLink
from igcd.report.comparison_pictures import ComparedPictures, compare_pictures
from igcd.report.comparison_table import RowRecords, comparison_table, curves, parse_results
from igcd.report.run_records import Results


def comparison_page(
    comparison: Comparison, failures: Mapping[Path, str], out: Path, *, command: str, what: str
) -> ComparisonPage | None:
    """The page of what is complete by now; None while nothing is."""
    results: dict[tuple[str, int], Results] = {}
    for cell in comparison.cells:
        if is_complete(cell):
            path = cell.folder / "results.json"
            results[cell.variant.name, cell.seed] = parse_results(read_json(path), str(path))
    if not results:
        return None
    rows = [_row(variant, comparison, results) for variant in comparison.variants]
    runs = {
        (cell.variant.name, cell.seed): _link(cell, results.get((cell.variant.name, cell.seed)), failures, out)
        for cell in comparison.cells
    }
    pictures, fault = None, None
    try:
        pictures = _pictures(comparison, results)
    except IgcdError as error:  # a table is not lost for a damaged picture
        fault = str(error)
    return ComparisonPage(
        curves=curves(rows),
        pictures=pictures,
        pictures_fault=fault,
        title=Path(comparison.recipe).stem,
        command=command,
        table=comparison_table(rows),
        seeds=comparison.seeds,
        runs=runs,
        what=what,
    )


def _pictures(comparison: Comparison, results: Mapping[tuple[str, int], Results]) -> ComparedPictures | None:
    """Of the first seed that most rows are complete with."""
    n_rows = {seed: sum(other == seed for _, other in results) for seed in comparison.seeds}
    seed = max(comparison.seeds, key=lambda one: n_rows[one])
    folders = {
        cell.variant.name: cell.folder
        for cell in comparison.cells
        if cell.seed == seed and (cell.variant.name, seed) in results
    }
    return compare_pictures(folders, seed=seed)


def _row(variant: Variant, comparison: Comparison, results: Mapping[tuple[str, int], Results]) -> RowRecords:
    method = next(cell.recipe.method.name for cell in comparison.cells if cell.variant is variant)
    return RowRecords(
        name=variant.name,
        results={seed: one for (name, seed), one in results.items() if name == variant.name},
        n_wanted=len(comparison.seeds),
        paper=variant.paper,
        paper_row=variant.paper_row,
        method=method,
    )


def _link(cell: Cell, results: Results | None, failures: Mapping[Path, str], out: Path) -> RunLink:
    if results is None:
        return RunLink(is_complete=False, failure=failures.get(cell.folder))
    page = cell.folder / "report.html"
    report = quote(page.relative_to(out).as_posix()) if page.is_file() else None
    last = results.stages[-1].scores.get("All")
    return RunLink(is_complete=True, discovery=last if results.M_d is None else results.M_d, report=report)
