"""Old against New as geometry: what a method keeps of the known and what it finds of the novel, a point each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from igcd.report.charts import Tick
from igcd.report.comparison_table import ComparisonTable
from igcd.report.spread import Spread

WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 46, 24, 18, 44
CHARACTER, LINE = 7.7, 14  # of a label, in the units of the drawing
GAP = 9


@dataclass(frozen=True)
class Mark:
    """A method: where it stands, how far the seeds spread, and where its name fits."""

    label: str
    x: float
    y: float
    x_spread: tuple[float, float]
    y_spread: tuple[float, float]
    label_x: float
    label_y: float
    anchor: str
    style: int
    is_upper_bound: bool
    summary: str


@dataclass(frozen=True)
class Scatter:
    """The figure; `old` is S-0 where no known category comes back at the last stage."""

    marks: tuple[Mark, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    old: str
    stage: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM

    @property
    def summary(self) -> str:
        """The figure in words, for those who do not see it."""
        return "; ".join(mark.summary for mark in self.marks)


def old_against_new(table: ComparisonTable) -> Scatter | None:
    """The figure of the last stage that has both groups; None where no row has them."""
    for stage, _ in reversed(table.stages):
        for old in ("Old", "S-0"):
            points = [
                (row.name, row.scores[f"S{stage}.{old}"], row.scores[f"S{stage}.New"], row.is_upper_bound)
                for row in table.rows
                if f"S{stage}.{old}" in row.scores and f"S{stage}.New" in row.scores
            ]
            if points:
                return _scatter(points, old, stage)
    return None


def _scatter(points: Sequence[tuple[str, Spread, Spread, bool]], old: str, stage: int) -> Scatter:
    x_low, x_high, x_step = axis([value for _, x, _, _ in points for value in _ends(x)])
    y_low, y_high, y_step = axis([value for _, _, y, _ in points for value in _ends(y)])

    def x_of(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - x_low) / (x_high - x_low)

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - y_low) / (y_high - y_low)

    places = [(x_of(x.mean), y_of(y.mean)) for _, x, y, _ in points]
    labels = place_labels([name for name, *_ in points], places)
    marks = []
    for style, ((name, x, y, is_bound), (at_x, at_y), (label_x, label_y, anchor)) in enumerate(
        zip(points, places, labels, strict=True)
    ):
        ends_x, ends_y = _ends(x), _ends(y)
        marks.append(
            Mark(
                label=name,
                x=at_x,
                y=at_y,
                x_spread=(x_of(ends_x[0]), x_of(ends_x[1])),
                y_spread=(y_of(ends_y[0]), y_of(ends_y[1])),
                label_x=label_x,
                label_y=label_y,
                anchor=anchor,
                style=style % 6,
                is_upper_bound=is_bound,
                summary=f"{name}: {old} {x.mean:.1f}%, New {y.mean:.1f}%",
            )
        )
    return Scatter(
        marks=tuple(marks),
        x_ticks=tuple(Tick(x_of(value), f"{value:g}") for value in _steps(x_low, x_high, x_step)),
        y_ticks=tuple(Tick(y_of(value), f"{value:g}") for value in _steps(y_low, y_high, y_step)),
        old=old,
        stage=stage,
    )


def axis(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower and upper end of an axis and the step of its ticks: round numbers around all values.

    >>> axis([31.0, 44.5]), axis([50.0])
    ((30, 45, 5), (49, 51, 1))
    """
    low, high = max(min(values), 0.0), max(values)
    reach = max(high - low, 1.0)
    step = next(step for step in (1, 2, 5, 10, 20, 50) if reach / step <= 6)
    lower, upper = step * math.floor(low / step), step * math.ceil(high / step)
    if lower == low and lower > 0:
        lower -= step
    if upper == high:
        upper += step
    return lower, upper, step


def place_labels(names: Sequence[str], places: Sequence[tuple[float, float]]) -> list[tuple[float, float, str]]:
    """Where each name stands beside its point (x, baseline, SVG anchor), so that it covers no other name or point.

    The first free side is taken: right, left, above, below, then farther up and down; right where all are taken.
    """
    boxes: list[tuple[float, float, float, float]] = [(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    chosen = []
    for name, (x, y) in zip(names, places, strict=True):
        width = CHARACTER * len(name)
        sides = [
            (x + GAP, y + 4.5, "start"),
            (x - GAP, y + 4.5, "end"),
            (x, y - GAP, "middle"),
            (x, y + GAP + 10, "middle"),
        ]
        for away in (1, 2, 3):
            sides += [
                (x + GAP, y + 4.5 + away * LINE, "start"),
                (x + GAP, y + 4.5 - away * LINE, "start"),
                (x - GAP, y + 4.5 + away * LINE, "end"),
                (x - GAP, y + 4.5 - away * LINE, "end"),
            ]
        free = [side for side in sides if _is_free(_box(side, width), boxes)]
        side = free[0] if free else sides[0]
        boxes.append(_box(side, width))
        chosen.append(side)
    return chosen


def _box(side: tuple[float, float, str], width: float) -> tuple[float, float, float, float]:
    x, baseline, anchor = side
    start = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return start, baseline - LINE + 3, start + width, baseline + 3


def _is_free(box: tuple[float, float, float, float], others: Sequence[tuple[float, float, float, float]]) -> bool:
    left, top, right, bottom = box
    if left < LEFT or right > WIDTH or top < 0 or bottom > HEIGHT - BOTTOM:
        return False
    return all(right <= o[0] or left >= o[2] or bottom <= o[1] or top >= o[3] for o in others)


def _ends(value: Spread) -> tuple[float, float]:
    deviation = value.deviation or 0.0
    return value.mean - deviation, value.mean + deviation


def _steps(low: float, high: float, step: float) -> list[float]:
    return [low + step * count for count in range(round((high - low) / step) + 1)]
