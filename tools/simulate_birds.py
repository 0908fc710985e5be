"""A simulated person with two batches of bird photos: what 40 decisions come to.

    python tools/simulate_birds.py --npz cub200_128px.npz --folder birds --batch 1
    python tools/simulate_birds.py --npz cub200_128px.npz --folder birds --batch 2
    python tools/simulate_birds.py --features cub_60x55_lite0_224px.npz --folder birds --batch 1

30 species are known by 20 labeled photos each (`--labels`). Each batch brings 8 photos of each of them and 15 of each
of 8 species that are new. A batch is discovered, reviewed (tools/reviewing_person.py) with `--decisions`, and accepted.
Photos are files. With `--features` each file stands for a row of an archive with the arrays x (features) and y (names),
which is what is compared then; nothing is embedded.

A line of JSON goes to standard output. Right is a photo in the category that has its name; before the review, new
categories are matched one to one with the new species.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from reviewing_person import AUTHOR, Person, all_photos
from scipy.optimize import linear_sum_assignment

from igcd.data.sources import load_source
from igcd.types import Pixels
from igcd.workspace import queries
from igcd.workspace.accept import accept_stage
from igcd.workspace.adapt import current_encoder
from igcd.workspace.catalog import Catalog, open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.feature_store import Features
from igcd.workspace.features import PhotoEncoder, encoder_of
from igcd.workspace.init import init_workspace
from igcd.workspace.photos import add_photos

N_KNOWN, N_NEW, N_BATCHES = 30, 8, 2
MAX_LABELED, N_KNOWN_IN_BATCH, N_NEW_IN_BATCH = 20, 8, 15
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


def write_photos(
    names: np.ndarray, picture: Callable[[int], Pixels], folder: Path, *, n_labeled: int, seed: int
) -> dict[str, str]:
    """Labeled photos below `known`, the others below `batch1` and `batch2`; the species of each file by its stem."""
    rng = np.random.default_rng(seed)
    truth: dict[str, str] = {}
    for place, species in enumerate(rng.permutation(np.unique(names))[: N_KNOWN + N_BATCHES * N_NEW]):
        rows = rng.permutation(np.flatnonzero(names == species)).tolist()
        folders = [folder / "known" / f"bird {species}"] * n_labeled + [None] * (MAX_LABELED - n_labeled)
        folders += [folder / "batch1"] * N_KNOWN_IN_BATCH + [folder / "batch2"] * N_KNOWN_IN_BATCH
        if place >= N_KNOWN:
            folders = [folder / f"batch{1 + (place - N_KNOWN) // N_NEW}"] * N_NEW_IN_BATCH
        for row, target in zip(rows, folders, strict=False):
            if target is not None:
                target.mkdir(parents=True, exist_ok=True)
                Image.fromarray(picture(row)).save(target / f"{row:05d}.png")
                truth[f"{row:05d}"] = f"bird {species}"
    return truth


def right_share(catalog: Catalog, truth: dict[str, str], stems: set[str], *, matched: bool) -> float:
    """Share of these photos in the category that has their name; `matched`: unnamed ones as well as possible."""
    categories = queries.categories(catalog)
    names = {category.name for category in categories}
    n_right, unnamed = 0, {}
    for category in categories:
        for photo in all_photos(catalog, category.id):
            stem = Path(photo.path).stem
            if stem in stems and category.name:
                n_right += category.name == truth[stem]
            elif stem in stems and truth[stem] not in names:
                unnamed[category.id, truth[stem]] = unnamed.get((category.id, truth[stem]), 0) + 1
    if matched and unnamed:
        rows, columns = (sorted({key[side] for key in unnamed}) for side in (0, 1))
        shared = np.array([[unnamed.get((row, column), 0) for column in columns] for row in rows])
        n_right += int(shared[linear_sum_assignment(-shared)].sum())
    return n_right / len(stems)


def review_batch(folder: Path, batch: int, encoder_of_workspace: Callable[[Catalog], PhotoEncoder], n: int) -> dict:
    """Adds, discovers, reviews and accepts a batch; its figures."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    stems = {file.stem for file in (folder / f"batch{batch}").iterdir()}
    with open_catalog(folder / "workspace") as catalog:
        encoder = encoder_of_workspace(catalog)
        known = {category.name for category in queries.categories(catalog) if category.name}
        add_photos(catalog, [folder / f"batch{batch}"])
        said = discover(catalog, encoder).sentence()
        before = right_share(catalog, truth, stems, matched=True)
        n_found = len(queries.queue(catalog))
        person = Person(catalog, lambda photo: truth[Path(photo.path).stem], lambda: discover(catalog, encoder))
        person.review(n)
        discover(catalog, encoder)
        after = right_share(catalog, truth, stems, matched=False)
        named = {category.name for category in queries.categories(catalog)}
        accept_stage(catalog, author=AUTHOR)
    new = {truth[stem] for stem in stems} - known
    return {
        "batch": batch,
        "said": said,
        "right_before": round(100 * before, 1),
        "new_categories": n_found,
        "decisions": dict(person.made),
        "right_after": round(100 * after, 1),
        "new_species_named": f"{len(new & named)} of {len(new)}",
    }


def main() -> None:
    """One batch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--npz", type=Path, help="the archive of CUB's photos")
    parser.add_argument("--features", type=Path, help="an archive of features and names, in the place of photos")
    parser.add_argument("--folder", type=Path, required=True, help="where photos and workspace are")
    parser.add_argument("--batch", type=int, choices=(1, 2), required=True)
    parser.add_argument("--decisions", type=int, default=40)
    parser.add_argument("--labels", type=int, default=MAX_LABELED, help="labeled photos of each known species")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if (args.npz is None) == (args.features is None):
        parser.error("give --npz or --features")
    if args.features is not None:
        with np.load(args.features, allow_pickle=False) as archive:
            rows, names = archive["x"].astype(np.float32), archive["y"]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        stored, picture, size = StoredFeatures(rows), noise, SIDE
        encoder_of_workspace: Callable[[Catalog], PhotoEncoder] = lambda _catalog: stored  # noqa: E731
    else:
        birds = load_source("cub", args.npz)
        names, picture, size = np.array(birds.category_names)[birds.categories], birds.images.pixels, args.size
        encoder_of_workspace = lambda catalog: current_encoder(catalog, encoder_of(catalog))  # noqa: E731
    if args.batch == 1:
        if args.folder.exists():
            sys.exit(f"{args.folder} exists already; give a new folder for batch 1")
        truth = write_photos(names, picture, args.folder, n_labeled=args.labels, seed=args.seed)
        (args.folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
        init_workspace(args.folder / "workspace", args.folder / "known", from_folders=True, encoder={"size": size})
    print(json.dumps(review_batch(args.folder, args.batch, encoder_of_workspace, args.decisions)))


if __name__ == "__main__":
    main()
