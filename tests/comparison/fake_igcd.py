"""Stands in for `python -m igcd run …`: a cell in milliseconds, that fails, dies or takes its time when asked to."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from fake_results import fake_results


def main() -> None:
    arguments = sys.argv[1:]
    out = Path(arguments[arguments.index("--out") + 1])
    settings = dict(argument.split("=", 1) for argument in arguments[2 : arguments.index("--out")])
    method, seed = settings.get("method.name", "snn_density"), int(settings["seed"])
    plan = json.loads(os.environ.get("FAKE_IGCD", "{}"))
    name = f"{method}-{seed}"
    with Path(os.environ["FAKE_LOG"]).open("a") as file:
        file.write(f"{name} {os.environ.get('OMP_NUM_THREADS')} {'--resume' in arguments} {os.getpid()}\n")
    out.mkdir(parents=True, exist_ok=True)
    if name in plan.get("dies", []):
        os.kill(os.getpid(), signal.SIGKILL)
    if name in plan.get("fails", []):
        sys.exit("some progress\nigcd: the method keeps too many images; it must forget some")
    if name in plan.get("crashes", []):
        raise RuntimeError("nobody expected this")
    time.sleep(plan.get("seconds", 0.0))
    discovery = 40.0 + seed + 2 * (method == "snn_density")
    (out / "results.json").write_text(json.dumps(fake_results(method, seed, m_d=discovery, stream="digits-mi")))


if __name__ == "__main__":
    main()
