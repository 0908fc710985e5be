"""The report of a workspace: what was found, what was corrected, and all photos to explore, in one file."""

from dataclasses import dataclass
from pathlib import Path

from igcd import __version__
from igcd.data.images import BrokenImageError, fit
from igcd.errors import IgcdError
from igcd.records import write_bytes
from igcd.report.page import EXPLORING, KINDS, N_FACES, TEXT_FACTS, Face
from igcd.report.templating import make_environment, read_script
from igcd.report.thumbnails import THUMBNAIL, Thumbnail, encode_thumbnail
from igcd.workspace.catalog import Catalog, open_catalog
from igcd.workspace.corrections import Verdict, verdicts
from igcd.workspace.exploration import ExploredWorkspace, explore_workspace
from igcd.workspace.outlook import counted, outlook
from igcd.workspace.photo_files import photo_pixels
from igcd.workspace.queries import Category, category, status

N_CARDS = 60
"""New categories shown as cards; all are in the table."""
N_ON_CARD = 8
N_CORRECTIONS = 200


@dataclass(frozen=True)
class Card:
    """A new category with its most typical photos, as positions on the page."""

    entry: int
    category: Category
    photos: tuple[int, ...]
    most_like: str


@dataclass(frozen=True)
class Correction:
    """Photos that a person has put elsewhere; `shown` are those with a picture."""

    said: str
    decided: str
    n_photos: int
    shown: tuple[int, ...]


def write_workspace_report(folder: Path) -> Path:
    """Writes `report.html` into a workspace, whole or not at all, and returns its path."""
    with open_catalog(folder, read_only=True) as catalog:
        page = render(catalog)
    path = folder / "report.html"
    write_bytes(path, page.encode())
    return path


def render(catalog: Catalog) -> str:
    """The page of a workspace."""
    explored = explore_workspace(catalog)
    figures = status(catalog)
    decided = verdicts(catalog)
    new = sorted(
        (number for number, one in enumerate(explored.categories) if one.state != "labeled"),
        key=lambda number: (-explored.categories[number].n_photos, number),
    )
    return (
        make_environment()
        .get_template("workspace.html.j2")
        .render(
            title=catalog.folder.resolve().name,
            headline=headline(catalog, explored.categories),
            script=read_script(EXPLORING),
            exploration=explored.exploration,
            entries=explored.exploration.entries,
            kinds=KINDS | {"new": "new"},
            texts=TEXT_FACTS,
            faces=_faces(catalog, explored, new),
            cards=[_card(explored, number) for number in new[:N_CARDS]],
            n_new=len(new),
            status=figures,
            n_decided=sum(len(verdict.photos) for verdict in decided),
            n_right=sum(len(verdict.photos) for verdict in decided if verdict.is_right),
            corrections=[_correction(catalog, explored, verdict) for verdict in decided if not verdict.is_right][
                :N_CORRECTIONS
            ],
            version=__version__,
        )
    )


def headline(catalog: Catalog, live: tuple[Category, ...]) -> str:
    """What is in the workspace: what is certain, then what is known of the photos of the last stage."""
    n_confirmed = sum(one.n_confirmed for one in live)
    n_categories = sum(one.n_confirmed > 0 for one in live)
    now = outlook(catalog)
    parts = []
    if n_confirmed:
        verb = "is" if n_confirmed == 1 else "are"
        parts.append(
            f"{counted(n_confirmed, 'photo')} of {counted(n_categories, 'category', 'categories')} {verb} labeled or "
            "confirmed."
        )
    if now.n_photos:
        parts.append(now.sentence())
    return " ".join(parts) or "There are no photos yet."


def _faces(catalog: Catalog, explored: ExploredWorkspace, new: list[int]) -> list[Face]:
    """The most typical photo of the new categories, then of the known ones, those found last first."""
    known = sorted(
        set(range(len(explored.categories))) - set(new),
        key=lambda number: (-explored.categories[number].found_stage, number),
    )
    return [
        Face(_thumbnail(catalog, one.cover, f"most typical of {one.title}"), one.title, number)
        for number in [*new, *known][:N_FACES]
        if (one := explored.categories[number]).cover is not None
    ]


def _thumbnail(catalog: Catalog, photo: int | None, alt: str) -> Thumbnail:
    try:
        return encode_thumbnail(fit(photo_pixels(catalog, photo or 0, at_least=2 * THUMBNAIL), THUMBNAIL), alt)
    except (BrokenImageError, IgcdError):
        return Thumbnail(None, alt)


def _card(explored: ExploredWorkspace, number: int) -> Card:
    one = explored.categories[number]
    most_like = dict(explored.exploration.entries[number].facts)["Most like"]
    return Card(number, one, explored.typical.get(one.id, ())[:N_ON_CARD], most_like)


def _correction(catalog: Catalog, explored: ExploredWorkspace, verdict: Verdict) -> Correction:
    return Correction(
        said="unsure" if verdict.said is None else category(catalog, verdict.said).title,
        decided=category(catalog, verdict.decided).title,
        n_photos=len(verdict.photos),
        shown=tuple(explored.positions[photo] for photo in verdict.photos if photo in explored.positions),
    )
