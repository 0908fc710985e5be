"""Semi-supervised k-means: how fast, against scikit-learn's k-means in the same run, and with the same result.

    python benchmarks/kmeans.py                    # 25,000 × 512, 1,000 clusters, ten starts
    python benchmarks/kmeans.py --quick            # 5,000 × 128, 100 clusters, three starts
    python benchmarks/kmeans.py --json             # for machines

Features are Gaussian clusters whose variance falls along the dimensions as it does in a network, L2-normalised.
- `semi-supervised`: half of the categories known, half of their images labeled, as in GCD's protocol;
- `unlabeled`: nothing labeled, one start from given first centers;
- `scikit-learn`: KMeans from the same first centers, which must lead to the same inertia within 1 in 1,000 (in
  float32 two sums of another order may send an image between two centers to either, and k-means goes on from there);
- `drawing`: k-means++ alone, beside scikit-learn's with one candidate per center.

Seconds are of processor time on --threads threads (1), which other work on the machine disturbs least; with two threads
on two idle cores the clock shows about half of them. Exits with 1 if the results differ.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from sklearn.cluster import KMeans, kmeans_plusplus
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.kmeans import kmeans, kmeans_plus_plus, semi_supervised_kmeans

T = TypeVar("T")


def clustered_features(n: int, width: int, n_clusters: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features (n, d) and the cluster of each."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.arange(1, width + 1).float().rsqrt()
    centers = torch.randn(n_clusters, width, generator=generator) * scales
    rows = torch.randint(n_clusters, (n,), generator=generator)
    return normalize(centers[rows] + torch.randn(n, width, generator=generator) * scales, dim=1), rows


def timed(run: Callable[[], T]) -> tuple[T, float, float]:
    """What a function gives, its seconds of processor time and those on the clock."""
    processor, clock = time.process_time(), time.perf_counter()
    found = run()
    return found, time.process_time() - processor, time.perf_counter() - clock


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    n, width, n_clusters, n_starts = (5_000, 128, 100, 3) if options.quick else (25_000, 512, 1_000, 10)

    features, rows = clustered_features(n, width, n_clusters)
    generator = torch.Generator().manual_seed(1)
    is_labeled = (rows < n_clusters // 2) & (torch.rand(n, generator=generator) < 0.5)
    found, seconds, clock = timed(
        lambda: semi_supervised_kmeans(
            features[is_labeled],
            rows[is_labeled],
            features[~is_labeled],
            n_clusters=n_clusters,
            n_starts=n_starts,
            generator=generator,
        )
    )
    drawn, drawing, _ = timed(lambda: kmeans_plus_plus(features, n_clusters, generator=generator))
    _, their_drawing, _ = timed(lambda: kmeans_plusplus(features.numpy(), n_clusters, random_state=0, n_local_trials=1))
    first = features[drawn]
    ours, our_seconds, _ = timed(
        lambda: kmeans(features, n_clusters=n_clusters, generator=generator, initial_centers=first)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = KMeans(n_clusters, init=first.numpy(), n_init=1, algorithm="lloyd")
        theirs, their_seconds, _ = timed(lambda: estimator.fit(features.numpy()))
    same = abs(ours.inertia / float(theirs.inertia_) - 1) < 1e-3
    result = {
        "features": n,
        "width": width,
        "clusters": n_clusters,
        "threads": options.threads,
        "labeled": int(is_labeled.sum()),
        "starts": n_starts,
        "semi_supervised_seconds": seconds,
        "semi_supervised_clock_seconds": clock,
        "semi_supervised_iterations_of_best": found.n_iterations,
        "unlabeled_seconds": our_seconds,
        "unlabeled_iterations": ours.n_iterations,
        "sklearn_seconds": their_seconds,
        "sklearn_iterations": int(theirs.n_iter_),
        "times_faster_than_sklearn": their_seconds / our_seconds,
        "times_faster_per_iteration": their_seconds / theirs.n_iter_ / (our_seconds / ours.n_iterations),
        "drawing_seconds": drawing,
        "sklearn_drawing_seconds": their_drawing,
        "same_inertia": same,
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return 0 if same else 1
    print(f"{n:,} × {width}, {n_clusters:,} clusters, {options.threads} threads; seconds of processor time")
    print(f"semi-supervised, {n_starts} starts, {result['labeled']:,} labeled: {seconds:.1f} s ({clock:.1f} s clock)")
    print(f"unlabeled, one start: {our_seconds:.1f} s, {ours.n_iterations} iterations")
    print(
        f"scikit-learn: {their_seconds:.1f} s, {theirs.n_iter_} iterations; igcd {their_seconds / our_seconds:.1f}× "
        f"faster, {result['times_faster_per_iteration']:.1f}× per iteration; same inertia: {'yes' if same else 'NO'}"
    )
    print(f"drawing first centers: {drawing:.1f} s, scikit-learn {their_drawing:.1f} s")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
