"""Density, peaks and removal of redundant peaks: how fast, how much memory, and the same peaks as the definition gives.

    python benchmarks/density.py                      # time, at 500, 1,000, 2,000 and 25,000 features of width 512
    python benchmarks/density.py --memory 200000      # peak memory beyond the input, in a process of its own
    python benchmarks/density.py --json               # for machines

Compared are
- `igcd`: `neighbor_graph` and `find_density_peaks`;
- `transcribed`: eq. 8 and 9 word by word, one cosine per pair, a full sort per image, peaks and overlaps in double
  loops. Its pair loop costs the same for every image, so above 2,000 features it is timed on some images and
  multiplied; such figures are marked with ~. Its peaks are compared where it ran in full;
- `full sort`: the same, but similarities from one matrix product for 256 images. It runs in full at every
  size, in float64, and gives the peaks to compare with.

All run on the threads given by --threads (1), on the same features. Seconds are of processor time, which other work
on the machine disturbs least. Exits with 1 if any peaks differ.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from igcd.functional.density import find_density_peaks
from igcd.functional.neighbors import neighbor_graph

WIDTH = 512
N_NEIGHBORS, N_OVERLAP_NEIGHBORS, MAX_IOU = 10, 20, 0.6
TRANSCRIBED_IN_FULL = 2_000
SAMPLED_IMAGES = 40


def clustered_features(n: int, *, images_per_cluster: int = 100, spread: float = 1.0, seed: int = 0) -> Tensor:
    """Gaussian clusters of about `images_per_cluster` images, (n, 512) float32, written in place chunk by chunk."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(max(1, n // images_per_cluster), WIDTH, generator=generator)
    features = torch.empty(n, WIDTH)
    for chunk in torch.split(features, 10_000):
        rows = torch.randint(len(centers), (len(chunk),), generator=generator)
        torch.randn(chunk.shape, generator=generator, out=chunk).mul_(spread).add_(centers[rows])
    return features


def pairwise_similarities(unit: Tensor, images: Iterable[int]) -> Iterator[tuple[int, Tensor]]:
    """Image by image, the similarities with all images, one product of two features at a time."""
    for i in images:
        similarity = torch.empty(len(unit), dtype=unit.dtype)
        for j in range(len(unit)):
            similarity[j] = unit[i] @ unit[j]
        yield i, similarity


def product_similarities(unit: Tensor, images: Iterable[int]) -> Iterator[tuple[int, Tensor]]:
    """The same from the rows of the N×N matrix, of which some are held at a time."""
    for chunk in torch.split(torch.tensor(list(images)), 256):
        yield from zip(chunk.tolist(), unit[chunk] @ unit.T, strict=True)


def sorted_neighbors(similarities: Iterable[tuple[int, Tensor]]) -> tuple[list[list[int]], list[float]]:
    """The K^d nearest of each image, and its density."""
    nearest, densities = [], []
    for i, similarity in similarities:
        order = similarity.argsort(descending=True)
        order = order[order != i]
        nearest.append(order[:N_OVERLAP_NEIGHBORS].tolist())
        densities.append(float(similarity[order[:N_NEIGHBORS]].mean()))
    return nearest, densities


def peaks_by_loops(nearest: list[list[int]], densities: list[float]) -> list[int]:
    """Eq. 9 and the removal of redundant peaks, loop by loop, densest first."""
    peaks = [i for i in range(len(nearest)) if all(densities[i] > densities[k] for k in nearest[i][:N_NEIGHBORS])]
    kept: list[int] = []
    for i in sorted(peaks, key=lambda peak: -densities[peak]):
        for j in kept:
            a, b = set(nearest[i]), set(nearest[j])
            if len(a & b) / len(a | b) > MAX_IOU:
                break
        else:
            kept.append(i)
    return kept


Similarities = Callable[[Tensor, Iterable[int]], Iterator[tuple[int, Tensor]]]


def run_loops(features: Tensor, similarities: Similarities) -> tuple[float, list[int]]:
    start = time.process_time()
    unit = features / features.norm(dim=1, keepdim=True)
    peaks = peaks_by_loops(*sorted_neighbors(similarities(unit, range(len(unit)))))
    return time.process_time() - start, peaks


