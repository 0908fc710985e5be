"""The page of a run: what the records say, arranged to be looked at, in one HTML file that needs nothing else."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from igcd.records import write_bytes
from igcd.report.charts import Chart, line_chart
from igcd.report.confusion import (
    ConfusedPair,
    Crossing,
    KnownNovel,
    accuracy_on_first_categories,
    categories_of_group,
    cross,
    known_and_novel,
    most_confused,
)
from igcd.report.confusion_matrix import confusion_matrix
from igcd.report.discoveries import StageGallery, galleries
from igcd.report.exploration import Entry
from igcd.report.paper import PUBLISHED, PUBLISHED_COUNTS, differences
from igcd.report.picture_sheets import read_pictures
from igcd.report.run_exploration import category_entries, cluster_names, explore_run
from igcd.report.run_records import Run, read_run
from igcd.report.score_table import level_table, score_table
from igcd.report.templating import make_environment, read_script
from igcd.report.thumbnails import Thumbnail, thumbnail
from igcd.report.world_map import world_map

N_PAIRS = 10
N_FACES = 12
"""Pictures that the page opens with."""
EXPLORING = ("tables.js", "tiles.js", "explore.js", "photos.js", "map.js", "categories.js")
KINDS = {
    "known": "known",
    "new": "new, found",
    "missed": "new, missed",
    "extra": "stands for none",
    "unsure": "unsure",
}
TEXT_FACTS = ("Most often taken for", "Most like")
"""Facts that are words: they stand at the left of their column."""
N_MISSED = 12
"""Names of missed categories written out per stage."""


@dataclass(frozen=True)
class Pair:
    """A confused pair with a picture of each side, where the run kept one."""

    pair: ConfusedPair
    picture: Thumbnail | None
    taken_for_picture: Thumbnail | None
    is_known: bool
    taken_for_is_known: bool


@dataclass(frozen=True)
class CountRow:
    """Clusters opened at a stage, new categories won, and how many there were; the paper's where it has them."""

    stage: int
    opened: int
    won: int | None
    true: int
    n_clusters: int
    n_categories: int
    paper_found: int | None
    paper_true: int | None


@dataclass(frozen=True)
class StagePlace:
    """A line of the map's legend."""

    stage: int
    where: str
    when: str
    old: int
    new: int


def write_report(folder: Path) -> Path:
    """Writes `report.html` into the folder of a finished run, whole or not at all, and returns its path."""
    page = render(read_run(folder))
    path = folder / "report.html"
    write_bytes(path, page.encode())
    return path


def render(run: Run) -> str:
    """The page of a run."""
    results = run.results
    split = results.default.partition("/")[0]
    stage_galleries = galleries(run)
    pictures = read_pictures(run.folder)
    places = _stage_places(run)
    crossing = cross(run.predictions, stage=run.stages[-1].stage, split=split)
    entries = category_entries(run, crossing, split)
    published = PUBLISHED.get(results.stream, ()) if results.method == "snn_density" else ()
    encoder = results.config.get("encoder", {})
    return (
        make_environment()
        .get_template("run.html.j2")
        .render(
            run=run,
            results=results,
            split=split,
            headline=headline(run, stage_galleries),
            script=read_script(EXPLORING if pictures else EXPLORING[:1]),
            exploration=explore_run(run, pictures, [_stage_name(place) for place in places.values()], split)
            if pictures
            else None,
            faces=faces(run, entries, stage_galleries),
            entries=entries,
            entry_of=_entry_of(entries),
            kinds=KINDS,
            texts=TEXT_FACTS,
            matrices=[matrix for record in run.stages if (matrix := confusion_matrix(run, record, split)) is not None],
            ended=run.ended and run.ended[:10],
            n_found=sum(result.opened for result in results.stages),
            n_new=sum(gallery.n_new for gallery in stage_galleries),
            table=score_table(results, "This run", _our_note(results.config), published),
            levels=None if run.taxonomy is None else level_table(run.predictions, run.taxonomy, split),
            published=published,
            differences=differences(results.config, run.spec),
            default_weights=encoder.get("weights") == "pip",
            charts=_charts(run, split),
            galleries=stage_galleries,
            n_missed=N_MISSED,
            confusions=_confusions(run, split),
            pairs=confused_pairs(run, crossing),
            counts=_counts(run, stage_galleries),
            count_table=PUBLISHED_COUNTS[results.stream].table
            if published and results.stream in PUBLISHED_COUNTS
            else None,
            map=world_map(run.places) if run.places is not None and len(run.places.stage) else None,
            places=places,
            config=json.dumps(results.config, indent=2, ensure_ascii=False),
            folder=shlex.quote(run.folder.resolve().name),
        )
    )


