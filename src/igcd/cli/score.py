"""`igcd score`: the scores of any system's predictions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from igcd.metrics.scorecard import Scorecard


def score(
    predictions: Annotated[
        Path,
        typer.Option(
            "--predictions",
            "-p",
            help="CSV with the columns stage, split, image_id, category, cluster, group.",
            metavar="FILE",
            readable=False,  # we check it: a file that cannot be read is an error like all others
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Score any system's predictions, in every variant the literature uses, each by its name.

    The file has one row per image, stage and split (test or unlabeled).
    Clusters have any names, -1 stands for no prediction.
    Groups are Old, New, and S-0, S-1 … for categories of that stage absent now.
    """
    from igcd.metrics.predictions import parse_predictions
    from igcd.metrics.scorecard import scorecard

    card = scorecard(parse_predictions(predictions), source=str(predictions))
    if json:
        from json import dumps

        typer.echo(dumps(card.to_json(), indent=2, allow_nan=False))
        return

    from igcd.cli.console import console as make_console

    console = make_console()
    default = card.variants[card.default]
    console.print(f"Accuracy by group, percent ({card.default})")
    console.print(stage_table(card))
    console.print(f"M_f {_percent(default.forgetting['paper'])}  forgetting of stage 0's categories, lower is better")
    console.print(f"M_d {_percent(default.discovery['paper'])}  accuracy of the final stage on all categories\n")
    console.print("Beside accuracy: identity, NMI, ARI and the error of the counts in percent")
    console.print(detail_table(card))
    console.print("\nEvery variant, split/matching/average/Old, at its final stage")
    console.print(variant_table(card))
    console.print("M_f S-0: on the group S-0 alone; M_f final: VB-CGCD's; M_d Happy: mean of New over the stages")
    if card.later_work:
        console.print("\nAs later work reports, each by its own definition (docs/scores.md)")
        console.print(later_work_table(card))


def stage_table(card: "Scorecard") -> "Table":
    """Accuracy by group at each stage, in the default variant."""
    variant = card.variants[card.default]
    groups = ["All", "Old", "New"]
    absent = {group for stage in variant.stages for group in stage.scores if group.startswith("S-")}
    groups += sorted(absent, key=lambda group: -int(group[2:]))  # the paper's order: the latest first
    table = _table("stage", *groups)
    for stage in variant.stages:
        table.add_row(str(stage.stage), *(_percent(stage.scores.get(group)) for group in groups))
    return table


def detail_table(card: "Scorecard") -> "Table":
    """What else there is to know of each stage."""
    table = _table("stage", "images", "identity", "NMI", "ARI", "clusters / categories", "error", "new", "error", "won")
    for stage, detail in zip(card.variants[card.default].stages, card.details, strict=True):
        counts = (
            cell
            for count in (detail.count_all, detail.count_new)
            for cell in (f"{count.found} / {count.true}", _percent(count.relative_error))
        )
        percents = (_percent(value) for value in (detail.identity, detail.nmi, detail.ari))
        won = f"{detail.count_won.found} / {detail.count_won.true}"
        table.add_row(str(stage.stage), str(detail.n_images), *percents, *counts, won)
    return table


def variant_table(card: "Scorecard") -> "Table":
    """One row per variant: the final stage, forgetting and discovery."""
    table = _table("variant", "All", "Old", "New", "M_f paper", "M_f S-0", "M_f final", "M_d paper", "M_d Happy")
    for name, variant in card.variants.items():
        scores = variant.stages[-1].scores
        table.add_row(
            name,
            *(_percent(scores[group]) for group in ("All", "Old", "New")),
            *(_percent(variant.forgetting[whose]) for whose in ("paper", "S-0 group", "VB-CGCD")),
            *(_percent(variant.discovery[whose]) for whose in ("paper", "Happy")),
        )
    return table


def later_work_table(card: "Scorecard") -> "Table":
    """One row per paper that reports streams in its own way."""
    names = ("All", "Old", "New", "M_f", "M_d")
    table = _table("as", *names)
    for whose, scores in card.later_work.items():
        table.add_row(whose, *(_percent(scores.get(name)) for name in names))
    return table


def _table(first: str, *others: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="underline")  # every variant fits into 80 columns
    table.add_column(first, no_wrap=True)
    for column in others:
        table.add_column(column, justify="right")
    return table


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
