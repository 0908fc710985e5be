"""The verbs of a workspace: init, add, discover, accept, status, export, undo, restore, and predict for its folder."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from igcd.cli.author import author_name
from igcd.cli.seeing import Middle, Pooling, chosen_look
from igcd.errors import IgcdError, excerpt

if TYPE_CHECKING:
    from igcd.encoders.trunk_cache import Progress
    from igcd.workspace.labels import LabelConflict

MAX_LINE = 1000
"""Characters of a line of text; a path has at most some hundred."""

Workspace = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the workspace.", show_default=False)]
Author = Annotated[
    str | None, typer.Option("--author", help="Who decides; your login name when unset.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Labels = Annotated[
    Path | None,
    typer.Option(help="CSV file with the columns path and category, or COCO or Label Studio JSON.", show_default=False),
]
FromFolders = Annotated[bool, typer.Option("--labels-from-folders", help="The folders photos lie in are their labels.")]


def add_workspace_commands(app: typer.Typer) -> None:
    """Adds the verbs of the person's loop."""
    app.command("init", rich_help_panel="Your own photos")(init)
    app.command("add", rich_help_panel="Your own photos")(add)
    app.command("discover", rich_help_panel="Your own photos")(discover)
    app.command("accept", rich_help_panel="Your own photos")(accept)
    app.command("status", rich_help_panel="Your own photos")(status)
    app.command("export", rich_help_panel="Your own photos")(export)
    app.command("undo", rich_help_panel="Your own photos")(undo)
    app.command("restore", rich_help_panel="Your own photos")(restore)


def init(
    folder: Workspace,
    images: Annotated[Path, typer.Option(help="Folder of photos; they are neither moved nor changed.")],
    labels: Labels = None,
    labels_from_folders: FromFolders = False,
    on_conflict: Annotated[
        str,
        typer.Option(help="Equal photos with different labels: refuse, skip (no label), first (by path) or ask."),
    ] = "refuse",
    backbone: Annotated[str | None, typer.Option(help="A name of `igcd ls backbones`.", show_default=False)] = None,
    weights: Annotated[str | None, typer.Option(help="pip, hub, random, or a checkpoint.", show_default=False)] = None,
    size: Annotated[
        int | None, typer.Option(help="Size in pixels at which photos are seen; 224 when unset, 260 of Lite2.", min=8)
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Look at photos once, at 112 px: faster, and finds less.")
    ] = False,
    pool: Pooling = None,
    middle: Middle = None,
) -> None:
    """Make a workspace of a folder of photos, some of them labeled."""
    from igcd.workspace.defaults import FAST_SIZE
    from igcd.workspace.init import init_workspace
    from igcd.workspace.labels import first_label, no_label

    choices = {"refuse": None, "skip": no_label, "first": first_label, "ask": _ask_for_label}
    if on_conflict not in choices:
        raise IgcdError(f"--on-conflict must be one of {', '.join(choices)}, got {on_conflict!r}; choose one of them")
    if fast and size is not None:
        raise IgcdError(f"--fast means --size {FAST_SIZE}, got --size {size} as well; give one of the two")
    look = {"size": FAST_SIZE, "middle": False} if fast else {"size": size}
    given = {"backbone": backbone, "weights": weights, **look, **chosen_look(pool, middle)}
    encoder = {key: value for key, value in given.items() if value is not None}
    with progress_bar("reading") as progress:
        report = init_workspace(
            folder,
            images,
            labels=labels,
            from_folders=labels_from_folders,
            on_conflict=choices[on_conflict],
            encoder=encoder,
            progress=progress,
        )
    _say(report.sentence())
    _list_broken(report.broken)
    for conflict, label in report.conflicts.items():
        _say(f"  {conflict}: {'no label' if label is None else f'{label!r} was taken'}")
    _say(f"next: igcd discover {folder}")


