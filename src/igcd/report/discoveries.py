"""The gallery: what was found at each stage, what it is in truth, and what it is like."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from igcd.data.taxonomy import novelty
from igcd.report.confusion import categories_of_group, missed
from igcd.report.run_records import DiscoveryRecord, Run, StageRecord
from igcd.report.thumbnails import Thumbnail, thumbnail

MAX_DISCOVERIES = 96
"""On the whole page, shared by its stages: with their pictures about 3 MB. All are in the table of categories."""
N_IMAGES = 6
N_EXAMPLES = 3

Verdict = Literal["new", "again", "known", "empty", "unknown"]
"""A new category; one more cluster of it; a known category taken for new; no image; no truth to compare with."""


@dataclass(frozen=True)
class Neighbor:
    """The known category that a discovery is most like."""

    name: str
    examples: tuple[Thumbnail, ...]


@dataclass(frozen=True)
class Found:
    """A discovered category on the page."""

    cluster: int
    size: int
    category: str | None
    purity: float | None  # percent
    verdict: Verdict
    novelty: str | None  # its place beside the known categories; None where that is not known, or it is one of them
    labeled_as: str | None  # the name it was given when its labels arrived
    peak: Thumbnail | None
    others: tuple[Thumbnail, ...]
    nearest: Neighbor | None


@dataclass(frozen=True)
class StageGallery:
    """The discoveries of a stage, the largest first."""

    stage: int
    shown: tuple[Found, ...]
    n_found: int
    verdicts: Mapping[Verdict, int]
    n_new: int  # new categories that there are
    missed: tuple[str, ...]


def galleries(run: Run) -> list[StageGallery]:
    """A gallery for each stage that had unlabeled images to discover something in."""
    records = [
        record
        for record, result in zip(run.stages, run.results.stages, strict=True)
        if result.unlabeled_images or record.discoveries
    ]
    n_shown = max(MAX_DISCOVERIES // max(len(records), 1), 1)
    return [_gallery(run, record, n_shown) for record in records]


def _gallery(run: Run, record: StageRecord, n_shown: int) -> StageGallery:
    found = sorted(record.discoveries, key=lambda discovery: (-discovery.size, discovery.cluster))
    verdicts = judge(found, known=set(record.known_clusters.values()))
    counts: dict[Verdict, int] = {}
    for verdict in verdicts:
        counts[verdict] = counts.get(verdict, 0) + 1
    new = categories_of_group(run.predictions, stage=record.stage, group="New", split="unlabeled")
    return StageGallery(
        stage=record.stage,
        shown=tuple(_found(run, record, *pair) for pair in list(zip(found, verdicts, strict=True))[:n_shown]),
        n_found=len(found),
        verdicts=counts,
        n_new=len(new),
        missed=tuple(missed(new, [discovery.category for discovery in found])),
    )


def judge(found: Sequence[DiscoveryRecord], known: set[str]) -> list[Verdict]:
    """What each discovery is in truth, the largest first: a category counts as found once."""
    seen: set[str] = set()
    verdicts: list[Verdict] = []
    for discovery in found:
        if discovery.size == 0:
            verdicts.append("empty")
        elif discovery.category is None:
            verdicts.append("unknown")
        elif discovery.category in known:
            verdicts.append("known")
        elif discovery.category in seen:
            verdicts.append("again")
        else:
            verdicts.append("new")
            seen.add(discovery.category)
    return verdicts


def _found(run: Run, record: StageRecord, discovery: DiscoveryRecord, verdict: Verdict) -> Found:
    pictures = [
        thumbnail(
            run.folder,
            path,
            f"most typical of category {discovery.cluster}" if number == 0 else f"in category {discovery.cluster}",
        )
        for number, path in enumerate(discovery.images[:N_IMAGES])
    ]
    return Found(
        cluster=discovery.cluster,
        size=discovery.size,
        category=discovery.category,
        purity=None if discovery.purity is None else 100 * discovery.purity,
        verdict=verdict,
        novelty=_novelty(run, record, discovery.category),
        labeled_as=run.stages[-1].known_clusters.get(str(discovery.cluster)),
        peak=pictures[0] if pictures else None,
        others=tuple(pictures[1:]),
        nearest=None if discovery.nearest_known is None else _neighbor(run, record, discovery.nearest_known),
    )


def _novelty(run: Run, record: StageRecord, category: str | None) -> str | None:
    """How new the category is beside those labeled by the stage, as in "new species of a known genus".

    A category with an empty rank may belong to a known group of that rank, so nothing is said of it.
    """
    if run.taxonomy is None or category is None or category in record.known_clusters.values():
        return None
    taxon = run.taxonomy[category]
    known = [run.taxonomy[name] for name in record.known_clusters.values()]
    return novelty(taxon, known) if all(taxon.ranks) else None


def _neighbor(run: Run, record: StageRecord, cluster: int) -> Neighbor:
    """The known category of a cluster; without labels after stage 0 it may be one that was found before."""
    name = record.known_clusters.get(str(cluster))
    if name is not None:
        return Neighbor(name, _examples(run.folder, record.examples.get(name, ()), name))
    before = (discovery for stage in run.stages for discovery in stage.discoveries if discovery.cluster == cluster)
    images = next((discovery.images for discovery in before), ())
    return Neighbor(f"category {cluster}", _examples(run.folder, images, f"category {cluster}"))


def _examples(folder: Path, paths: Sequence[str], name: str) -> tuple[Thumbnail, ...]:
    return tuple(thumbnail(folder, path, f"example of {name}") for path in paths[:N_EXAMPLES])
