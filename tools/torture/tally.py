"""Counts of a torture by part and case, kept in a file so that a long one can be stopped and continued."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from igcd.records import write_json

OUTCOMES = ("accepted", "refused", "skipped", "fault")


@dataclass
class Tally:
    """What happened so far. `next_number` says of each part where it goes on."""

    seed: int
    counts: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)  # part -> case -> outcome -> n
    faults: dict[str, dict[str, Any]] = field(default_factory=dict)  # words -> part, case, first number, n, detail
    next_number: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, part: str, case: str, outcome: str, n: int = 1) -> None:
        """Counts an outcome."""
        of_case = self.counts.setdefault(part, {}).setdefault(case, dict.fromkeys(OUTCOMES, 0))
        of_case[outcome] += n

    def add_fault(self, part: str, case: str, number: int, words: str, detail: str = "") -> None:
        """Counts a fault; the same one is listed once, with the number that first led to it."""
        self.add(part, case, "fault")
        listed = self.faults.setdefault(
            f"{part} {case}: {words}", {"part": part, "case": case, "number": number, "n": 0, "detail": detail[:4000]}
        )
        listed["n"] += 1

    def total(self, part: str, outcome: str | None = None) -> int:
        """How many of a part there were: all that were tried, or those with one outcome."""
        wanted = ("accepted", "refused", "fault") if outcome is None else (outcome,)
        return sum(counts[name] for counts in self.counts.get(part, {}).values() for name in wanted)

    @property
    def n_faults(self) -> int:
        """Faults of all parts."""
        return sum(self.total(part, "fault") for part in self.counts)

    def write(self, path: Path) -> None:
        """Keeps the counts, whole or not at all."""
        write_json(path, asdict(self))


def read_tally(path: Path, seed: int) -> Tally:
    """The counts of a torture that was stopped, or none yet."""
    return Tally(**json.loads(path.read_text())) if path.is_file() else Tally(seed)


def table(tally: Tally) -> str:
    """The counts for people: a line per part and case."""
    lines = [f"{'part':<9} {'case':<34} {'accepted':>9} {'refused':>9} {'skipped':>8} {'faults':>7}"]
    for part, cases in tally.counts.items():
        rows = [(case, counts) for case, counts in sorted(cases.items())]
        rows.append(("all", {outcome: tally.total(part, outcome) for outcome in OUTCOMES}))
        for case, counts in rows:
            cells = (f"{counts[outcome]:>{width},}" for outcome, width in zip(OUTCOMES, (9, 9, 8, 7), strict=True))
            lines.append(f"{part:<9} {case:<34} {' '.join(cells)}")
    for words, fault in tally.faults.items():
        lines.append(f"FAULT ×{fault['n']:,} {words} (number {fault['number']})")
    return "\n".join(lines)
