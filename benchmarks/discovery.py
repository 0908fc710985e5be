"""The discovery core: how fast and how much memory, from features to the category of each row.

    python benchmarks/discovery.py                    # 5,000, 20,000 and 50,000 features of width 512
    python benchmarks/discovery.py --sizes 50000      # the bar of the project: at most 30 s and 1,000 MB
    python benchmarks/discovery.py --profile 20000    # where the time goes
    python benchmarks/discovery.py --json             # for machines

Features are a mixture of 200 Gaussian categories with variances that fall along the dimensions as they do in a
network; half of the categories are known by 10 labels each. Measured is `fit_projection` to 256 components and
`discover`, each size in a process of its own on --threads threads (1). Seconds are of processor time, which other work
on the machine disturbs least. Memory is the highest that the process has held: `megabytes` in all, with Python, torch
and the input, and `beyond_input` less what it held before the work began.
"""

import argparse
import cProfile
import json
import pstats
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from igcd.functional.discovery import Discovered, discover
from igcd.functional.projection import fit_projection

WIDTH, N_COMPONENTS = 512, 256
N_CATEGORIES, N_LABELS = 200, 10


def mixture(n: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features (n, 512) float32, written in place chunk by chunk, and the category of each."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.arange(1, WIDTH + 1).float().rsqrt()
    centers = torch.randn(N_CATEGORIES, WIDTH, generator=generator) * scales
    categories = torch.arange(n) % N_CATEGORIES
    features = torch.empty(n, WIDTH)
    for chunk, own in zip(torch.split(features, 10_000), torch.split(categories, 10_000), strict=True):
        torch.randn(chunk.shape, generator=generator, out=chunk).mul_(scales).add_(centers[own])
    return features, categories


def run(features: Tensor, categories: Tensor) -> Discovered:
    """The first rows of the first half of the categories are labeled."""
    first = torch.arange(len(features)) < N_LABELS * N_CATEGORIES
    is_labeled = first & (categories < N_CATEGORIES // 2)
    rows = fit_projection(features, n_components=N_COMPONENTS)(features)
    return discover(rows[~is_labeled], rows[is_labeled], categories[is_labeled])


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def measure(n: int) -> dict[str, object]:
    features, categories = mixture(n)
    run(features[:2_000], categories[:2_000])  # libraries load what they need on first use
    before, start = resident_bytes(), time.process_time()
    found = run(features, categories)
    seconds = time.process_time() - start
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "features": n,
        "novel": found.n_novel,
        "seconds": seconds,
        "megabytes": highest / 1e6,
        "megabytes_beyond_input": (highest - before) / 1e6,
    }


def profile(n: int) -> None:
    features, categories = mixture(n)
    profiler = cProfile.Profile(time.process_time)
    profiler.runcall(run, features, categories)
    pstats.Stats(profiler).sort_stats("cumulative").print_stats(30)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5_000, 20_000, 50_000])
    parser.add_argument("--profile", type=int, metavar="N", help="show where the time goes at N features instead")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    if options.profile:
        profile(options.profile)
        return 0
    if options.in_this_process:
        print(json.dumps(measure(options.sizes[0])))
        return 0
    rows = []
    if not options.json:
        print(f"{'features':>9} {'novel':>6} {'seconds':>8} {'MB':>7} {'MB beyond input':>16}")
    for n in options.sizes:
        command = [sys.executable, __file__, "--in-this-process", "--sizes", str(n), "--threads", str(options.threads)]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        rows.append(row)
        if not options.json:
            print(
                f"{n:>9,} {row['novel']:>6} {row['seconds']:>8.1f} {row['megabytes']:>7,.0f} "
                f"{row['megabytes_beyond_input']:>16,.0f}",
                flush=True,
            )
    if options.json:
        print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
