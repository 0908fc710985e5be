"""Writes the measured tables of REPRODUCIBILITY.md from `results/*.jsonl`, between the markers of each.

python tools/write_reproducibility.py
"""

import json
from pathlib import Path
from statistics import mean, stdev

ROOT = Path(__file__).parents[1]
COLUMNS = ("M_d", "M_f", "All", "Old", "New", "found")


def main() -> None:
    """Rewrites every table that has records."""
    page = ROOT / "REPRODUCIBILITY.md"
    text = page.read_text(encoding="utf-8")
    for records in sorted((ROOT / "results").glob("*.jsonl")):
        begin, end = f"<!-- begin {records.stem} -->\n", f"<!-- end {records.stem} -->"
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        if not rest:
            raise SystemExit(f"REPRODUCIBILITY.md has no place for {records.stem}: add {begin.strip()} and {end}")
        text = head + begin + table(records) + end + tail
    page.write_text(text, encoding="utf-8")


def table(path: Path) -> str:
    """Mean ± standard deviation over the seeds of each variant."""
    cells: dict[str, list[dict[str, float]]] = {}
    commits, seeds = set(), set()
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        last = record["stages"][-1]
        values = {"M_d": record["M_d"], "M_f": record["M_f"], "found": mean(s["found"] for s in record["stages"][1:])}
        values |= {group: last["scores"][group] for group in ("All", "Old", "New")}
        cells.setdefault(record["variant"], []).append(values)
        commits.add(record["commit"])
        seeds.add(record["seed"])
    rows = [
        "| variant | M_d ↑ | M_f ↓ | last stage All | Old | New | found per stage (of 10) | seeds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for variant, values in cells.items():
        shown = [_spread([value[column] for value in values]) for column in COLUMNS]
        rows.append(f"| {variant} | {' | '.join(shown)} | {len(values)} |")
    rows.append(f"\nSeeds {', '.join(map(str, sorted(seeds)))}; commit {', '.join(sorted(commits))}.\n")
    return "\n".join(rows)


def _spread(values: list[float]) -> str:
    return f"{mean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


if __name__ == "__main__":
    main()