def time_sampled_pairs(features: Tensor) -> float:
    """Seconds the transcription would take for all images, from some of them."""
    unit = features / features.norm(dim=1, keepdim=True)
    images = torch.linspace(0, len(unit) - 1, SAMPLED_IMAGES).long().tolist()
    start = time.process_time()
    sorted_neighbors(pairwise_similarities(unit, images))
    return (time.process_time() - start) / SAMPLED_IMAGES * len(unit)


def run_igcd(features: Tensor) -> tuple[float, list[int]]:
    start = time.process_time()
    graph = neighbor_graph(features, max(N_NEIGHBORS, N_OVERLAP_NEIGHBORS))
    found = find_density_peaks(graph, n_neighbors=N_NEIGHBORS, n_overlap_neighbors=N_OVERLAP_NEIGHBORS, max_iou=MAX_IOU)
    return time.process_time() - start, found.idx.tolist()


def compare(n: int) -> dict[str, object]:
    features = clustered_features(n)
    seconds, peaks = min(run_igcd(features) for _ in range(3))
    full_sort_seconds, reference = run_loops(features.double(), product_similarities)
    same = sorted(peaks) == sorted(reference)
    in_full = n <= TRANSCRIBED_IN_FULL
    if in_full:
        transcribed_seconds, transcribed = run_loops(features, pairwise_similarities)
        same = same and sorted(transcribed) == sorted(reference)
    else:
        transcribed_seconds = time_sampled_pairs(features)
    return {
        "features": n,
        "peaks": len(peaks),
        "same_peaks": same,
        "igcd_seconds": seconds,
        "full_sort_seconds": full_sort_seconds,
        "transcribed_seconds": transcribed_seconds,
        "transcribed_in_full": in_full,
        "times_faster_than_transcribed": transcribed_seconds / seconds,
        "times_faster_than_full_sort": full_sort_seconds / seconds,
    }


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def measure_memory(n: int) -> dict[str, object]:
    """Highest resident memory of this process from here on, less what it holds with the input alone."""
    features = clustered_features(n)
    run_igcd(features[:2_000])  # libraries load what they need on first use
    before = resident_bytes()
    seconds, peaks = run_igcd(features)
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "features": n,
        "peaks": len(peaks),
        "seconds": seconds,
        "input_megabytes": features.numel() * 4 / 1e6,
        "megabytes_beyond_input": (highest - before) / 1e6,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1_000, 2_000, 25_000])
    parser.add_argument("--memory", type=int, metavar="N", help="measure memory at N features instead of time")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    if options.memory and options.in_this_process:
        print(json.dumps(measure_memory(options.memory)))
        return 0
    if options.memory:
        command = [sys.executable, __file__, "--in-this-process", "--memory", str(options.memory)]
        command += ["--threads", str(options.threads)]
        measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        if options.json:
            print(json.dumps(measured))
        else:
            print(
                "{features:,} features of {input_megabytes:,.0f} MB: {megabytes_beyond_input:,.0f} MB beyond".format(
                    **measured
                )
            )
            print("{seconds:,.0f} s, {peaks:,} peaks".format(**measured))
        return 0

    rows = []
    if not options.json:
        print(
            f"{'features':>9} {'peaks':>6} {'same':>5} {'igcd':>9} {'full sort':>12} {'transcribed':>14} {'faster':>9}"
        )
    for n in options.sizes:
        row = compare(n)
        rows.append(row)
        if not options.json:
            about = "" if row["transcribed_in_full"] else "~"
            transcribed = f"{about}{row['transcribed_seconds']:,.1f} s"
            print(
                f"{n:>9,} {row['peaks']:>6} {'yes' if row['same_peaks'] else 'NO':>5} {row['igcd_seconds']:>7.3f} s "
                f"{row['full_sort_seconds']:>10.1f} s {transcribed:>14} "
                f"{about}{row['times_faster_than_transcribed']:>7,.0f}×",
                flush=True,
            )
    if options.json:
        print(json.dumps(rows, indent=2))
    return 0 if all(row["same_peaks"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
