"""A simulated person with two batches of photos: what 40 decisions come to.

    python tools/simulate_birds.py --data cub --npz cub200_128px.npz --folder birds [--seed 0]
    python tools/simulate_birds.py --data fieldguide --folder guide
    python tools/simulate_birds.py --features cub_60x55_lite0_224px.npz --folder stored [--labels 20,3]

30 species are known by 20 labeled photos each. Each batch brings 8 photos of each of them and 15 of each of 8 species
that are new. A batch is added, discovered, reviewed with 40 decisions (tools/reviewing_person.py, through the routes of
the review page) and accepted. Then the same with 3 labels per species (`--labels`), and with none at all: then the
first batch is all there is, and the person decides 80 times.

Photos are JPEG files. They go through the commands: `igcd embed` once for all of them, then `igcd init`, `igcd add` and
`igcd discover` for each workspace. With `--features` each file stands for a row of an archive with the arrays x
(features) and y (names), which is what is compared then; nothing is embedded.

A line of JSON for each batch goes to standard output and to `figures.jsonl` in the folder. Stopped, it goes on where it
was. Right is a photo in the category that has its name; before the review, new categories are matched one to one with
the species that have no name yet. A species is found if it is what most photos of some new category are.
"""

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from reviewing_person import Person, all_photos, open_page
from scipy.optimize import linear_sum_assignment
from simulate_person import Writer, cub_photos, field_guide_photos

from igcd.types import Pixels
from igcd.workspace import queries
from igcd.workspace.catalog import Catalog, open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.feature_store import Features

N_KNOWN, N_NEW, N_BATCHES = 30, 8, 2
N_SPECIES = N_KNOWN + N_BATCHES * N_NEW
MAX_LABELED, N_KNOWN_IN_BATCH, N_NEW_IN_BATCH = 20, 8, 15
N_PER_SPECIES = MAX_LABELED + N_BATCHES * N_KNOWN_IN_BATCH
DECISIONS, DECISIONS_WITHOUT_LABELS = 40, 80
SIDE = 32


class StoredFeatures:
    """An encoder that looks rows up by the noise that stands for them."""

    key, size = "stored", SIDE

    def __init__(self, rows: Features) -> None:
        self._rows = rows
        self._row_of = {noise(row).tobytes(): row for row in range(len(rows))}

    def __call__(self, pixels: Pixels) -> Features:
        """(n, 32, 32, 3) -> (n, d)."""
        return self._rows[[self._row_of[np.ascontiguousarray(image).tobytes()] for image in pixels]]


def noise(row: int) -> Pixels:
    """The picture that stands for a row: no two are alike."""
    return np.random.default_rng(row).integers(0, 256, (SIDE, SIDE, 3)).astype(np.uint8)


def stored_photos(names: Sequence[str], seed: int) -> dict[str, list[Writer]]:
    """The noise that stands for each row, by species; a PNG whatever its name, for JPEG would change it."""
    found, counts = np.unique(names, return_counts=True)
    species = np.random.default_rng(seed).permutation(found[counts >= N_PER_SPECIES])[:N_SPECIES]
    if len(species) < N_SPECIES:
        sys.exit(f"{N_SPECIES} species with {N_PER_SPECIES} rows each are needed, got {len(species)}")
    return {
        str(one): [functools.partial(_write_noise, row) for row in np.flatnonzero(np.asarray(names) == one).tolist()]
        for one in species
    }


def _write_noise(row: int, path: Path) -> None:
    Image.fromarray(noise(row)).save(path, "PNG")