@dataclass(frozen=True)
class Face:
    """A picture that the page opens with, what it shows, and the category page it leads to."""

    picture: Thumbnail
    name: str
    entry: int | None


def faces(run: Run, entries: Sequence[Entry], stage_galleries: Sequence[StageGallery]) -> list[Face]:
    """The most typical image of the discoveries, those that are new categories first; without any, known ones."""
    order = ("new", "unknown", "known", "again", "empty")
    found = sorted(
        (one for gallery in stage_galleries for one in gallery.shown if one.peak),
        key=lambda one: (order.index(one.verdict), -one.size),
    )
    number_of = _entry_of(entries)
    if found:
        names = cluster_names(run)
        return [
            Face(one.peak, one.category or names[str(one.cluster)], number_of.get(one.category or ""))
            for one in found[:N_FACES]
            if one.peak is not None
        ]
    examples = [(name, paths) for name, paths in run.stages[-1].examples.items() if paths]
    return [
        Face(thumbnail(run.folder, paths[0], f"example of {name}"), name, number_of.get(name))
        for name, paths in examples[:N_FACES]
    ]


def _entry_of(entries: Sequence[Entry]) -> dict[str, int]:
    """The number of each category's page, by its name."""
    return {entry.name: number for number, entry in reversed(list(enumerate(entries)))}


