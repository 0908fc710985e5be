"""A cluster that embeds shards, simulated: 64 workers, some slow, some dying. No real machine is used.

    python tools/simulate_cluster.py                                    # 100 million images on 64 workers
    python tools/simulate_cluster.py --images 1000000 --workers 8 --images-per-second 160

The rule is that of `igcd embed --ray`: each worker has one shard at a time, a worker that dies is replaced, and its
shard is done again by whoever is free next. Workers differ in speed by some percent for good; now and then a shard
takes several times as long (a slow disk, a neighbor on the machine); a worker lives for a random time. Printed are the
hours, how much longer that is than the same work on workers that never fail or vary, and how much was done twice.
"""

import argparse
import heapq
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Plan:
    """What is to be done, and what may go wrong."""

    n_images: int = 100_000_000
    n_workers: int = 64
    images_per_second: float = 160.0  # of one worker
    shard_size: int = 4096
    speed_spread: float = 0.1  # standard deviation of the logarithm of a worker's speed
    straggles: float = 0.02  # share of shards that take longer
    straggles_by: float = 5.0  # times as long
    mean_life_hours: float = 24.0
    restart_seconds: float = 60.0  # until a new worker has loaded its encoder

    @property
    def n_shards(self) -> int:
        """How many shards there are."""
        return -(-self.n_images // self.shard_size)

    @property
    def ideal_hours(self) -> float:
        """Hours if no worker ever varied or failed and shards could be cut at will."""
        return self.n_images / self.images_per_second / self.n_workers / 3600


@dataclass(frozen=True)
class Outcome:
    """How it went."""

    hours: float
    n_deaths: int
    n_redone: int  # shards
    n_stored: int  # shards, each once

    def above(self, plan: Plan) -> float:
        """How much longer than ideal, as a share."""
        return self.hours / plan.ideal_hours - 1


def simulate(plan: Plan, *, seed: int = 0) -> Outcome:
    """One run, event by event: a worker ends its shard, or its life."""
    rng = np.random.default_rng(seed)
    waiting = list(range(plan.n_shards))[::-1]
    stored: set[int] = set()
    n_deaths = 0
    events: list[tuple[float, int, int, bool]] = []  # when, worker, shard, whether it dies then
    speeds = np.exp(rng.normal(0, plan.speed_spread, plan.n_workers))
    dies_at = rng.exponential(plan.mean_life_hours * 3600, plan.n_workers)

    def start(worker: int, now: float) -> None:
        shard = waiting.pop()
        n_images = min(plan.shard_size, plan.n_images - shard * plan.shard_size)
        seconds = n_images / plan.images_per_second / speeds[worker]
        if rng.random() < plan.straggles:
            seconds *= plan.straggles_by
        dies = dies_at[worker] < now + seconds
        heapq.heappush(events, (dies_at[worker] if dies else now + seconds, worker, shard, dies))

    for worker in range(min(plan.n_workers, len(waiting))):
        start(worker, 0.0)
    now = 0.0
    idle: list[int] = []
    while events:
        now, worker, shard, dies = heapq.heappop(events)
        if dies:
            n_deaths += 1
            waiting.append(shard)
            now += plan.restart_seconds
            dies_at[worker] = now + rng.exponential(plan.mean_life_hours * 3600)
            while idle and waiting:  # others are free before the new worker is
                start(idle.pop(), now - plan.restart_seconds)
        else:
            stored.add(shard)
        if waiting:
            start(worker, now)
        else:
            idle.append(worker)
    return Outcome(now / 3600, n_deaths, n_deaths, len(stored))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=Plan.n_images)
    parser.add_argument("--workers", type=int, default=Plan.n_workers)
    parser.add_argument("--images-per-second", type=float, default=Plan.images_per_second)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    plan = Plan(options.images, options.workers, options.images_per_second)
    print(f"{plan.n_shards:,} shards on {plan.n_workers} workers; without trouble {plan.ideal_hours:.2f} hours")
    calm = {"straggles": 0.0, "mean_life_hours": 1e9}
    cases = {
        "only speeds differ": Plan(options.images, options.workers, options.images_per_second, **calm),
        "stragglers and deaths": plan,
        "a death an hour each": Plan(options.images, options.workers, options.images_per_second, mean_life_hours=1.0),
    }
    for title, case in cases.items():
        runs = [simulate(case, seed=seed) for seed in range(options.runs)]
        hours = sorted(run.hours for run in runs)
        above = sorted(run.above(case) for run in runs)
        redone = np.mean([run.n_redone for run in runs]) / case.n_shards
        print(
            f"{title:>22}: {hours[len(hours) // 2]:.2f} hours (longest {hours[-1]:.2f}), "
            f"{100 * above[len(above) // 2]:.0f}% above, {100 * redone:.2f}% of the shards done twice"
        )


if __name__ == "__main__":
    main()
