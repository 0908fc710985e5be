"""How many wrong labels are found among right ones, and how many right ones are suspected.

    python benchmarks/wrong_labels.py --features cub_60x55_lite0_224px.npz [--labels 20] [--share 0.03] [--draws 0,1,2]
    python benchmarks/wrong_labels.py --folder guide       # the folder of tools/simulate_birds.py

Features and names come from an archive with the arrays x and y, or from the photos that a simulated person was given.
Of each category some rows are labeled. A share of the labels is replaced: by any other category ("random"), or by one
of the three most similar ones ("similar"). A line of JSON for each kind of mistake, means over the draws.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import average_precision_score

from igcd.types import BoolArray, IntArray
from igcd.workspace.comparing import fit_comparison
from igcd.workspace.doubts import check_labels
from igcd.workspace.feature_store import Features

N_SIMILAR = 3


def read_rows(features: Path | None, folder: Path) -> tuple[Features, IntArray]:
    """Rows of length 1 and the numbers of their categories. (n, d), (n,)."""
    if features is not None:
        with np.load(features, allow_pickle=False) as archive:
            rows, names = archive["x"].astype(np.float32), archive["y"].tolist()
    else:
        rows = np.load(folder / "features" / "features.npy").astype(np.float32)
        truth = json.loads((folder / "photos" / "truth.json").read_text(encoding="utf-8"))
        lines = (folder / "features" / "images.jsonl").read_text(encoding="utf-8").splitlines()
        names = [truth[Path(json.loads(line)[0]).stem] for line in lines]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), np.unique(names, return_inverse=True)[1]


def some_of_each(categories: IntArray, n_rows: int, rng: np.random.Generator) -> IntArray:
    """Positions of at most `n_rows` of each category. (n,) -> (m,)."""
    own = [np.flatnonzero(categories == category) for category in np.unique(categories)]
    return np.concatenate([rng.permutation(rows)[:n_rows] for rows in own])


def with_mistakes(rows: Features, categories: IntArray, share: float, kind: str, rng: np.random.Generator) -> IntArray:
    """The categories with a share of them replaced. (n, d), (n,) -> (n,)."""
    ids = np.unique(categories)
    means = np.stack([rows[categories == one].mean(axis=0) for one in ids])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    nearest = np.argsort(-(means @ means.T), axis=1)[:, 1:]  # without itself
    n_offered = N_SIMILAR if kind == "similar" else nearest.shape[1]
    labels = categories.copy()
    for row in rng.permutation(len(labels))[: round(share * len(labels))]:
        labels[row] = ids[nearest[np.searchsorted(ids, categories[row]), rng.integers(n_offered)]]
    return labels


def figures(rows: Features, categories: IntArray, labels: IntArray) -> dict[str, float]:
    """How the list of suspected mistakes fits the truth. (n, d), (n,), (n,)."""
    check = check_labels(fit_comparison(rows, labels)(rows), torch.from_numpy(labels))
    wrong: BoolArray = labels != categories
    listed = check.is_doubtful
    found = listed & wrong
    return {
        "labels": len(labels),
        "wrong": int(wrong.sum()),
        "listed": int(listed.sum()),
        "expected_wrong": float((1 - check.probability[listed]).sum()),
        "listed_wrong": int(found.sum()),
        "alternative_right": float((check.other == categories)[found].mean()) if found.any() else np.nan,
        "average_precision": float(average_precision_score(wrong, -check.probability)) if wrong.any() else np.nan,
    }


def main() -> None:
    """A line for each kind of mistake."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--features", type=Path, help="an archive of features and names")
    source.add_argument("--folder", type=Path, help="the folder of tools/simulate_birds.py")
    parser.add_argument("--labels", type=int, default=20, help="labels of each category")
    parser.add_argument("--share", type=float, default=0.03, help="share of the labels that is replaced")
    parser.add_argument("--draws", default="0,1,2")
    args = parser.parse_args()
    all_rows, all_categories = read_rows(args.features, args.folder)
    for kind in ("none", "random", "similar"):
        found = []
        for draw in map(int, args.draws.split(",")):
            rng = np.random.default_rng(draw)
            chosen = some_of_each(all_categories, args.labels, rng)
            rows, categories = all_rows[chosen], all_categories[chosen]
            labels = with_mistakes(rows, categories, 0.0 if kind == "none" else args.share, kind, rng)
            found.append(figures(rows, categories, labels))
        means = {
            name: round(float(np.nanmean([one[name] for one in found])), 2)
            for name in found[0]
            if not all(np.isnan(one[name]) for one in found)
        }
        print(json.dumps({"mistakes": kind, **means}), flush=True)


if __name__ == "__main__":
    main()
