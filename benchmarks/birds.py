"""A person's birds: what `igcd discover` finds in a batch of photos before any decision.

python benchmarks/birds.py --npz cub200_128px.npz [--draws 0,1,2] [--size 224] [--no-middle]
python benchmarks/birds.py --npz cub200_128px.npz --backbone tf_efficientnet_lite2
python benchmarks/birds.py --npz cub200_128px.npz --limit

Of 38 species drawn from CUB-200-2011's training images, 30 are known by 20 labeled photos each. A batch brings 8 photos
of each of them and 15 of each of the 8 other species. Photos are written as files and go through a workspace as a
person's would: init, add, discover. Right is a photo in the category it belongs to, new categories matched one to one
with new species. A species is found if it is what most photos of some new category are.

How far probabilities can be trusted: of the photos that are called very likely of a known category, how many are of it
and how many should be by their probabilities; the same for each range of probabilities, all photos in a category.

`--limit` asks what the features allow: logistic regression that is also given the species of four fifths of the new
photos says which species the other fifth and the photos of known species are.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from igcd.assembly import build_encoder
from igcd.config import EncoderConfig
from igcd.data.dataset import Dataset
from igcd.data.quarantine import Quarantine
from igcd.data.sources import load_source
from igcd.embedding.engines import photo_encoder
from igcd.workspace import queries
from igcd.workspace.adapt import current_encoder
from igcd.workspace.catalog import open_catalog
from igcd.workspace.defaults import default_encoder
from igcd.workspace.discover import discover
from igcd.workspace.features import embed_images, encoder_of
from igcd.workspace.init import init_workspace
from igcd.workspace.outlook import VERY_LIKELY
from igcd.workspace.photos import add_photos

N_KNOWN, N_NEW = 30, 8
N_LABELED, N_KNOWN_IN_BATCH, N_NEW_IN_BATCH = 20, 8, 15
PROBABILITIES = (0.0, 0.2, 0.4, 0.6, 0.8)
N_FOLDS = 5


def drawn(birds: Dataset, seed: int) -> Iterator[tuple[int, str, bool]]:
    """Photos of a draw: the row of each, its species ("new …" if it is new), and whether it is labeled."""
    categories = np.array(birds.category_names)[birds.categories]
    rng = np.random.default_rng(seed)
    for place, species in enumerate(rng.permutation(np.unique(categories))[: N_KNOWN + N_NEW]):
        rows = rng.permutation(np.flatnonzero(~birds.is_test & (categories == species)))
        n_labeled, n_batch = (N_LABELED, N_KNOWN_IN_BATCH) if place < N_KNOWN else (0, N_NEW_IN_BATCH)
        for number, row in enumerate(rows[: n_labeled + n_batch].tolist()):
            yield row, f"new {species}" if place >= N_KNOWN else str(species), number < n_labeled


def write_photos(npz: Path, folder: Path, seed: int) -> dict[str, str]:
    """Labeled photos below `known`, the batch below `batch`; returns the species of each file by its stem."""
    birds = load_source("cub", npz)
    truth: dict[str, str] = {}
    for row, species, is_labeled in drawn(birds, seed):
        stem = f"p{len(truth):05d}"
        target = folder / "known" / species if is_labeled else folder / "batch"
        target.mkdir(parents=True, exist_ok=True)
        Image.fromarray(birds.images.pixels(row)).save(target / f"{stem}.png")
        truth[stem] = species
    return truth


def limit(npz: Path, seed: int, encoder: dict[str, Any]) -> dict[str, float | int]:
    """Percent of a batch that logistic regression has right if it is given most species of new photos, too."""
    birds = load_source("cub", npz)
    rows, species, is_labeled = (np.array(column) for column in zip(*drawn(birds, seed), strict=True))
    chosen = default_encoder(encoder.get("backbone"), encoder.get("size")) | encoder
    encode = photo_encoder(build_encoder(EncoderConfig(**chosen, cache=None), quarantine=Quarantine()), "torch")
    _, x = embed_images(encode, birds.take(rows).images, quarantine=Quarantine())
    is_new = np.char.startswith(species, "new ")
    fold = np.random.default_rng(0).integers(N_FOLDS, size=len(rows))
    right = np.zeros(len(rows), dtype=bool)
    for left_out in range(N_FOLDS):
        given, asked = is_labeled | (is_new & (fold != left_out)), ~is_labeled & (fold == left_out)
        model = LogisticRegression(C=100, max_iter=500).fit(x[given], species[given])
        right[asked] = model.predict(x[asked]) == species[asked]
    parts = {"right": ~is_labeled, "known_right": ~is_labeled & ~is_new, "new_right": is_new}
    return {"draw": seed} | {name: round(100 * float(right[part].mean()), 1) for name, part in parts.items()}


def figures(npz: Path, seed: int, encoder: dict[str, Any]) -> dict[str, object]:
    """One draw of species through a workspace."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        truth = write_photos(npz, folder, seed)
        started = time.monotonic()
        init_workspace(folder / "workspace", folder / "known", from_folders=True, encoder=encoder)
        with open_catalog(folder / "workspace") as catalog:
            add_photos(catalog, [folder / "batch"])
            report = discover(catalog, current_encoder(catalog, encoder_of(catalog)))
            named = {category.id: category.name for category in queries.categories(catalog)}
            batch = {path.stem for path in (folder / "batch").iterdir()}
            with catalog.snapshot() as db:
                rows = db.execute("SELECT path, category, probability FROM photo_paths JOIN assignments USING (photo)")
                rows = rows.fetchall()
        assigned = {Path(row["path"]).stem: row["category"] for row in rows}
        probability = {Path(row["path"]).stem: row["probability"] for row in rows}
        seconds = time.monotonic() - started
    predicted = {stem: named.get(assigned.get(stem)) or assigned.get(stem) for stem in batch}
    right, found = scores(predicted, truth, batch)
    trust = trusted(predicted, {stem: probability[stem] for stem in batch}, right)
    return {"draw": seed, "said": report.sentence(), "seconds": round(seconds), **found, **trust}


