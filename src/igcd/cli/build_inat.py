"""`igcd build inat2021` and `igcd build observations`: stages by year and continent, shown as a table."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from igcd.cli.build import parse_spec, progress_bar, refuse_needless_held_out, warn_of_no_test
from igcd.cli.console import console as make_console
from igcd.cli.console import plain
from igcd.data.fieldguide.guide import FieldGuide
from igcd.data.fieldguide.guide import write as write_guide
from igcd.data.fieldguide.source import load_observations
from igcd.data.inat2021 import describe_missing, missing_files, read_inat2021
from igcd.data.observation_files import read_observation_file
from igcd.data.observations import Observations
from igcd.data.taxonomy import format_taxonomy
from igcd.errors import IgcdError
from igcd.records import publish, unfinished_name
from igcd.streams.inat_igcd import (
    PlaceAndYearSplit,
    as_record,
    beside_the_paper,
    format_places,
    split_by_place_and_year,
    taxa_of,
)
from igcd.streams.split import format_split
from igcd.streams.stage_rules import PAPER_STAGES, PlaceAndYearSpec, parse_stages

N_TRAIN_IMAGES, N_MINI_IMAGES = 2_786_843, 600_000  # train.json and train_mini.json, each with val.json: for the bar
MAX_SPECIES = 10_000
"""Species of a field guide, as many as iNat2021 has. With ten times as many the looks run out and the search for
another does not end."""
GUIDE_OPTIONS = {"n_test_per_species": "--test-per-species", "n_species": "--species", "n_images": "--images"}


def build_inat2021(
    train: Path,
    val: Path | None,
    out: Path,
    *,
    spec: Mapping[str, Any],
    images: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Builds, writes and shows iNatIGCD from the annotation files alone.

    `spec` holds fields of `PlaceAndYearSpec`, unset ones None; `stages` is text as `parse_stages` reads it. With
    `images`, the folder that train/ and val/ were unpacked into, missing files are counted.
    """
    checked = place_and_year_spec(spec)
    name = "inat2021-mini" if "mini" in train.name else "inat2021"
    with progress_bar(f"reading {train.name}", N_MINI_IMAGES if "mini" in train.name else N_TRAIN_IMAGES) as advance_to:
        observations = read_inat2021(train, val, name=name, on_progress=advance_to)
    if val is None and checked.held_out is None:
        raise IgcdError("there are no test images; give val.json as well, or set a share aside with --held-out")
    remedy = "set a share aside with --held-out 0.2 and leave val.json out" if val else "raise --held-out"
    _build(observations, checked, out, remedy=remedy, images=images, seed=seed, as_json=as_json)


def build_observations(
    file: Path, out: Path, *, spec: Mapping[str, Any], images: Path | None, seed: int, as_json: bool
) -> None:
    """Builds, writes and shows the split of somebody's own observations: an iNaturalist CSV or Darwin Core."""
    checked = place_and_year_spec({"held_out": 0.2, **{key: value for key, value in spec.items() if value is not None}})
    observations = read_observation_file(file, images)
    _build(observations, checked, out, remedy="raise --held-out", images=None, seed=seed, as_json=as_json)


def build_fieldguide(
    out: Path, *, guide: Mapping[str, int], spec: Mapping[str, Any], pictures: bool, seed: int, as_json: bool
) -> None:
    """Builds, writes and shows the split of the built-in data; with `pictures`, writes those and their annotations.

    `guide` holds fields of `FieldGuide`; the seed draws the guide and whatever the split draws.
    """
    checked = place_and_year_spec(spec)
    if guide.get("n_species", 0) > MAX_SPECIES:
        raise IgcdError(f"--species must be at most {MAX_SPECIES:,}, got {guide['n_species']:,}; lower it")
    try:
        field_guide = FieldGuide(**guide, seed=seed)
    except IgcdError as error:
        sentence = str(error)
        for field, option in GUIDE_OPTIONS.items():
            sentence = sentence.replace(field, option)
        raise IgcdError(sentence) from None
    with Console(stderr=True).status("making up species and sightings"):
        observations, _ = load_observations(field_guide)
    if pictures:
        with progress_bar("drawing", len(observations)) as advance_to:
            write_guide(field_guide, out, lambda n_done, _total: advance_to(n_done))
    images = out if pictures else None
    _build(observations, checked, out, remedy="raise --test-per-species", images=images, seed=seed, as_json=as_json)


