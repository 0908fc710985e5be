"""What the panel says at the end: tables in Markdown, a verdict per bar, a figure."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from panel_tasks import SCENES

Row = dict[str, Any]
Number = float | None

POINTS_ABOVE = {"many": 10.0, "next": 10.0, "few": 5.0, "none": 2.0}
"""How many points above the main baseline the mean of a scene must be."""
MAX_COUNT_ERROR = 15.0  # percent, median
MAX_BELOW = 1.0  # points, of any task with new categories
MAX_ECE = 0.05  # mean
MIN_KEPT = 97.0  # percent, mean
BASELINES = {
    "kmeans": "k-means",
    "semi_supervised_kmeans": "semi-sup. k-means",
    "gaussian_mixture": "Gaussian mixture",
    "hdbscan": "HDBSCAN",
}

GIVEN_K = ("kmeans", "semi_supervised_kmeans", "gaussian_mixture")
"""Baselines that are given the number of categories."""

# Numbers of a task ---------------------------------------------------------------------------------------------------


def ours(name: str) -> Callable[[Row], Number]:
    """A function that gives this score of the estimator."""
    return lambda row: row.get("ours", {}).get(name)


def baseline(method: str, name: str = "all") -> Callable[[Row], Number]:
    """A function that gives this score of a baseline."""
    return lambda row: row["baselines"].get(method, {}).get(name)


def main_baseline(row: Row) -> Number:
    """Rows right by semi-supervised k-means given the number of categories; by k-means where nothing is labeled."""
    supervised = baseline("semi_supervised_kmeans")(row)
    return baseline("kmeans")(row) if supervised is None else supervised


def above_main(row: Row) -> Number:
    """Points above the main baseline; None where one of the two is missing."""
    own, other = ours("all")(row), main_baseline(row)
    return None if own is None or other is None else own - other


def above_best(row: Row) -> Number:
    """Points above the best of all baselines that are given the number; None where one of the two is missing."""
    own, others = ours("all")(row), [value for name in GIVEN_K if (value := baseline(name)(row)) is not None]
    return None if own is None or not others else own - max(others)


def count_error(row: Row) -> Number:
    """How far the number found is from the true one, in percent of it; None where there is nothing to find."""
    found, true = ours("found")(row), ours("true")(row)
    return None if found is None or not true else 100 * abs(found - true) / true


def numbers(rows: Sequence[Row], of: Callable[[Row], Number]) -> list[float]:
    """The numbers of all tasks that have one."""
    return [value for value in map(of, rows) if value is not None]


def mean(rows: Sequence[Row], of: Callable[[Row], Number]) -> Number:
    """Their mean; None without any."""
    values = numbers(rows, of)
    return statistics.fmean(values) if values else None


def median(rows: Sequence[Row], of: Callable[[Row], Number]) -> Number:
    """Their median; None without any."""
    values = numbers(rows, of)
    return statistics.median(values) if values else None


def worst(rows: Sequence[Row], of: Callable[[Row], Number]) -> tuple[float, str] | None:
    """The lowest number and its task."""
    tasks = [
        (value, f"{row['set']} {row['scene']} seed {row['seed']}") for row in rows if (value := of(row)) is not None
    ]
    return min(tasks) if tasks else None


# Tables --------------------------------------------------------------------------------------------------------------


def markdown(rows: Sequence[Row]) -> str:
    """A table with a row per scene, then a table per scene with a row per set; means over tasks."""
    scenes = [scene for scene in SCENES if any(row["scene"] == scene for row in rows)]
    n_failed = sum("error" in row for row in rows)
    header = [
        "scene",
        "tasks",
        "All",
        "Old",
        "New",
        "given K",
        "above it",
        "above best",
        "worst task",
        "count error (median)",
    ]
    header += ["ECE", "kept", "unchanged", "unsure", "known only", "logistic", "seconds"]
    lines = ["# Panel", "", f"{len(rows)} tasks" + (f", **{n_failed} failed**" if n_failed else ""), ""]
    lines += _table(header, [_scene_cells(scene, [row for row in rows if row["scene"] == scene]) for scene in scenes])
    for scene in scenes:
        lines += ["", f"## {scene}", "", *_scene_table([row for row in rows if row["scene"] == scene])]
    return "\n".join(lines) + "\n"


def _scene_cells(scene: str, rows: Sequence[Row]) -> list[str]:
    lowest = worst(rows, above_main)
    return [
        scene,
        str(len(rows)),
        *(_percent(mean(rows, ours(name))) for name in ("all", "old", "new")),
        _percent(mean(rows, main_baseline)),
        _signed(mean(rows, above_main)),
        _signed(mean(rows, above_best)),
        "–" if lowest is None else f"{_signed(lowest[0])} {lowest[1].replace(f' {scene} ', ' ')}",
        _error(median(rows, count_error)),
        _ece(mean(rows, ours("ece"))),
        *(_percent(mean(rows, ours(name))) for name in ("kept", "unchanged", "unsure", "known_only")),
        _percent(mean(rows, baseline("logistic_regression", "known_only"))),
        _percent(mean(rows, ours("seconds"))),
    ]


def _scene_table(rows: Sequence[Row]) -> list[str]:
    header = ["set", "All", "Old", "New", *BASELINES.values(), "above given K", "found / true", "in new", "ECE", "kept"]
    header += ["unchanged", "unsure", "seconds"]
    names = list(dict.fromkeys(row["set"] for row in rows))
    cells = [_set_cells(name, [row for row in rows if row["set"] == name]) for name in names]
    return _table(header, [*cells, _set_cells("**mean**", rows)])


def _set_cells(name: str, rows: Sequence[Row]) -> list[str]:
    found, true = mean(rows, ours("found")), mean(rows, ours("true"))
    return [
        name,
        *(_percent(mean(rows, ours(score))) for score in ("all", "old", "new")),
        *(_percent(mean(rows, baseline(method))) for method in BASELINES),
        _signed(mean(rows, above_main)),
        "failed" if found is None or true is None else f"{found:.1f} / {true:.1f}",
        _percent(mean(rows, ours("in_new"))),
        _ece(mean(rows, ours("ece"))),
        *(_percent(mean(rows, ours(score))) for score in ("kept", "unchanged", "unsure", "seconds")),
    ]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def _percent(value: Number) -> str:
    return "–" if value is None else f"{value:.1f}"


def _signed(value: Number) -> str:
    return "–" if value is None else f"{value:+.1f}"


def _error(value: Number) -> str:
    return "–" if value is None else f"{value:.0f}%"


def _ece(value: Number) -> str:
    return "–" if value is None else f"{value:.3f}"


# Bars ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """Whether a bar is met (None: not measured), and the sentence that says so."""

    sentence: str
    is_met: bool | None


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """A verdict per bar. Tasks in which nothing is new count for the calibration only."""
    with_new = [row for row in rows if row["scene"] != "all_known"]
    found = [
        _verdict(
            f"{scene}: points above k-means given K, at least {points:+g}",
            _signed,
            mean([row for row in rows if row["scene"] == scene], above_main),
            lambda value, points=points: value >= points,  # type: ignore[misc]
        )
        for scene, points in POINTS_ABOVE.items()
    ]
    found.append(
        _verdict(
            f"count of new categories: median error, at most {MAX_COUNT_ERROR:g}%",
            _error,
            median(with_new, count_error),
            lambda value: value <= MAX_COUNT_ERROR,
        )
    )
    lowest = worst(with_new, above_main)
    found.append(
        _verdict(
            f"no task more than {MAX_BELOW:g} point below k-means given K"
            + ("" if lowest is None else f"; lowest is {lowest[1]}, {_n_below(with_new)} are below"),
            _signed,
            None if lowest is None else lowest[0],
            lambda value: value >= -MAX_BELOW,
        )
    )
    errors = mean(rows, ours("ece"))
    found.append(_verdict(f"calibration: mean ECE, at most {MAX_ECE}", _ece, errors, lambda value: value <= MAX_ECE))
    kept = mean(rows, ours("kept"))
    found.append(_verdict(f"identity: kept, at least {MIN_KEPT:g}%", _percent, kept, lambda value: value >= MIN_KEPT))
    n_failed = sum("error" in row for row in rows)
    if n_failed:
        found.append(Verdict(f"missed: {n_failed} of {len(rows)} tasks ended in an error", is_met=False))
    return found


def _n_below(rows: Sequence[Row]) -> str:
    below = [value < -MAX_BELOW for value in numbers(rows, above_main)]
    return f"{sum(below)} of {len(below)}"


def _verdict(bar: str, shown: Callable[[Number], str], value: Number, is_met: Callable[[float], bool]) -> Verdict:
    if value is None:
        return Verdict(f"not measured: {bar}", is_met=None)
    met = is_met(value)
    return Verdict(f"{'met' if met else 'missed'}: {bar}: {shown(value)}", met)


# Figure --------------------------------------------------------------------------------------------------------------

SIDE, LEFT, TOP, LEGEND = 420, 52, 20, 120  # of the drawing
COLORS = dict(zip(SCENES, ("#0063a0", "#c45100", "#007a5a", "#96408f", "#7a5f00", "#4d5560"), strict=True))
"""Those of the project's reports."""


