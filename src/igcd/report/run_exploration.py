"""The pictures of a run beside its predictions: what the page of a run lets one explore."""

from collections.abc import Mapping, Sequence

import numpy as np

from igcd.errors import IgcdError
from igcd.metrics.predictions import NO_CLUSTER
from igcd.report.confusion import Crossing, cross
from igcd.report.exploration import NONE, Answers, Entry, Exploration, ExploredImages, Group, map_units
from igcd.report.picture_sheets import SPLITS, Pictures
from igcd.report.run_records import Run
from igcd.types import UNLABELED


def cluster_names(run: Run) -> dict[str, str]:
    """What the page calls each cluster: the category it stands for by its labels, or its number."""
    known = {cluster: name for record in run.stages for cluster, name in record.known_clusters.items()}
    found = {str(discovery.cluster) for record in run.stages for discovery in record.discoveries}
    predicted = set(run.predictions.cluster) - {NO_CLUSTER}
    order = sorted({*known, *found, *predicted}, key=lambda cluster: (not cluster.isdigit(), len(cluster), cluster))
    return {cluster: known.get(cluster, f"category {cluster}") for cluster in order}


def truth_names(run: Run) -> tuple[str, ...]:
    """Every category that the run knows by name, in alphabetical order."""
    known = {name for record in run.stages for name in record.known_clusters.values()}
    return tuple(sorted(known | set(run.predictions.category)))


def explore_run(run: Run, pictures: Pictures, stage_names: Sequence[str], split: str) -> Exploration:
    """The images of a run that have a picture, what was said about them at each stage, and a page per category."""
    names, truths = cluster_names(run), truth_names(run)
    number_of = {cluster: number for number, cluster in enumerate(names)}
    truth_of = {name: number for number, name in enumerate(truths)}
    images = pictures.images
    if {image.stage for image in images} - {record.stage for record in run.stages}:
        raise IgcdError(
            f"{run.folder}: the pictures must be of the {len(run.stages)} stages of the run, some are of another; "
            "repeat the run, or remove its folder `pictures`"
        )
    crossings = {record.stage: cross(run.predictions, stage=record.stage, split=split) for record in run.stages}
    return Exploration(
        what="image",
        is_judged=True,
        n_all=len({*run.predictions.image_id, *(image.image_id for image in images)}),
        stages=tuple(stage_names),
        splits=SPLITS,
        truths=truths,
        groups=tuple(_groups(run, names)),
        images=ExploredImages(
            id=tuple(image.image_id for image in images),
            x=map_units([image.x for image in images]),
            y=map_units([image.y for image in images]),
            sheet=tuple(image.sheet for image in images),
            tile=tuple(image.tile for image in images),
            stage=tuple(image.stage for image in images),
            split=tuple(SPLITS.index(image.split) for image in images),
            truth=tuple(truth_of.get(image.category, NONE) for image in images),
        ),
        answers=tuple(_answers(run, pictures, crossings, number_of, truth_of)),
        entries=tuple(category_entries(run, crossings[run.stages[-1].stage], split)),
        sheets=pictures.sheets,
    )


def _groups(run: Run, names: Mapping[str, str]) -> list[Group]:
    labeled: dict[str, int] = {}
    found: dict[str, int] = {}
    for record in run.stages:
        for cluster in record.known_clusters:
            labeled.setdefault(cluster, record.stage)
        for discovery in record.discoveries:
            found.setdefault(str(discovery.cluster), record.stage)
    return [Group(name, found.get(cluster), labeled.get(cluster)) for cluster, name in names.items()]


def _answers(
    run: Run,
    pictures: Pictures,
    crossings: Mapping[int, Crossing],
    number_of: Mapping[str, int],
    truth_of: Mapping[str, int],
) -> list[Answers]:
    """The clusters of each stage. Labeled images have none; they are where their label puts them."""
    position_of = {image.image_id: position for position, image in enumerate(pictures.images)}
    predictions = run.predictions
    answers = []
    for record in run.stages:
        rows = np.flatnonzero(predictions.stage == record.stage).tolist()
        said = {
            position_of[predictions.image_id[row]]: number_of.get(predictions.cluster[row], NONE)
            for row in rows
            if predictions.image_id[row] in position_of
        }
        cluster_of = {name: number_of[cluster] for cluster, name in record.known_clusters.items()}
        for position, image in enumerate(pictures.images):
            if image.split == "labeled" and image.stage == record.stage:
                said[position] = cluster_of.get(image.category, NONE)
        crossing = crossings[record.stage]
        stands_for = {
            number_of[cluster]: truth_of[crossing.categories[category]]
            for cluster, category in zip(crossing.clusters, crossing.category_of.tolist(), strict=True)
            if category != UNLABELED
        }
        answers.append(
            Answers(
                stage=record.stage,
                images=tuple(said),
                groups=tuple(said.values()),
                stands_for=tuple(stands_for.get(group, NONE) for group in range(len(number_of))),
            )
        )
    return answers


def category_entries(run: Run, crossing: Crossing, split: str) -> list[Entry]:
    """A page for each category of the last stage, then one for each cluster that stands for none of them."""
    counted = f"{split.capitalize()} images"
    names = cluster_names(run)
    number_of = {cluster: number for number, cluster in enumerate(names)}
    truth_of = {name: number for number, name in enumerate(truth_names(run))}
    known = set(run.stages[-1].known_clusters.values())
    found_at = {str(found.cluster): str(record.stage) for record in run.stages for found in record.discoveries}
    own = {int(category): cluster for cluster, category in enumerate(crossing.category_of) if category != UNLABELED}
    taken_for, right = _most_often_taken_for(crossing, names), crossing.n_right
    entries = []
    for category, name in enumerate(crossing.categories):
        cluster = crossing.clusters[own[category]] if category in own else ""
        n, n_right = int(crossing.n_images[category]), int(right[category])
        facts = (
            (counted, f"{n:,}"),
            ("Right", f"{n_right:,}"),
            ("Right, %", f"{100 * n_right / n:.1f}"),
            ("Most often taken for", taken_for.get(category, "–")),
            ("Found at stage", found_at.get(cluster, "–")),
        )
        kind = "known" if name in known else "new" if cluster else "missed"
        entries.append(Entry(name, kind, number_of.get(cluster, NONE), truth_of[name], facts))
    n_in_cluster = np.bincount(crossing.cell_cluster, crossing.cell_images, minlength=len(crossing.clusters))
    for position in np.flatnonzero(crossing.category_of == UNLABELED).tolist():
        cluster = crossing.clusters[position]
        facts = (
            (counted, f"{int(n_in_cluster[position]):,}"),
            ("Right", "0"),
            ("Right, %", "–"),
            ("Most often taken for", "–"),
            ("Found at stage", found_at.get(cluster, "–")),
        )
        entries.append(Entry(names[cluster], "extra", number_of[cluster], NONE, facts))
    return entries


def _most_often_taken_for(crossing: Crossing, names: Mapping[str, str]) -> dict[int, str]:
    """For each category with errors, what most of them were taken for, and how many."""
    wrong = np.flatnonzero(~crossing.is_right)
    order = wrong[np.lexsort((-crossing.cell_images[wrong], crossing.cell_category[wrong]))]
    categories, first = np.unique(crossing.cell_category[order], return_index=True)
    said = {}
    for category, cell in zip(categories.tolist(), order[first].tolist(), strict=True):
        cluster = int(crossing.cell_cluster[cell])
        name = crossing.stands_for(cluster) or names[crossing.clusters[cluster]]
        said[category] = f"{name} ({int(crossing.cell_images[cell]):,})"
    return said
