"""The method against its own parts on CIFAR-100: every variant and seed as one `igcd run`, then the table.

    python tools/ablate_cifar100.py --data cifar100.npz --out runs/ablation [--seeds 0,1,2] [--jobs 2]

Runs that are complete are not repeated; one that was stopped is resumed. Each run's `results.json` becomes a line of
`results/cifar100-cpu.jsonl`, from which `tools/write_reproducibility.py` writes the table of REPRODUCIBILITY.md.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PRINTED = ["method.features=tuned", "method.K=10", "method.K_d=20", "method.margin=0.03"]
VARIANTS = {
    "frozen": ["method.features=frozen"],
    "tuned": PRINTED,
    "dual": [],
    "tuned, no replay": [*PRINTED, "method.replay_selection=none"],
    "dual, no replay": ["method.replay_selection=none"],
    "tuned, random support": [*PRINTED, "method.support_selection=random"],
    "dual, random support": ["method.support_selection=random"],
    "tuned, one support": [*PRINTED, "method.n_support=1", "method.n_replay=1"],
    "dual, one support": ["method.n_support=1", "method.n_replay=1"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, one thread each")
    parser.add_argument("--only", help="variants to run, separated by semicolons; all when left out")
    arguments = parser.parse_args()
    variants = arguments.only.split(";") if arguments.only else list(VARIANTS)
    cells = [(variant, int(seed)) for seed in arguments.seeds.split(",") for variant in variants]
    with ThreadPoolExecutor(arguments.jobs) as executor:
        list(executor.map(lambda cell: run(*cell, arguments.data, arguments.out), cells))
    collect(arguments.out)


def run(variant: str, seed: int, data: Path, out: Path) -> None:
    """One cell, in a process of its own with one thread."""
    folder = cell_folder(out, variant, seed)
    if (folder / "results.json").exists():
        return
    command = [sys.executable, "-m", "igcd", "run", "cifar100-cpu", f"stream.data={data}", f"seed={seed}"]
    command += [*VARIANTS[variant], "--out", str(folder), "--json"]
    command += ["--resume"] if (folder / "config.json").exists() else []
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    if done.returncode:
        print(f"{variant}, seed {seed}: {done.stderr.strip()}", file=sys.stderr)
        return
    results = json.loads(done.stdout)
    print(f"{variant}, seed {seed}: M_d {results['M_d']:.1f} M_f {results['M_f']:.1f}", flush=True)


def collect(out: Path) -> None:
    """The records of all complete cells, a line each."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    lines = []
    for variant in VARIANTS:
        for folder in (cell_folder(out, variant, seed) for seed in range(100)):
            if (folder / "results.json").exists():
                results = json.loads((folder / "results.json").read_text())
                results.pop("variants")  # every variant of the scores can be had from predictions.csv
                results["config"]["stream"]["data"] = None
                lines.append(json.dumps({"variant": variant, "commit": commit.stdout.strip(), **results}))
    path = Path(__file__).parents[1] / "results" / "cifar100-cpu.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(lines)} cells in {path}")


def cell_folder(out: Path, variant: str, seed: int) -> Path:
    """Where a cell is."""
    return out / f"{variant.replace(', ', '-').replace(' ', '_')}-{seed}"


if __name__ == "__main__":
    main()