def headline(run: Run, stage_galleries: Sequence[StageGallery]) -> str:
    """What was found, M_d and M_f, in one sentence."""
    results = run.results
    n_found = sum(gallery.n_found for gallery in stage_galleries)
    n_new = sum(gallery.n_new for gallery in stage_galleries)
    n_right = sum(gallery.verdicts.get("new", 0) for gallery in stage_galleries)
    clusters = f"{n_found:,} {_plural(n_found, 'cluster', 'clusters')}"
    if n_new == 0:
        parts = [f"There was no new category to find, and {clusters} opened for one"]
    elif n_new == n_right == 1:
        parts = [f"The one new category was found, in {clusters}"]
    else:
        parts = [f"{n_right:,} of the {n_new:,} new categories {_plural(n_right, 'was', 'were')} found, in {clusters}"]
    if results.M_d is not None:
        n_categories = results.stages[-1].n_categories
        parts.append(
            f"in the end {results.M_d:.1f}% of the {results.default.partition('/')[0]} images of all "
            f"{n_categories:,} categories are recognized"
        )
    if results.M_f is not None:
        parts.append(
            f"accuracy on the first categories fell by at most {results.M_f:.1f} points"
            if results.M_f > 0
            else "accuracy on the first categories never fell below its start"
        )
    return (", and ".join(["; ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]) + "."


def _n_new(run: Run, stage: int) -> int:
    return len(categories_of_group(run.predictions, stage=stage, group="New", split="unlabeled"))


def _our_note(config: Mapping[str, Any]) -> str:
    features = config.get("method", {}).get("features")
    backbone = config.get("encoder", {}).get("backbone")
    return ", ".join(str(part) for part in (backbone, features and f"{features} features") if part)


def _charts(run: Run, split: str) -> list[Chart]:
    """Discovery and forgetting over the stages; nothing to draw with one stage."""
    results = run.results.stages
    stages = [result.stage for result in results]
    if len(stages) < 2:
        return []
    everything = {result.stage: result.scores.get("All") for result in results}
    new = {result.stage: result.scores.get("New") for result in results}
    is_all_new = all(result.scores.get("Old") is None for result in results[1:])
    discovery = {"All": everything} | ({} if is_all_new else {"New": new})
    return [
        line_chart("Discovery: accuracy on the categories of each stage", discovery, stages),
        line_chart(
            "Forgetting: accuracy on the categories of stage 0",
            {"stage 0": accuracy_on_first_categories(run.predictions, split=split)},
            stages,
            show_drop=True,
        ),
    ]


def _confusions(run: Run, split: str) -> list[tuple[int, KnownNovel]]:
    """Known against novel, for the stages that have novel images."""
    found = [
        (
            record.stage,
            known_and_novel(run.predictions, stage=record.stage, split=split, known_clusters=record.known_clusters),
        )
        for record in run.stages
    ]
    return [(stage, counts) for stage, counts in found if counts.novel_known + counts.novel_novel > 0]


def confused_pairs(run: Run, crossing: Crossing) -> list[Pair]:
    """The most confused pairs of the last stage, with pictures."""
    last = run.stages[-1]
    known = set(last.known_clusters.values())
    discoveries = [discovery for record in run.stages for discovery in record.discoveries]
    images_of_cluster = {str(discovery.cluster): discovery.images for discovery in discoveries}
    purest_last = sorted(discoveries, key=lambda discovery: discovery.purity or 0.0)
    images_of_category = {discovery.category: discovery.images for discovery in purest_last if discovery.category}

    def picture(category: str | None, cluster: str | None) -> Thumbnail | None:
        """An example of the category; of what was found, its purest discovery; of no category, the cluster."""
        paths = images_of_cluster.get(cluster or "", ())
        if category is not None:
            paths = last.examples.get(category) or images_of_category.get(category) or paths
        return thumbnail(run.folder, paths[0], "") if paths else None

    return [
        Pair(
            pair=pair,
            picture=picture(pair.category, None),
            taken_for_picture=picture(pair.taken_for, pair.cluster),
            is_known=pair.category in known,
            taken_for_is_known=pair.cluster in last.known_clusters,
        )
        for pair in most_confused(crossing, n_pairs=N_PAIRS)
    ]


def _counts(run: Run, stage_galleries: Sequence[StageGallery]) -> list[CountRow]:
    published = PUBLISHED_COUNTS.get(run.results.stream) if run.results.method == "snn_density" else None
    result_of = {result.stage: result for result in run.results.stages}
    rows = []
    for gallery in stage_galleries:
        result = result_of[gallery.stage]
        has_paper = published is not None and 1 <= gallery.stage <= len(published.found)
        rows.append(
            CountRow(
                stage=gallery.stage,
                opened=gallery.n_found,
                won=None if result.count.won is None else result.count.won.found,
                true=gallery.n_new,
                n_clusters=result.n_clusters,
                n_categories=result.n_categories,
                paper_found=published.found[gallery.stage - 1] if published and has_paper else None,
                paper_true=published.true[gallery.stage - 1] if published and has_paper else None,
            )
        )
    return rows


def _stage_places(run: Run) -> dict[int, StagePlace]:
    """Continents and years of each stage where the stream was cut by them, and its old and new categories."""
    rules = run.spec.get("stages") or []
    places = {}
    for record in run.stages:
        rule = rules[record.stage] if record.stage < len(rules) else {}
        years = rule.get("years", [])
        old = categories_of_group(run.predictions, stage=record.stage, group="Old", split="unlabeled")
        places[record.stage] = StagePlace(
            stage=record.stage,
            where=", ".join(rule.get("continents", [])),
            when="–".join(str(year) for year in dict.fromkeys(years)),
            old=len(old) if record.stage else len(record.known_clusters),
            new=_n_new(run, record.stage),
        )
    return places


def _stage_name(place: StagePlace) -> str:
    """A stage with where and when, for the slider."""
    return " · ".join(part for part in (f"Stage {place.stage}", place.where, place.when) if part)


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
