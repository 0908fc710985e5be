"""The command: parts in turn, bounded by minutes or counts; a table on the screen, JSON in a file, 1 with any fault.

python -m tools.torture --minutes 30 --seed 7                     all parts, each with a share of the time
python -m tools.torture --parts inputs --counts inputs=100000      until so many were tried; continues after a stop
python -m tools.torture --replay inputs 4711 --seed 7              one trial again, with its traceback
"""

import argparse
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tools.torture.parts import PARTS, SHARES, Part
from tools.torture.tally import Tally, read_tally, table


def main() -> int:
    """Tortures the project; the exit code is 1 where there was a fault."""
    args = arguments()
    logging.disable(logging.WARNING)
    out: Path = args.out
    scratch = Path(tempfile.mkdtemp(prefix="torture-", dir=shared_memory()))
    try:
        if args.replay:
            return replay(args.replay[0], int(args.replay[1]), args.seed, scratch)
        tally = read_tally(out / "torture.json", args.seed)
        if tally.seed != args.seed:
            sys.exit(f"{out} holds a torture with seed {tally.seed}; give --out another folder")
        wanted = dict(part.split("=") for part in args.counts.split(",") if part)
        for name in args.parts:
            until = time.monotonic() + 60 * args.minutes * SHARES[name] / sum(SHARES[part] for part in args.parts)
            count = int(wanted[name]) if name in wanted else None
            with PARTS[name](scratch / name, args.seed) as part:
                torture(part, name, tally, until, count, out)
        print(table(tally))
        print(f"seed {tally.seed}; {tally.n_faults:,} faults; counts in {out / 'torture.json'}")
        return 1 if tally.n_faults else 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def torture(part: Part, name: str, tally: Tally, until: float, count: int | None, out: Path) -> None:
    """Runs a part until that moment, or until so many were tried."""
    started, written = time.monotonic(), 0.0
    seconds_before = tally.seconds.get(name, 0.0)
    while time.monotonic() < until and (count is None or tally.total(name) < count):
        first = tally.next_number.get(name, 0)
        outcomes, tally.next_number[name] = part.batch(first)
        for one in outcomes:
            if one.verdict.outcome == "fault":
                tally.add_fault(name, one.case, one.number, one.verdict.words)
            else:
                tally.add(name, one.case, one.verdict.outcome)
        tally.seconds[name] = seconds_before + time.monotonic() - started
        if time.monotonic() - written > 5:
            tally.write(out / "torture.json")
            written = time.monotonic()
            print(f"{name}: {tally.total(name):,} tried, {tally.total(name, 'fault'):,} faults", file=sys.stderr)
    tally.write(out / "torture.json")


def replay(name: str, number: int, seed: int, scratch: Path) -> int:
    """One trial again, in this process, with the traceback of what it led to."""
    with PARTS[name](scratch / name, seed) as part:
        try:
            part.replay(number)
        except BaseException:
            traceback.print_exc()
            return 1
    return 0


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="bound for all parts together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/torture"), help="folder of torture.json")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--counts", default="", help="part=number,…: a part ends when so many were tried")
    parser.add_argument("--replay", nargs=2, metavar=("PART", "NUMBER"), help="one trial again, with its traceback")
    return parser.parse_args()


def shared_memory() -> str | None:
    """Where files are in memory, so that a hundred thousand of them wear no disk; None where there is no such place."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
