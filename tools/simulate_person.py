"""A simulated person goes through three stages with a workspace, answering from the truth.

    python tools/simulate_person.py --data fieldguide
    python tools/simulate_person.py --data cub --npz cub200_128px.npz

Photos are written out as files. Stage 1 is a folder in which some photos of the known categories lie in a folder of
their category, and some are unlabeled. Stages 2 and 3 bring unlabeled photos only, of all categories met so far and of
new ones. At each stage the photos are discovered, reviewed and accepted, and held-out photos are predicted. The table
goes to standard output; `--json FILE` writes the record.

The person is that of tools/reviewing_person.py, with `--budget` decisions per 100 photos in all.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from reviewing_person import AUTHOR, Person, all_photos, open_page
from scipy.optimize import linear_sum_assignment

from igcd.data.fieldguide.guide import FieldGuide
from igcd.workspace import queries
from igcd.workspace.accept import accept_stage
from igcd.workspace.adapt import adapt_tail, current_encoder
from igcd.workspace.catalog import Catalog, open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.features import AdaptedEncoder, PhotoEncoder, encoder_of, open_tail
from igcd.workspace.init import init_workspace
from igcd.workspace.photos import add_photos
from igcd.workspace.predict import outside_photos, predict_images

N_STAGES = 3
N_LABELED = 10
"""Labeled photos of each known category."""
N_UNLABELED = {"known": (5, 5, 5), "novel at 2": (0, 15, 8), "novel at 3": (0, 0, 20)}
"""Unlabeled photos of each category at each stage."""
N_HELD_OUT = 5
N_PER_CATEGORY = N_LABELED + sum(N_UNLABELED["known"]) + N_HELD_OUT
"""Photos a category must have: those of a known one, which takes the most."""

Writer = Callable[[Path], None]


@dataclass(frozen=True)
class StageFigures:
    """What a stage came to; shares are from 0 to 1."""

    stage: int
    n_photos: int  # unlabeled ones that came in
    said: str  # by `discover`
    accuracy_before: float  # of the unlabeled photos of the stage, before the review; see `accuracy`
    accuracy_after: float
    predict_accuracy: float  # of held-out photos of the categories met so far, after the stage was accepted
    n_held_out: int
    n_decisions: int
    decisions_per_100: float
    decisions: Mapping[str, int]  # by kind
    n_discovered: int  # new categories found
    n_novel: int  # new categories there are
    n_novel_named: int  # of these, how many bear their name after the review
    n_named_before: int  # categories with a name when the stage began
    identity: float | None  # share of those that kept id, name and photos; None at the first stage


@dataclass
class World:
    """Photos by category, and what each file shows. Files are numbered: their names do not tell."""

    photos: Mapping[str, list[Writer]]
    arrives: Mapping[str, str]  # category -> key of N_UNLABELED
    truth: dict[str, str]  # name of a file without its suffix -> category

    def write_stage(self, folder: Path, stage: int) -> None:
        """The photos of a stage, 1 to 3; labeled ones in folders, the others in `unlabeled`."""
        for category, photos in self.photos.items():
            counts = N_UNLABELED[self.arrives[category]]
            labeled = N_LABELED if self.arrives[category] == "known" else 0
            start = labeled + sum(counts[: stage - 1])
            if stage == 1:
                self._write(photos[:labeled], category, folder / category)
            self._write(photos[start : start + counts[stage - 1]], category, folder / "unlabeled")

    def write_held_out(self, folder: Path) -> None:
        """The last photos of every category."""
        for category, photos in self.photos.items():
            self._write(photos[-N_HELD_OUT:], category, folder)

    def novel_at(self, stage: int) -> set[str]:
        """The categories met for the first time."""
        return {category for category, when in self.arrives.items() if when == f"novel at {stage}"}

    def met_by(self, stage: int) -> set[str]:
        """The categories met at a stage or before."""
        return set(self.arrives) - {name for later in range(stage + 1, N_STAGES + 1) for name in self.novel_at(later)}

    def of(self, photo: queries.Photo) -> str:
        """What a photo of the catalog shows."""
        return self.shows(photo.path)

    def shows(self, path: str) -> str:
        """What the photo at a path shows."""
        return self.truth[Path(path).stem]

    def _write(self, photos: Iterable[Writer], category: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for write in photos:
            stem = f"{len(self.truth):06d}"
            self.truth[stem] = category
            write(folder / f"{stem}.jpg")


def accuracy(catalog: Catalog, world: World, stems: set[str], *, named_only: bool) -> float:
    """Share of these photos that are in the category they belong to. Unsure ones are not.

    A category with a name counts by its name. Categories nobody has named yet are matched, one to one, with what they
    hold most of among the categories that bear no name; after a review nothing is matched (`named_only`).
    """
    categories = {category.id: category for category in queries.categories(catalog)}
    names = {category.name for category in categories.values() if category.name}
    n_right = 0
    unnamed: Counter[tuple[int, str]] = Counter()
    for category in categories.values():
        for photo in all_photos(catalog, category.id):
            if Path(photo.path).stem not in stems:
                continue
            if category.name:
                n_right += category.name == world.of(photo)
            elif world.of(photo) not in names:
                unnamed[category.id, world.of(photo)] += 1
    if unnamed and not named_only:
        rows, columns = (sorted({key[side] for key in unnamed}) for side in (0, 1))
        shared = np.array([[unnamed[row, column] for column in columns] for row in rows])
        n_right += int(shared[linear_sum_assignment(-shared)].sum())
    return n_right / len(stems)


@dataclass(frozen=True)
class Named:
    """A category with a name, as it was at the end of a stage."""

    id: int
    name: str
    photo_ids: frozenset[int]
    confirmed_ids: frozenset[int]


def named_categories(catalog: Catalog) -> list[Named]:
    """All categories with a name and the photos in them."""
    named = []
    for category in queries.categories(catalog):
        if category.name:
            photos = all_photos(catalog, category.id)
            confirmed = frozenset(photo.id for photo in photos if photo.is_confirmed)
            named.append(Named(category.id, category.name, frozenset(photo.id for photo in photos), confirmed))
    return named


def kept_ids(before: Sequence[Named], found: Sequence[Named], after: Sequence[Named]) -> set[int]:
    """The categories that kept id, name and photos: through a discovery all photos, through a review the confirmed."""
    found_by, after_by = ({(one.id, one.name): one for one in several} for several in (found, after))
    return {
        one.id
        for one in before
        if (one.id, one.name) in found_by
        and (one.id, one.name) in after_by
        and one.photo_ids <= found_by[one.id, one.name].photo_ids
        and one.confirmed_ids <= after_by[one.id, one.name].confirmed_ids
    }


def predict_accuracy(catalog: Catalog, encoder: PhotoEncoder, world: World, folder: Path, met: set[str]) -> float:
    """Share of held-out photos of the categories met that get their name."""
    names, images = outside_photos([folder])
    answers = predict_images(catalog, encoder, names, images)
    right = [
        answer.category == world.truth[Path(answer.image).stem]
        for answer in answers
        if world.truth[Path(answer.image).stem] in met
    ]
    return sum(right) / len(right)


def live_through(world: World, folder: Path, *, budget_per_100: int, size: int, adapt: bool) -> list[StageFigures]:
    """The three stages, in a workspace below `folder`."""
    world.write_held_out(folder / "held_out")
    figures: list[StageFigures] = []
    workspace, before = folder / "workspace", list[Named]()
    for stage in range(1, N_STAGES + 1):
        photos = folder / f"stage{stage}"
        world.write_stage(photos, stage)
        stems = {file.stem for file in (photos / "unlabeled").iterdir()}
        if stage == 1:
            init_workspace(workspace, photos, from_folders=True, encoder={"size": size})
        with open_catalog(workspace) as catalog:
            if stage > 1:
                add_photos(catalog, [photos])
            pretrained, adapted = encoder_of(catalog), None
            encoder = current_encoder(catalog, pretrained)
            if adapt:
                adapted = adapt_tail(catalog, pretrained)
                encoder = AdaptedEncoder(pretrained, open_tail(pretrained, adapted))
            report = discover(catalog, encoder, adapted=adapted)
            found = named_categories(catalog)
            n_discovered = len(queries.queue(catalog))
            accuracy_before = accuracy(catalog, world, stems, named_only=False)
            with open_page(catalog) as page:
                again = lambda: discover(catalog, encoder)  # noqa: B023, E731 - used in this turn
                person = Person(page, world.shows, again)
                person.review(budget_per_100 * len(stems) // 100)
            discover(catalog, encoder)
            accept_stage(catalog, author=AUTHOR)
            after, met, novel = named_categories(catalog), world.met_by(stage), world.novel_at(stage)
            figures.append(
                StageFigures(
                    stage=stage,
                    n_photos=len(stems),
                    said=report.sentence(),
                    accuracy_before=accuracy_before,
                    accuracy_after=accuracy(catalog, world, stems, named_only=True),
                    predict_accuracy=predict_accuracy(catalog, encoder, world, folder / "held_out", met),
                    n_held_out=N_HELD_OUT * len(met),
                    n_decisions=person.made.total(),
                    decisions_per_100=100 * person.made.total() / len(stems),
                    decisions=dict(person.made),
                    n_discovered=n_discovered,
                    n_novel=len(novel),
                    n_novel_named=len(novel & {one.name for one in after}),
                    n_named_before=len(before),
                    identity=len(kept_ids(before, found, after)) / len(before) if before else None,
                )
            )
            before = after
        print(figures[-1].said, file=sys.stderr)
    return figures


def field_guide_photos(
    n_categories: int, seed: int, *, n_per_category: int = N_PER_CATEGORY
) -> dict[str, list[Writer]]:
    """Pictures of an invented flora and fauna, drawn when they are written."""
    # The test pictures of the guide: as many of each species.
    guide = FieldGuide(n_species=n_categories, n_images=4 * n_categories, n_test_per_species=n_per_category, seed=seed)
    photos: dict[str, list[Writer]] = {species.name: [] for species in guide.species}
    for sighting in guide.sightings("val"):

        def write(path: Path, sighting=sighting) -> None:  # noqa: ANN001 - bound now, not a parameter
            Image.fromarray(guide.draw(sighting)).save(path, quality=92, subsampling=0)

        photos[guide.species[sighting.species].name].append(write)
    return photos


def cub_photos(npz: Path, n_categories: int, seed: int) -> dict[str, list[Writer]]:
    """Photos of birds, as the archive holds them: some categories, drawn at random."""
    with np.load(npz, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    names = [str(name).partition(".")[2].replace("_", " ") for name in arrays["class_names"]]
    chosen = sorted(random.Random(seed).sample(range(len(names)), n_categories))
    photos: dict[str, list[Writer]] = {names[category]: [] for category in chosen}
    for split in ("train", "test"):
        blob, start = arrays[f"jpg_{split}"], arrays[f"off_{split}"].astype(np.int64)
        for row, category in enumerate(arrays[f"y_{split}"].tolist()):
            if category in chosen:
                encoded = blob[start[row] : start[row + 1]].tobytes()

                def write(path: Path, encoded=encoded) -> None:  # noqa: ANN001 - bound now, not a parameter
                    path.write_bytes(encoded)

                photos[names[category]].append(write)
    return photos


def make_world(photos: Mapping[str, list[Writer]], *, n_known: int, n_novel: int, seed: int) -> World:
    """Which categories are known from the start, and when the others arrive."""
    rng = random.Random(seed)
    order = rng.sample(sorted(photos), len(photos))
    arrives = dict.fromkeys(order[:n_known], "known")
    arrives |= dict.fromkeys(order[n_known : n_known + n_novel], "novel at 2")
    arrives |= dict.fromkeys(order[n_known + n_novel :], "novel at 3")
    for name, several in photos.items():
        if len(several) < N_PER_CATEGORY:
            sys.exit(f"{name} has {len(several)} photos, {N_PER_CATEGORY} are needed; choose another --seed")
    shuffled = {name: rng.sample(photos[name], N_PER_CATEGORY) for name in sorted(photos)}
    return World(shuffled, arrives, truth={})


def table(figures: Sequence[StageFigures]) -> str:
    """The figures as a table for a page."""
    lines = [
        "| stage | photos | new categories: there are / found / named | right before review | after | "
        "held-out photos predicted right | decisions per 100 photos | identity |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in figures:
        identity = "" if one.identity is None else f"{one.identity:.0%} of {one.n_named_before}"
        lines.append(
            f"| {one.stage} | {one.n_photos} | {one.n_novel} / {one.n_discovered} / {one.n_novel_named} | "
            f"{one.accuracy_before:.1%} | {one.accuracy_after:.1%} | {one.predict_accuracy:.1%} of {one.n_held_out} | "
            f"{one.decisions_per_100:.1f} | {identity} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=("fieldguide", "cub"), default="fieldguide")
    parser.add_argument("--npz", type=Path, help="the archive of CUB's photos")
    parser.add_argument("--known", type=int, default=30, help="categories known from the start")
    parser.add_argument("--novel", type=int, default=10, help="new categories at each of stages 2 and 3")
    parser.add_argument("--budget", type=int, default=10, help="decisions per 100 photos")
    parser.add_argument("--size", type=int, default=224, help="side in pixels at which photos are looked at")
    parser.add_argument("--adapt", action="store_true", help="as `igcd discover --adapt`, at every stage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where photos and workspace go; a temporary one when unset")
    parser.add_argument("--json", type=Path, help="file for the record")
    arguments = parser.parse_args()
    n_categories = arguments.known + 2 * arguments.novel
    if arguments.data == "cub":
        if arguments.npz is None:
            parser.error("--data cub needs --npz FILE")
        photos = cub_photos(arguments.npz, n_categories, arguments.seed)
    else:
        photos = field_guide_photos(n_categories, arguments.seed)
    world = make_world(photos, n_known=arguments.known, n_novel=arguments.novel, seed=arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        figures = live_through(
            world, folder, budget_per_100=arguments.budget, size=arguments.size, adapt=arguments.adapt
        )
    print(table(figures))
    if arguments.json:
        record = {
            "data": arguments.data,
            "known": arguments.known,
            "novel": arguments.novel,
            "budget": arguments.budget,
            "size": arguments.size,
            "adapt": arguments.adapt,
            "seed": arguments.seed,
            "stages": [asdict(one) for one in figures],
        }
        arguments.json.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