def figure(rows: Sequence[Row]) -> str:
    """An SVG with a point per task: k-means given K to the right, ours upwards. Above the diagonal ours is better."""
    tasks = [row for row in rows if above_main(row) is not None]

    def x_of(value: float) -> float:
        return LEFT + SIDE * value / 100

    def y_of(value: float) -> float:
        return TOP + SIDE * (1 - value / 100)

    width, height = LEFT + SIDE + LEGEND, TOP + SIDE + 46
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img" '
        'aria-label="Rows right in each task of the panel: ours against k-means given the number">',
        f'<rect width="{width}" height="{height}" fill="#ffffff" rx="8"/>',
    ]
    for tick in range(0, 101, 20):
        x, y = x_of(tick), y_of(tick)
        parts += [
            f'<path d="M{x:.1f} {TOP}V{TOP + SIDE}M{LEFT} {y:.1f}H{LEFT + SIDE}" stroke="#e3e0d9"/>',
            f'<text x="{x:.1f}" y="{TOP + SIDE + 17}" text-anchor="middle" fill="#5b636b">{tick}</text>',
            f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end" fill="#5b636b">{tick}</text>',
        ]
    parts += [
        f'<path d="M{LEFT} {TOP + SIDE}L{LEFT + SIDE} {TOP}" stroke="#5b636b" stroke-dasharray="4 4"/>',
        f'<text x="{LEFT + SIDE}" y="{TOP + SIDE + 36}" text-anchor="end" font-weight="600" fill="#22262a">'
        "k-means given the number, % right →</text>",
        f'<text x="{LEFT + 6}" y="{TOP + 14}" font-weight="600" fill="#22262a">↑ CategoryDiscoverer, % right</text>',
    ]
    for row in tasks:
        own, other = row["ours"]["all"], main_baseline(row)
        title = f"{row['set']}, {row['scene']}, seed {row['seed']}: {own:.1f}, k-means {other:.1f}"
        parts.append(
            f'<circle cx="{x_of(other):.1f}" cy="{y_of(own):.1f}" r="4.5" fill="{COLORS[row["scene"]]}" '
            f'fill-opacity="0.8" stroke="#ffffff"><title>{escape(title)}</title></circle>'
        )
    for line, scene in enumerate(scene for scene in SCENES if any(row["scene"] == scene for row in tasks)):
        y = TOP + 24 + 20 * line
        parts += [
            f'<circle cx="{LEFT + SIDE + 22}" cy="{y}" r="4.5" fill="{COLORS[scene]}"/>',
            f'<text x="{LEFT + SIDE + 33}" y="{y + 4}" fill="#22262a">{scene}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"