def place_and_year_spec(values: Mapping[str, Any]) -> PlaceAndYearSpec:
    """A checked spec from options; `stages` is text, unset values are None."""
    stages = values.get("stages")
    return parse_spec(PlaceAndYearSpec, {**values, "stages": None if stages is None else parse_stages(stages)})


def _build(
    observations: Observations,
    spec: PlaceAndYearSpec,
    out: Path,
    *,
    remedy: str,
    images: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """`remedy` is what to do when no stage has test images."""
    refuse_needless_held_out(spec.held_out, bool(observations.is_test.any()))
    built = split_by_place_and_year(observations, spec, seed)
    missing: list[str] = []
    n_images = 0
    if images is not None:
        idx = sorted({int(i) for arrived in (*built.arrivals.train, *built.arrivals.test) for i in arrived})
        n_images = len(idx)
        missing = missing_files(images, (observations.image_ids[i] for i in idx))
    content = {
        "taxonomy.csv": format_taxonomy(taxa_of(observations, built.split)).encode(),
        "places.csv": format_places(observations, built.arrivals).encode(),
        "split.tsv": format_split(built.split),  # last: where it is, the others are
    }
    _write_all(out, content)
    warnings = warn_of_no_test(built.split, remedy)
    sha256 = hashlib.sha256(content["split.tsv"]).hexdigest()
    if as_json:
        record = {"name": built.split.name, "split": str(out / "split.tsv"), "sha256": sha256, **as_record(built)}
        if images is not None:
            record["missing_images"] = len(missing)
        record["warnings"] = warnings
        print(json.dumps(record, indent=2))
        return
    console = make_console()
    console.print(_stage_table(built))
    for stage in built.stages:
        if stage.families:
            console.print(f"most common families of stage {stage.stage}: {', '.join(stage.families)}", markup=False)
    for reason, count in sorted(built.arrivals.skipped.items(), key=lambda item: -item[1]):
        console.print(f"skipped {count:,}: {reason}", markup=False, highlight=False)
    for stage in built.stages:
        if not stage.images:
            console.print(f"stage {stage.stage} is empty: no image fits its years and continents", markup=False)
    if spec.stages == PAPER_STAGES and observations.name.startswith("inat2021"):
        console.print(_paper_table(built))
    if missing and images is not None:
        console.print(describe_missing(images, missing, n_images), markup=False, highlight=False, soft_wrap=True)
    for warning in warnings:
        console.print(f"warning: {warning}", markup=False, soft_wrap=True)
    console.print(f"written to {out / 'split.tsv'}", markup=False, soft_wrap=True)


def _stage_table(built: PlaceAndYearSplit) -> Table:
    table = Table(title=plain(f"{built.split.name}, seed {built.split.seed}"), title_justify="left")
    for column in ("stage", "images", "test", "categories", "old", "new"):
        table.add_column(column, justify="right")
    for column in ("years", "continents"):
        table.add_column(column)
    for stage in built.stages:
        table.add_row(
            *(f"{n:,}" for n in (stage.stage, stage.images, stage.test_images, stage.categories, stage.old, stage.new)),
            "–".join(str(year) for year in dict.fromkeys((*stage.years[:1], *stage.years[-1:]))),
            ", ".join(stage.continents),
        )
    return table


def _paper_table(built: PlaceAndYearSplit) -> Table:
    table = Table(title="beside the paper's counts", title_justify="left")
    table.add_column("")
    for column in ("here", "paper"):
        table.add_column(column, justify="right")
    for row in beside_the_paper(built.stages):
        table.add_row(*row)
    return table


def _write_all(out: Path, content: Mapping[str, bytes]) -> None:
    """Writes the files under other names first, so that none appears before all are on the disk."""
    out.mkdir(parents=True, exist_ok=True)
    unfinished = {name: unfinished_name(out / name) for name in content}
    try:
        for name, data in content.items():
            unfinished[name].write_bytes(data)
        for name in content:
            publish(unfinished[name], out / name)
    finally:
        for path in unfinished.values():
            path.unlink(missing_ok=True)
