"""One epoch of every trained method at a stage with labeled and unlabeled images, against one of SimGCD.

    python benchmarks/epochs.py                                   the built-in field guide
    python benchmarks/epochs.py --methods simgcd gm --repeats 5
    python benchmarks/epochs.py --recipe cifar100-igcd-l-cpu stream.data=cifar100.npz

Stage 1 of an IGCD-l stream: every method has the same images there, those of stage 0 labeled, among which is whatever
could be replayed. Timed is what lies between the end of one epoch and the end of the next, so that neither
opening clusters nor choosing exemplars counts; seconds are of the processor, on --threads threads (1). The methods take
turns, so that whatever else the machine does meets all of them; the ratio of the medians is what counts.
"""

import argparse
import statistics
import time
from itertools import islice

import torch

from igcd.assembly import build_encoder, build_fabric, build_stream, count_novel_categories, method_maker, stream_of
from igcd.config import read_recipe
from igcd.data.quarantine import Quarantine

TRAINED = ("simgcd", "simgcd_icarl", "frost", "gm", "gcd", "orca", "happy", "snn_density", "supervised")
N_EPOCHS = 6


def seconds_per_epoch(name: str, recipe_name: str, overrides: list[str]) -> float:
    """Mean over the epochs of stage 1 but the first, whose start is not recorded."""
    epochs = ["training.first_stage.epochs=2", f"training.later_stages.epochs={N_EPOCHS}"]
    recipe = read_recipe(recipe_name, [*overrides, f"method.name={name}", *epochs])
    built = build_stream(recipe.stream, recipe.seed)
    encoder = build_encoder(recipe.encoder, quarantine=Quarantine())
    ends: list[float] = []
    make = method_maker(recipe, encoder, build_fabric(recipe), count_novel_categories(built.split))
    method = make(None, lambda _report: ends.append(time.process_time()))
    for stage, _truth in islice(stream_of(recipe, built), 2):
        ends.clear()
        method.learn(stage)
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="demo")
    parser.add_argument("overrides", nargs="*", help="key=value for the recipe")
    parser.add_argument("--methods", nargs="+", default=TRAINED, choices=TRAINED)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = list(dict.fromkeys(["simgcd", *options.methods]))
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(options.repeats):
        for name in names:
            seconds[name].append(seconds_per_epoch(name, options.recipe, options.overrides))
            print(f"  {name:<14} {seconds[name][-1]:.2f} s", flush=True)
    reference = statistics.median(seconds["simgcd"])
    for name in names:
        median = statistics.median(seconds[name])
        print(f"{name:<14} {median:.2f} s an epoch, {median / reference:.2f} times SimGCD's")


if __name__ == "__main__":
    main()
