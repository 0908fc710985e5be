"""`igcd compare` and `igcd ablate`: many runs beside each other, and their table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from igcd.comparison.plan import Comparison, Variant

RecipeName = Annotated[str, typer.Argument(help="A name of `igcd ls recipes`, or a .yaml file.", show_default=False)]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="key=value for every run, like training.first_stage.epochs=3.")
]
Seeds = Annotated[str, typer.Option(help="Random seeds, each row is run with all: 0,1,2 or 0-2.")]
Out = Annotated[Path, typer.Option(help="Folder of the comparison.", show_default=False)]
Jobs = Annotated[int, typer.Option(help="Runs at a time; the cores are shared among them.")]
Record = Annotated[
    Path | None, typer.Option(help="Also keep a line of JSON per complete run in this file.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print the table as JSON.")]


def add_comparison_commands(app: typer.Typer) -> None:
    """Adds the two verbs."""
    app.command()(compare)
    app.command()(ablate)


def compare(
    recipe: RecipeName,
    overrides: Overrides = None,
    methods: Annotated[
        str, typer.Option(help="Names of `igcd ls methods`, like simgcd,gm,snn_density, or all.", show_default=False)
    ] = "all",
    number: Annotated[
        str | None,
        typer.Option(
            help="Novel categories of a stage: given to all methods, estimated by each in its own way, or both, each "
            "in a folder and a --record file of its own. Unset: as the recipe says.",
            metavar="given|estimated|both",
            show_default=False,
        ),
    ] = None,
    seeds: Seeds = "0,1,2",
    out: Out = Path("runs/comparison"),
    jobs: Jobs = 1,
    record: Record = None,
    as_json: Json = False,
) -> None:
    """Run a recipe with several methods and seeds, and write their table.

    Complete runs in the folder are not repeated; stopped ones continue.
    Writes table.md, table.csv, table.tex, the figure old_new.svg and the page index.html.
    """
    from igcd.comparison.plan import method_variants
    from igcd.config import read_recipe
    from igcd.errors import IgcdError
    from igcd.method_registry import METHODS

    if number not in (None, "given", "estimated", "both"):
        raise IgcdError(f"--number must be given, estimated or both, got {number!r}; choose one of them")
    if number == "both" and as_json:
        raise IgcdError("--json prints one table, --number both makes two; take given or estimated")
    names = list(METHODS) if methods == "all" else [name.strip() for name in methods.split(",") if name.strip()]
    variants = method_variants(names, read_recipe(recipe, overrides or []).paper)
    arguments = ["compare", "--methods", ",".join(names), "--seeds", seeds]
    failures = []
    for one in ("given", "estimated") if number == "both" else (number,):
        changes = [*(overrides or []), *([] if one is None else [f"n_novel={one}"])]
        folder, file = out, record
        if number == "both":
            folder, file = out / str(one), record and record.with_stem(f"{record.stem}-{one}")
        try:
            _compare(recipe, changes, variants, seeds, folder, jobs, file, as_json, "Method", arguments)
        except IgcdError as error:  # the other table is made all the same
            failures.append(error)
    if failures:
        raise failures[0]


def ablate(
    recipe: RecipeName,
    overrides: Overrides = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            help="key=v1,v2,…: a row per value. Several options are varied one after another.", metavar="KEY=V"
        ),
    ] = None,
    variants: Annotated[
        str | None, typer.Option(help="A file of named variants, or one of ours: table-6, parts …", metavar="NAME")
    ] = None,
    seeds: Seeds = "0,1,2",
    out: Out = Path("runs/ablation"),
    jobs: Jobs = 1,
    record: Record = None,
    as_json: Json = False,
) -> None:
    """Run a recipe with several values of an option, or with named variants, and write their table.

    Each --over varies one option and leaves the others as the recipe has them; rows that come to the same are run once.
    """
    from igcd.comparison.plan import option_variants, read_variants, stream_name
    from igcd.config import read_recipe
    from igcd.errors import IgcdError

    if not over and variants is None:
        raise IgcdError("there is nothing to vary; give --over key=v1,v2,… or --variants NAME")
    rows = [row for text in over or [] for row in option_variants(text)]
    if variants is not None:
        rows += read_variants(variants, stream_name(read_recipe(recipe, overrides or [])))
    arguments = ["ablate"]
    for text in over or []:
        arguments += ["--over", text]
    arguments += ["--variants", variants] if variants is not None else []
    arguments += ["--seeds", seeds]
    _compare(recipe, overrides or [], rows, seeds, out, jobs, record, as_json, "Variant", arguments)


def _compare(
    recipe: str,
    overrides: list[str],
    variants: "list[Variant]",
    seeds: str,
    out: Path,
    jobs: int,
    record: Path | None,
    as_json: bool,
    what: str,
    arguments: list[str],
) -> None:
    import signal

    from igcd.cli.comparison_progress import ComparisonProgress
    from igcd.comparison.folder import at_work, claim
    from igcd.comparison.ledger import commit_of_code, comparison_command, record_cells
    from igcd.comparison.plan import parse_seeds, plan
    from igcd.comparison.processes import Outcome, run_cells
    from igcd.errors import IgcdError

    comparison = plan(recipe, overrides, variants, parse_seeds(seeds), out)
    command = comparison_command(recipe, overrides, arguments, out)
    outcomes: list[Outcome] = []
    with at_work(out) as lock:
        claim(out, comparison)
        cells = comparison.distinct_cells
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)  # children are stopped as by Ctrl-C
        try:
            with ComparisonProgress(cells, jobs) as progress:
                watch = progress.watch(outcomes)
                run_cells(recipe, cells, n_jobs=jobs, lock=lock, commit=commit_of_code(), watch=watch)
        finally:
            signal.signal(signal.SIGTERM, previous)
            failures = {one.cell.folder: one.failure for one in outcomes if one.failure is not None}
            _show(comparison, failures, out, command, what, as_json)
            if record is not None:
                n_recorded = record_cells(record, comparison, command)
                typer.echo(f"{n_recorded} runs in {record}", err=True)
    if failures:
        raise IgcdError(
            f"{len(failures)} of {len(cells)} runs failed, their errors are above; the others are in the table. "
            "Repeat the command to try them again"
        )


def _show(
    comparison: "Comparison", failures: dict[Path, str], out: Path, command: str, what: str, as_json: bool
) -> None:
    """Writes the table of what is complete, also when the comparison was stopped, and prints it."""
    from json import dumps

    from igcd.comparison.collection import comparison_page
    from igcd.report.comparison import comparison_json, write_comparison

    page = comparison_page(comparison, failures, out, command=command, what=what)
    if page is None:
        if as_json:
            print(dumps({"rows": [], "failures": sorted(failures.values())}))
        return
    path = write_comparison(page, out)
    if as_json:
        print(dumps(comparison_json(page), indent=2, allow_nan=False))
        return
    from igcd.cli.comparison_progress import summary_table
    from igcd.cli.console import console as make_console

    console = make_console()
    console.print(summary_table(page.table, what))
    console.print(f"tables in {out}, page in {path}", markup=False, soft_wrap=True)
