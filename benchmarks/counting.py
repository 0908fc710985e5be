"""The number of categories: density peaks against k-means with Brent's search, accuracy and time in one run.

    python benchmarks/counting.py                           # synthetic features
    python benchmarks/counting.py --features features.npz   # yours: arrays `features` (n, d), `categories` (n,)
    python benchmarks/counting.py --starts 1 --methods density kmeans silhouette --json

For each order of the categories (--orders, 3), the first --known are labeled with --labeled images each and have
--again more among the unlabeled; the next --novel have --labeled images there and no label (the setting of METHODS
"first experiments": 70 known of 50 and 10, 10 novel of 50). The number of novel categories is not given. GCD's k-means
has ten starts for every number it tries (scikit-learn's default when it was written). Seconds are of processor time,
on --threads threads (1).
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.counting import COUNT_METHODS, estimate_count


def synthetic_features(n_categories: int, n_images: int, *, width: int = 512, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Overlapping Gaussian categories whose variance falls along the dimensions, normalised: features, categories."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.arange(1, width + 1).float().rsqrt()
    categories = torch.arange(n_categories).repeat_interleave(n_images)
    centers = 0.9 * torch.randn(n_categories, width, generator=generator) * scales
    noise = torch.randn(len(categories), width, generator=generator) * scales
    return normalize(centers[categories] + noise, dim=1), categories


def read_features(path: Path) -> tuple[Tensor, Tensor]:
    with np.load(path, allow_pickle=False) as arrays:
        return torch.from_numpy(arrays["features"]).float(), torch.from_numpy(arrays["categories"]).long()


def stage(
    features: Tensor, categories: Tensor, order: Tensor, *, known: int, novel: int, labeled: int, again: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Labeled features, their labels and unlabeled features, for one order of the categories."""
    rows_of = [(categories == category).nonzero()[:, 0] for category in order[: known + novel]]
    short = [len(rows) for rows in rows_of[:known] if len(rows) < labeled + again]
    if len(rows_of) < known + novel or short:
        raise SystemExit(f"not enough: {len(rows_of)} categories, known ones with {short} images; lower the numbers")
    labeled_rows = torch.cat([rows[:labeled] for rows in rows_of[:known]])
    unlabeled_rows = torch.cat(
        [rows[labeled : labeled + again] for rows in rows_of[:known]] + [rows[:labeled] for rows in rows_of[known:]]
    )
    return features[labeled_rows], categories[labeled_rows], features[unlabeled_rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--known", type=int, default=70)
    parser.add_argument("--novel", type=int, default=10)
    parser.add_argument("--labeled", type=int, default=50)
    parser.add_argument("--again", type=int, default=10)
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=["density", "kmeans"], choices=COUNT_METHODS)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--max-categories", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    if options.features:
        features, categories = read_features(options.features)
    else:
        features, categories = synthetic_features(options.known + options.novel, options.labeled + options.again)
    different = categories.unique()
    rows = []
    for seed in range(options.orders):
        order = different[torch.randperm(len(different), generator=torch.Generator().manual_seed(seed))]
        sizes = {name: getattr(options, name) for name in ("known", "novel", "labeled", "again")}
        given = stage(features, categories, order, **sizes)
        for method in options.methods:
            start = time.process_time()
            found = estimate_count(
                method,
                *given,
                generator=torch.Generator().manual_seed(seed),
                max_categories=options.max_categories,
                n_starts=options.starts,
            )
            seconds = time.process_time() - start
            row = {"order": seed, "method": method, "novel_found": found.n_novel, "novel": options.novel}
            row |= {"seconds": seconds, "trials": found.n_trials, "details": dict(found.details)}
            rows.append(row)
            if not options.json:
                print(
                    f"order {seed}  {method:<10} {found.n_novel:>4} novel of {options.novel}  {seconds:>8.2f} s  "
                    f"{found.n_trials} tried",
                    flush=True,
                )
    summary = {}
    for method in options.methods:
        own = [row for row in rows if row["method"] == method]
        summary[method] = {
            "mean_error": sum(abs(row["novel_found"] - row["novel"]) for row in own) / len(own),
            "mean_seconds": sum(row["seconds"] for row in own) / len(own),
        }
    if options.json:
        print(json.dumps({"rows": rows, "summary": summary}, indent=2))
        return
    for method, figures in summary.items():
        line = f"{method:<10} mean error {figures['mean_error']:.1f}, {figures['mean_seconds']:.2f} s"
        if method != "density" and "density" in summary:
            line += f", density {figures['mean_seconds'] / summary['density']['mean_seconds']:.0f}× faster"
        print(line)


if __name__ == "__main__":
    main()
