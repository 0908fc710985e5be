"""The command line: one function per verb. Imports that take time stay inside the verbs, so that help is instant."""

import io
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from igcd import __version__
from igcd.cli.build_commands import Json, add_build_commands
from igcd.cli.compare import add_comparison_commands
from igcd.cli.count import count
from igcd.cli.embed import embed
from igcd.cli.review import review
from igcd.cli.score import score
from igcd.cli.workspace import add_workspace_commands, predict_with_workspace
from igcd.data.sources import SOURCES
from igcd.errors import MAX_SENTENCE, IgcdError, excerpt
from igcd.records import DISK_FAILS, DISK_FULL

app = typer.Typer(
    name="igcd",
    help="Discover new categories in a growing stream of images.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
MAX_ARGUMENT = 8192
"""Characters of an argument on the command line; a path has at most 4,096."""
LEARNING_PACKAGES = ("torch", "timm", "lightning_fabric", "safetensors", "filelock")

build_app = typer.Typer(no_args_is_help=True, help="Write the split file of a stream: which images are in which stage.")
app.add_typer(build_app, name="build")


def main() -> None:
    """Runs the command line: an error is one sentence on standard error and a non-zero exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a dash shows a question mark
    try:
        _refuse_endless(sys.argv[1:])
        app()
    except IgcdError as error:
        fail(str(error), details=error.details)
    except ModuleNotFoundError as error:
        if error.name not in LEARNING_PACKAGES:
            raise
        fail(f"this needs {error.name}, which comes with the extra `learn`; in the checkout, pip install '.[learn]'")
    except KeyboardInterrupt:
        fail("interrupted", code=130)
    except BrokenPipeError:  # the reader of our output, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.errno in DISK_FULL:
            fail("the disk is full; free some space, or write elsewhere with --out")
        if error.filename is None and error.errno in DISK_FAILS:  # reading and writing know no name
            fail(f"a disk fails while a file is read or written ({error.strerror}); check it, and try again")
        if error.filename is None:
            raise
        fail(f"{error.filename} cannot be used ({error.strerror}); check that it exists and that you may")


def _refuse_endless(arguments: Iterable[str]) -> None:
    """Raises on an argument that no path is as long as; the library that reads arguments would repeat all of it."""
    for argument in arguments:
        if len(argument) > MAX_ARGUMENT:
            raise IgcdError(
                f"an argument has at most {MAX_ARGUMENT:,} characters, got {len(argument):,}: "
                f"{excerpt(repr(argument), limit=60)}; give a shorter one"
            )


def fail(sentence: str, *, details: Iterable[str] = (), code: int = 1) -> None:
    """Prints the sentence, and the details below it, and ends the program."""
    print(f"igcd: {excerpt(sentence, limit=MAX_SENTENCE)}", file=sys.stderr)
    for line in details:
        print(f"  {line}", file=sys.stderr)
    sys.exit(code)


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """A table on standard output; numbers are set right."""
    from rich.table import Table

    from igcd.cli.console import console

    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    console().print(table)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"igcd {__version__}")
        raise typer.Exit


@app.callback()
def igcd(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Discover new categories in a growing stream of images."""


@app.command()
def ls(
    what: Annotated[
        str | None, typer.Argument(help="data, streams, methods, backbones or recipes; all when left out.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the data, streams, methods, backbones and recipes there are."""
    from igcd.config import BACKBONES, recipe_headline, recipe_names
    from igcd.method_registry import METHODS
    from igcd.streams.protocols import PROTOCOLS

    lists: dict[str, dict[str, str]] = {
        "data": {source.name: source.description for source in SOURCES.values()},
        "streams": {str(name): meaning for name, meaning in PROTOCOLS.items()},
        "methods": {name: entry.summary for name, entry in METHODS.items()},
        "backbones": BACKBONES,
        "recipes": {name: recipe_headline(name) for name in recipe_names()},
    }
    if what is not None and what not in lists:
        raise IgcdError(f"there is no list of {what!r}; ask for one of {', '.join(lists)}")
    chosen = lists if what is None else {what: lists[what]}
    if as_json:
        print(json.dumps(chosen, indent=2))
        return
    for title, entries in chosen.items():
        print_table(title, ["name", "what it is"], entries.items())


app.command()(score)
app.command()(count)
app.command()(embed)


@app.command()
def run(
    recipe: Annotated[str, typer.Argument(help="A name of `igcd ls recipes`, or a .yaml file.", show_default=False)],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="key=value, like method.features=dual.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the run.", show_default=False)] = Path("runs/last"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write curves for TensorBoard.")] = False,
    as_json: Json = False,
) -> None:
    """Run a recipe: learn, discover, predict and score, stage after stage."""
    from igcd.cli.run import run_recipe

    run_recipe(recipe, overrides or [], out, resume=resume, as_json=as_json, tensorboard=tensorboard)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run.")] = Path("runs/demo"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue a demo that was stopped.")] = False,
) -> None:
    """Run everything once on the built-in field guide, and write a report to open."""
    from igcd.cli.run import run_recipe

    run_recipe("demo", [], out, resume=resume, as_json=False)


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="Folder of a run or a workspace.", show_default=False)]) -> None:
    """Write one page to explore a finished run or a workspace: pictures, a map, categories, errors, scores."""
    from igcd.cli.report import report as write_page

    write_page(folder)


@app.command()
def predict(
    folder: Annotated[Path, typer.Argument(help="Folder of a run or a workspace.", show_default=False)],
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Name the category of images with the model of a run or a workspace, and say whether it is novel."""
    from igcd.workspace.catalog import holds_workspace

    if holds_workspace(folder):
        predict_with_workspace(folder, images, as_json=as_json)
        return
    from igcd.cli.predict import predict as predict_images

    predict_images(folder, images, as_json=as_json)


add_comparison_commands(app)
add_workspace_commands(app)
app.command(rich_help_panel="Your own photos")(review)
add_build_commands(build_app)
