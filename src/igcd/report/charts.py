"""The curves of figure 4 as geometry; `templates/curves.svg.j2` draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH, HEIGHT = 370, 235
LEFT, RIGHT, TOP, BOTTOM = 34, 72, 24, 30  # margins; the labels of the lines stand at the right
LABEL_GAP = 15
MAX_STAGES_WITH_VALUES = 8
"""With more stages, values stand only at both ends of a line."""


@dataclass(frozen=True)
class Point:
    """A value of a line, where it is drawn, and where its number stands (None: nowhere)."""

    x: float
    y: float
    value: float
    text_y: float | None


@dataclass(frozen=True)
class Line:
    """A line with its label; `style` counts the lines of a chart and gives color, dash and marker."""

    label: str
    points: tuple[Point, ...]
    label_x: float
    label_y: float
    style: int

    @property
    def path(self) -> str:
        """The SVG path through the points."""
        return "M" + " L".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


@dataclass(frozen=True)
class Tick:
    """A mark of an axis."""

    position: float
    text: str


@dataclass(frozen=True)
class Drop:
    """The largest fall below the first value of a line: M_f."""

    x: float
    y_start: float
    y_end: float
    x_start: float
    value: float


@dataclass(frozen=True)
class Chart:
    """A chart of percentages over stages."""

    title: str
    summary: str  # the chart in words, for those who do not see it
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    drop: Drop | None = None
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM


def line_chart(
    title: str, series: Mapping[str, Mapping[int, float | None]], stages: Sequence[int], *, show_drop: bool = False
) -> Chart:
    """Lines of percentages by stage; `show_drop` marks how far the first line falls below its start."""
    kept = {label: {t: v for t, v in values.items() if v is not None} for label, values in series.items()}
    kept = {label: values for label, values in kept.items() if values}
    highest = max((value for values in kept.values() for value in values.values()), default=0.0)
    top = next(limit for limit in (20, 40, 60, 80, 100) if highest <= limit)
    span = max(len(stages) - 1, 1)

    def x_of(stage: int) -> float:
        return LEFT + 12 + (WIDTH - LEFT - RIGHT - 24) * stages.index(stage) / span

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * max(value, 0.0) / top

    lines = []
    label_ys = _apart([y_of(values[max(values)]) for values in kept.values()])
    for style, ((label, values), label_y) in enumerate(zip(kept.items(), label_ys, strict=True)):
        points = []
        for stage, value in sorted(values.items()):
            others = [other[stage] for name, other in kept.items() if name != label and stage in other]
            # Numbers stand outside of the lines: below the lower one, and below the one whose fall is marked above it.
            is_lower = show_drop or any(value < other or (value == other and style > 0) for other in others)
            has_text = len(stages) <= MAX_STAGES_WITH_VALUES or stage in (min(values), max(values))
            y = y_of(value)
            points.append(Point(x_of(stage), y, value, (y + 17 if is_lower else y - 9) if has_text else None))
        lines.append(Line(label, tuple(points), points[-1].x + 10, label_y, style))
    chart_ticks = tuple(Tick(y_of(value), f"{value}") for value in range(0, top + 1, 20 if top > 40 else 10))
    return Chart(
        title=title,
        summary="; ".join(
            f"{label}: " + ", ".join(f"stage {stage} {value:.1f}%" for stage, value in sorted(values.items()))
            for label, values in kept.items()
        ),
        lines=tuple(lines),
        x_ticks=tuple(Tick(x_of(stage), f"{stage}") for stage in stages),
        y_ticks=chart_ticks,
        drop=_drop(lines[0].points) if show_drop and lines else None,
    )


def _drop(points: Sequence[Point]) -> Drop | None:
    first, *later = points
    if not later:
        return None
    lowest = min(later, key=lambda point: point.value)
    if lowest.value >= first.value:
        return None
    return Drop(lowest.x, first.y, lowest.y, first.x, first.value - lowest.value)


def _apart(positions: Sequence[float]) -> list[float]:
    """The positions, those closer than a line of text pushed apart around their middle; in the same order.

    >>> _apart([100.0, 104.0, 10.0])
    [94.5, 109.5, 10.0]
    """
    moved = list(positions)
    order = sorted(range(len(moved)), key=moved.__getitem__)
    for upper, lower in pairwise(order):
        gap = moved[lower] - moved[upper]
        if gap < LABEL_GAP:
            moved[upper] -= (LABEL_GAP - gap) / 2
            moved[lower] += (LABEL_GAP - gap) / 2
    return moved