def write_photos(photos: Mapping[str, list[Writer]], folder: Path, seed: int) -> None:
    """All photos below `all`, whose names do not tell; then what is known, and the two batches, as links to them."""
    rng, truth = np.random.default_rng(seed), dict[str, str]()
    everything = folder / "unfinished" / "all"
    everything.mkdir(parents=True)
    for place, species in enumerate(rng.permutation(sorted(photos)).tolist()):
        if place < N_KNOWN:
            folders = [f"known/{species}"] * MAX_LABELED + ["batch1", "batch2"] * N_KNOWN_IN_BATCH
        else:
            folders = [f"batch{1 + (place - N_KNOWN) // N_NEW}"] * N_NEW_IN_BATCH
        chosen = rng.permutation(len(photos[species]))[: len(folders)].tolist()
        for number, (photo, target) in enumerate(zip(chosen, folders, strict=True)):
            file = everything / f"{len(truth):05d}.jpg"
            photos[species][photo](file)
            truth[file.stem] = species
            targets = [target]
            if place < N_KNOWN and number < 3:
                targets.append(f"known3/{species}")
            for one in targets:
                (folder / "unfinished" / one).mkdir(parents=True, exist_ok=True)
                os.link(file, folder / "unfinished" / one / file.name)
    (folder / "unfinished" / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    (folder / "unfinished").rename(folder / "photos")


def igcd(*arguments: object) -> str:
    """Runs a command of the terminal; what it said last but for what to do next."""
    done = subprocess.run(
        [sys.executable, "-m", "igcd", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"igcd {arguments[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return next(line for line in done.stdout.splitlines() if line.strip())


@dataclass(frozen=True)
class Assigned:
    """Where photos are, by their names."""

    category: Mapping[str, int | None]
    name_of: Mapping[int, str | None]


def assigned(catalog: Catalog) -> Assigned:
    """Where all photos are now."""
    name_of = {category.id: category.name for category in queries.categories(catalog)}
    where = {
        Path(photo.path).stem: category for category in [*name_of, None] for photo in all_photos(catalog, category)
    }
    return Assigned(where, name_of)


def right_share(now: Assigned, truth: Mapping[str, str], stems: set[str], *, matched: bool) -> float:
    """Share of these photos in the category that has their name; `matched`: unnamed ones as well as possible."""
    names, n_right, unnamed = set(now.name_of.values()), 0, Counter[tuple[int, str]]()
    for stem in stems:
        category = now.category.get(stem)
        name = None if category is None else now.name_of[category]
        if name is not None:
            n_right += name == truth[stem]
        elif category is not None and truth[stem] not in names:
            unnamed[category, truth[stem]] += 1
    if matched and unnamed:
        rows, columns = (sorted({key[side] for key in unnamed}) for side in (0, 1))
        shared = np.array([[unnamed[row, column] for column in columns] for row in rows])
        n_right += int(shared[linear_sum_assignment(-shared)].sum())
    return n_right / len(stems)


def found_species(now: Assigned, truth: Mapping[str, str], stems: set[str]) -> set[str]:
    """The species that most photos of some category without a name are."""
    held: dict[int, Counter[str]] = {}
    for stem in stems:
        category = now.category.get(stem)
        if category is not None and now.name_of[category] is None:
            held.setdefault(category, Counter())[truth[stem]] += 1
    return {counts.most_common(1)[0][0] for counts in held.values()}


def review_batch(
    photos: Path, workspace: Path, batch: int, *, n_labels: int, n_decisions: int, stored: StoredFeatures | None
) -> dict[str, object]:
    """Adds, discovers, reviews and accepts a batch; its figures."""
    truth = json.loads((photos / "truth.json").read_text(encoding="utf-8"))
    stems = {file.stem for file in (photos / f"batch{batch}").iterdir()}
    if batch == 1:
        shutil.rmtree(workspace, ignore_errors=True)  # of a run that was stopped
        if n_labels:
            known = photos / ("known" if n_labels == MAX_LABELED else f"known{n_labels}")
            igcd("init", workspace, "--images", known, "--labels-from-folders")
        else:
            igcd("init", workspace, "--images", photos / "batch1")
    if n_labels:
        igcd("add", workspace, photos / f"batch{batch}")
    with open_catalog(workspace) as catalog:
        known_names = {category.name for category in queries.categories(catalog) if category.name}
        if stored is not None:
            said = discover(catalog, stored).sentence()
    if stored is None:
        said = igcd("discover", workspace, "--features", photos.parent / "features")
    with open_catalog(workspace) as catalog, open_page(catalog) as page:
        now = assigned(catalog)
        before, found = right_share(now, truth, stems, matched=True), found_species(now, truth, stems)
        n_new_categories = len(page.get("overview")["queue"])
        again = None if stored is None else lambda: discover(catalog, stored)
        person = Person(page, lambda path: truth[Path(path).stem], again)
        person.review(n_decisions)
        (again or functools.partial(page.work, "discover"))()
        now = assigned(catalog)
        after, named = right_share(now, truth, stems, matched=False), set(now.name_of.values())
        page.work("accept")
    new = {truth[stem] for stem in stems} - known_names
    return {
        "labels": n_labels,
        "batch": batch,
        "said": said,
        "right_before": round(100 * before, 1),
        "new_categories": n_new_categories,
        "new_species_found": f"{len(new & found)} of {len(new)}",
        "decisions": dict(person.made),
        "decisions_per_100": round(100 * person.made.total() / len(stems), 1),
        "photos_shown": person.n_shown,
        "photos_named": person.n_named,
        "clicks": person.n_clicks,
        "right_after": round(100 * after, 1),
        "new_species_named": f"{len(new & named)} of {len(new)}",
    }


def photos_of(args: argparse.Namespace) -> tuple[dict[str, list[Writer]], StoredFeatures | None]:
    """What to write as files, by species, and the features where they are stored."""
    if args.features is not None:
        with np.load(args.features, allow_pickle=False) as archive:
            rows, names = archive["x"].astype(np.float32), archive["y"]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return stored_photos([f"species {name}" for name in names], args.seed), StoredFeatures(rows)
    if args.data == "cub":
        return cub_photos(args.npz, N_SPECIES, args.seed), None
    return field_guide_photos(N_SPECIES, args.seed, n_per_category=N_PER_SPECIES), None


def main() -> None:
    """All batches that are not done yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=("cub", "fieldguide"), default="cub")
    parser.add_argument("--npz", type=Path, help="the archive of CUB's photos")
    parser.add_argument("--features", type=Path, help="an archive of features and names, in the place of photos")
    parser.add_argument("--folder", type=Path, required=True, help="where photos, workspaces and figures are")
    parser.add_argument("--labels", default="20,3,0", help="labeled photos of each known species: 20, 3, 0")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.features is None and args.data == "cub" and args.npz is None:
        parser.error("give --npz or --features, or --data fieldguide")
    if not {*args.labels.split(",")} <= {"20", "3", "0"}:
        parser.error(f"--labels must be some of 20,3,0, got {args.labels}")
    record, photos = args.folder / "figures.jsonl", args.folder / "photos"
    writers, stored = photos_of(args)
    if not photos.exists():
        shutil.rmtree(args.folder / "unfinished", ignore_errors=True)
        write_photos(writers, args.folder, args.seed)
    if stored is None:
        igcd("embed", photos / "all", "--out", args.folder / "features", "--shard", 256)
    lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    done = {(one["labels"], one["batch"]): one for one in map(json.loads, lines)}
    for n_labels in map(int, args.labels.split(",")):
        for batch in (1, 2) if n_labels else (1,):
            figures = done.get((n_labels, batch)) or review_batch(
                photos,
                args.folder / f"workspace-{n_labels}",
                batch,
                n_labels=n_labels,
                n_decisions=DECISIONS if n_labels else DECISIONS_WITHOUT_LABELS,
                stored=stored,
            )
            if (n_labels, batch) not in done:
                with record.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(figures) + "\n")
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