def trusted(predicted: dict[str, object], probability: dict[str, float], right: dict[str, bool]) -> dict[str, object]:
    """Photos by what their probability promises and what came true: [photos, percent promised, percent right]."""

    def kept(stems: list[str]) -> list[float]:
        promised, came = (np.mean([of[stem] for stem in stems]) if stems else 0.0 for of in (probability, right))
        return [len(stems), round(100 * float(promised), 1), round(100 * float(came), 1)]

    likely = [stem for stem, p in probability.items() if isinstance(predicted[stem], str) and p >= VERY_LIKELY]
    placed = {stem: p for stem, p in probability.items() if predicted[stem]}
    ranges = {
        f"{low:.1f} to {min(high, 1):.1f}": kept([stem for stem, p in placed.items() if low <= p < high])
        for low, high in pairwise([*PROBABILITIES, 1.01])
    }
    return {"very_likely": kept(likely), "by_probability": ranges}


def scores(
    predicted: dict[str, object], truth: dict[str, str], batch: set[str]
) -> tuple[dict[str, bool], dict[str, float | int]]:
    """Which photos of the batch are right; their share in percent, and the species found."""
    new_categories = sorted({str(p) for p in predicted.values() if isinstance(p, int)})
    new_species = sorted({truth[stem] for stem in batch if truth[stem].startswith("new ")})
    counts = np.zeros((len(new_categories), len(new_species)))
    for stem in batch:
        category = str(predicted.get(stem))
        if category in new_categories and truth[stem] in new_species:
            counts[new_categories.index(category), new_species.index(truth[stem])] += 1
    matched = {new_categories[r]: new_species[c] for r, c in zip(*linear_sum_assignment(-counts), strict=True)}
    right = {stem: matched.get(str(predicted.get(stem)), str(predicted.get(stem))) == truth[stem] for stem in batch}
    is_new = {stem: truth[stem].startswith("new ") for stem in batch}
    majority = [
        Counter(truth[stem] for stem in sorted(batch) if str(predicted.get(stem)) == category).most_common(1)[0][0]
        for category in new_categories
    ]
    share = lambda stems: round(100 * float(np.mean([right[stem] for stem in stems])), 1)  # noqa: E731
    return right, {
        "right": share(batch),
        "known_right": share([stem for stem in batch if not is_new[stem]]),
        "new_right": share([stem for stem in batch if is_new[stem]]),
        "categories": len(new_categories),
        "species_found": len({species for species in majority if species.startswith("new ")}),
    }


def main() -> None:
    """All draws, a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--npz", type=Path, required=True)
    parser.add_argument("--draws", default="0,1,2")
    parser.add_argument("--size", type=int, help="as `igcd init` when unset")
    parser.add_argument("--backbone", help="as `igcd init` when unset")
    parser.add_argument("--middle", action=argparse.BooleanOptionalAction, help="as `igcd init` when unset")
    parser.add_argument("--limit", action="store_true", help="what the features allow, in place of `igcd discover`")
    args = parser.parse_args()
    encoder = {name: getattr(args, name) for name in ("size", "backbone", "middle") if getattr(args, name) is not None}
    for seed in map(int, args.draws.split(",")):
        print(json.dumps((limit if args.limit else figures)(args.npz, seed, encoder)), flush=True)


if __name__ == "__main__":
    main()