def add(
    folder: Workspace,
    images: Annotated[list[Path], typer.Argument(help="Folders of photos, or photos.", show_default=False)],
) -> None:
    """Add photos to a workspace; photos that are already there are skipped."""
    from igcd.workspace.catalog import open_catalog
    from igcd.workspace.photos import add_photos

    with open_catalog(folder) as catalog, progress_bar("reading") as progress:
        report = add_photos(catalog, images, progress=progress)
    _say(report.sentence())
    _list_broken(report.broken)
    if report.n_new:
        _say(f"next: igcd discover {folder}")


def discover(
    folder: Workspace,
    adapt: Annotated[
        bool, typer.Option("--adapt", help="First train the last part of the encoder on your labels (minutes).")
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of --adapt; 15, and 10 when it was adapted before.", min=1)
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(help="Folder of `igcd embed`: photos in it are not encoded again.", show_default=False),
    ] = None,
    granularity: Annotated[
        float | None,
        typer.Option(
            help="Fewer (negative) or more (positive) new categories; as the last time when unset.",
            min=-3,
            max=3,
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(help="Size in pixels at which the encoder sees photos from now on.", min=8, show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the categories of the new photos; what you have not confirmed is decided again."""
    from igcd.allocation import keep_freed_memory
    from igcd.training import Optimization
    from igcd.workspace.adapt import FIRST_STAGE, LATER_STAGES, adapt_tail, current_encoder
    from igcd.workspace.catalog import open_catalog
    from igcd.workspace.discover import discover as look
    from igcd.workspace.features import change_encoder, encoder_of

    keep_freed_memory()
    with open_catalog(folder) as catalog:
        adapted = None
        if size is not None:
            change_encoder(catalog, {"size": size})
        if adapt:
            first, later = (Optimization(epochs), Optimization(epochs)) if epochs else (FIRST_STAGE, LATER_STAGES)
            with progress_bar("views") as views, progress_bar("epochs") as epoch:
                encoder = encoder_of(catalog, progress=views)
                adapted = adapt_tail(
                    catalog,
                    encoder,
                    first_stage=first,
                    later_stages=later,
                    after_epoch=lambda report: epoch(report.epoch + 1, report.n_epochs),
                )
        else:
            encoder = encoder_of(catalog)
        photo_encoder = current_encoder(catalog, encoder, adapted=adapted)
        if features is not None:
            from igcd.embedding.into_workspace import take_features

            take_features(catalog, photo_encoder, features)
        with progress_bar("looking at photos") as embedding, _doing() as working:
            report = look(
                catalog, photo_encoder, adapted=adapted, granularity=granularity, embedding=embedding, working=working
            )
    if as_json:
        print(json.dumps({"sentence": report.sentence(), **asdict(report)}, indent=2, ensure_ascii=False))
        return
    _say(report.sentence())
    if report.broken:
        _say(f"see `igcd status {folder} --broken`")
    if report.n_new or report.n_anew:
        _say(f"next: igcd review {folder}, then igcd accept {folder}")


def accept(folder: Workspace, author: Author = None) -> None:
    """Close the stage: what you confirmed becomes labels, and the next photos build on it."""
    from igcd.workspace.accept import accept_stage
    from igcd.workspace.catalog import open_catalog

    with open_catalog(folder) as catalog:
        closed = accept_stage(catalog, author=author_name(author)).payload
    n_new = len(closed["categories"])
    _say(
        f"stage {closed['stage']} accepted: {n_new:,} new known {'category' if n_new == 1 else 'categories'}, "
        f"{closed['n_labels']:,} photos labeled."
    )


def status(
    folder: Workspace,
    broken: Annotated[bool, typer.Option("--broken", help="List the photos that were set aside, and why.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a workspace holds."""
    from rich.table import Table

    from igcd.cli.console import console, plain
    from igcd.workspace import queries
    from igcd.workspace.catalog import open_catalog
    from igcd.workspace.outlook import outlook

    with open_catalog(folder, read_only=True) as catalog:
        figures, categories, now = queries.status(catalog), queries.categories(catalog), outlook(catalog)
        set_aside = queries.broken_photos(catalog) if broken or as_json else []
        last = queries.history(catalog, limit=5)
    if as_json:
        record = {
            **asdict(figures),
            "outlook": {"sentence": now.sentence(), **asdict(now)},
            "categories": [{**asdict(category), "title": category.title} for category in categories],
            "broken": [{"path": path, "reason": reason} for path, reason in set_aside],
        }
        print(json.dumps(record, indent=2, ensure_ascii=False))
        return
    _say(
        f"{figures.n_photos:,} photos in {figures.n_files:,} files, {figures.n_labels:,} labeled, "
        f"{figures.n_near_duplicates:,} near-duplicates, {figures.n_unsure:,} unsure, {figures.n_broken:,} set aside"
    )
    _say(now.sentence())
    _say(
        f"{figures.n_known:,} known categories, {figures.n_accepted:,} accepted in this stage, "
        f"{figures.n_to_review:,} to review"
    )
    table = Table("stage", "state", "photos", "came labeled", "confirmed", "guessed", "unsure", "waiting")
    for stage in figures.stages:
        counts = (stage.n_photos, stage.n_labeled, stage.n_confirmed, stage.n_guessed, stage.n_unsure, stage.n_waiting)
        table.add_row(str(stage.stage), stage.state, *(f"{count:,}" for count in counts))
    console().print(table)
    if categories:
        table = Table("id", "category", "state", "found at", "confirmed", "guessed", "mean probability")
        for category in categories:
            mean = "" if category.mean_probability is None else f"{category.mean_probability:.2f}"
            n_guessed = category.n_photos - category.n_confirmed
            figures_of = (str(category.found_stage), f"{category.n_confirmed:,}", f"{n_guessed:,}", mean)
            table.add_row(str(category.id), plain(category.title), category.state, *figures_of)
        console().print(table)
    for decision, is_undone in last:
        undone = " (undone)" if is_undone else ""
        _say(f"decision {decision.id}{undone}: {decision.kind} by {decision.author} at {decision.time}")
    for path, reason in set_aside:
        _say(f"{path}: {reason}")


def export(
    folder: Workspace,
    out: Annotated[Path, typer.Option(help="File, or for folders a folder; must be new.", show_default=False)],
    kind: Annotated[str, typer.Option("--format", help="csv, coco, labelstudio or folders.")] = "csv",
    link: Annotated[bool, typer.Option("--link", help="folders: hard links instead of copies.")] = False,
    confirmed_only: Annotated[
        bool, typer.Option("--confirmed-only", help="Only what you labeled or confirmed.")
    ] = False,
    min_probability: Annotated[
        float, typer.Option(help="Leave out guesses that are less probable.", min=0, max=1)
    ] = 0.0,
) -> None:
    """Write the category of every photo for other programs."""
    from igcd.workspace.catalog import open_catalog
    from igcd.workspace.export import export as write

    with open_catalog(folder, read_only=True) as catalog:
        n_photos = write(catalog, kind, out, link=link, confirmed_only=confirmed_only, min_probability=min_probability)
    _say(f"{n_photos:,} photos written to {out}")


def undo(
    folder: Workspace,
    decision: Annotated[int | None, typer.Argument(help="Its number; the last one when unset.")] = None,
    author: Author = None,
) -> None:
    """Undo the last decision, or the one with this number."""
    from igcd.workspace.catalog import open_catalog
    from igcd.workspace.undo import undo as take_back

    with open_catalog(folder) as catalog:
        undone = take_back(catalog, decision, author=author_name(author))
    again = f"igcd undo {folder} {undone.id}" if undone.payload["kind"] != "close" else f"igcd accept {folder}"
    _say(f"decision {undone.payload['decision']} ({undone.payload['kind']}) undone; redo with `{again}`")


def restore(folder: Workspace) -> None:
    """Replace a damaged catalog by the copy that the last `igcd accept` made."""
    from igcd.workspace.backup import restore as put_back

    restored = put_back(folder)
    _say(f"{folder} is as it was at {restored.made}, when stage {restored.stage} was accepted")
    if restored.kept_as is not None:
        _say(f"the damaged catalog is kept as {restored.kept_as}")
    _say(f"next: igcd add {folder} the photos that came since, then igcd discover {folder}")


def predict_with_workspace(folder: Path, paths: Sequence[Path], *, as_json: bool) -> None:
    """`igcd predict DIR IMAGES…` where DIR is a workspace: prints what the images are. They are not added."""
    from rich.table import Table

    from igcd.allocation import keep_freed_memory
    from igcd.cli.console import console, plain
    from igcd.workspace.adapt import current_encoder
    from igcd.workspace.catalog import open_catalog
    from igcd.workspace.features import encoder_of
    from igcd.workspace.predict import outside_photos, predict_images

    keep_freed_memory()
    names, images = outside_photos(paths)
    with open_catalog(folder, read_only=True) as catalog:
        answers = predict_images(catalog, current_encoder(catalog, encoder_of(catalog)), names, images)
    if as_json:
        print(json.dumps([asdict(answer) for answer in answers], indent=2, ensure_ascii=False))
        return
    table = Table("image", "category", "probability", "novel")
    for answer in answers:
        shown = f"unreadable: {answer.error}" if answer.error else answer.category or "unsure"
        probability = "" if answer.probability is None else f"{answer.probability:.2f}"
        table.add_row(plain(answer.image), plain(shown), probability, "yes" if answer.is_novel else "")
    console().print(table)


@contextmanager
def progress_bar(title: str) -> "Iterator[Progress]":
    """A bar with the speed and the time left on standard error, from the first call on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from igcd.cli.console import Speed, Waiting

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Speed(), TimeRemainingColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)
    waiting = Waiting(bar.console)

    def show(n_done: int, n_all: int, n_elsewhere: int = 0, /) -> None:
        if not bar.live.is_started:
            bar.start()
        bar.update(task, completed=n_done, total=n_all)
        waiting.tell(n_elsewhere)
        if n_done >= n_all:
            bar.stop()

    try:
        yield show
    finally:
        bar.stop()


@contextmanager
def _doing() -> Iterator[Callable[[str], None]]:
    """What is being done, on standard error, where nobody can tell how long it takes."""
    from rich.console import Console

    status = Console(stderr=True).status("")

    def show(what: str) -> None:
        status.update(f"{what} …")
        status.start()

    try:
        yield show
    finally:
        status.stop()


def _ask_for_label(conflict: "LabelConflict") -> str | None:
    """Asks on the terminal which of its labels a photo gets."""
    if not _has_terminal():
        raise IgcdError("--on-conflict ask needs a terminal to ask on; choose skip or first")
    labels = dict.fromkeys(label for _, label in conflict.labels)
    choices: dict[str, str | None] = {str(number): label for number, label in enumerate(labels, start=1)} | {"0": None}
    _say(f"one photo has several labels: {conflict.sentence()}")
    for number, label in choices.items():
        _say(f"  {number}: {'no label' if label is None else label}")
    while (answer := typer.prompt("which one", err=True)) not in choices:
        _say(f"type one of the numbers {', '.join(choices)}")
    return choices[answer]


def _has_terminal() -> bool:
    return sys.stdin.isatty()


def _list_broken(broken: Mapping[str, str]) -> None:
    for path, reason in list(broken.items())[:5]:
        _say(f"  {path}: {reason}")


def _say(text: str) -> None:
    from igcd.cli.console import console

    console().print(excerpt(text, limit=MAX_LINE), markup=False, soft_wrap=True)
