"""Where the images of each stage were seen: figure 3 of the paper as geometry for `templates/map.svg.j2`."""

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from igcd.data.geography import NO_CONTINENT, continent_map, continent_of
from igcd.report.run_records import Places
from igcd.types import FloatArray

NORTH, SOUTH = 84, -58
"""What the map shows; almost nobody takes pictures beyond."""
CELLS_PER_DEGREE, REDUCTION = 6, 2
ALPHA_LEVELS = REDUCTION * REDUCTION + 1
MAX_MARKERS = 1_500
"""Beyond these, cells are joined: more cells make the page heavy and the map no clearer."""
SMALLEST, LARGEST = 0.8, 2.8  # radius in degrees
LABELED_SHARE = 0.15
"""A stage's name stands over each continent that has at least this share of its images."""


@dataclass(frozen=True)
class StageMarkers:
    """All markers of a stage as one path."""

    stage: int
    path: str
    shape: str  # a marker for the legend
    n_images: int


@dataclass(frozen=True)
class Label:
    """Where the name of a stage stands."""

    stage: int
    x: float
    y: float


@dataclass(frozen=True)
class WorldMap:
    """An equirectangular map, one unit per degree, north up."""

    land_uri: str
    stages: tuple[StageMarkers, ...]
    labels: tuple[Label, ...]
    width: int = 360
    height: int = NORTH - SOUTH


def world_map(places: Places) -> WorldMap:
    """The markers of each stage over the land of the Earth."""
    size = _cell_size(places)
    cells = _cells(places, size)
    largest = max((float(images.max()) for _, images in cells.values()), default=1.0)
    stages = []
    labels: list[Label] = []
    for stage, (middles, images) in cells.items():
        radii = SMALLEST + (LARGEST - SMALLEST) * np.sqrt(images / largest)
        draw = SHAPES[stage % len(SHAPES)]
        xs, ys = middles[:, 1] + 180, NORTH - middles[:, 0]
        path = "".join(draw(x, y, r) for x, y, r in zip(xs.tolist(), ys.tolist(), radii.tolist(), strict=True))
        stages.append(StageMarkers(stage, path, draw(8, 8, 6), int(images.sum())))
        continents = continent_of(middles[:, 0], middles[:, 1])
        for continent in np.unique(continents):
            inside = continents == continent
            if images[inside].sum() >= LABELED_SHARE * images.sum():
                labels.append(_label(stage, xs[inside], ys[inside], images[inside]))
    return WorldMap(_land(), tuple(stages), tuple(labels))


def _cell_size(places: Places) -> float:
    """The smallest cells, in degrees, that are not too many: those of the file, or twice, four times … as large."""
    size = 1.0
    while sum(len(images) for _, images in _cells(places, size).values()) > MAX_MARKERS:
        size *= 2
    return size


def _cells(places: Places, size: float) -> dict[int, tuple[FloatArray, FloatArray]]:
    """The mean place of each cell's images, (n, 2) latitude and longitude, and their number, (n,), by stage."""
    found = {}
    for stage in np.unique(places.stage).tolist():
        now = (places.stage == stage) & (places.latitude <= NORTH) & (places.latitude >= SOUTH) & (places.images > 0)
        points = np.column_stack([places.latitude[now], places.longitude[now]])
        weights = places.images[now].astype(np.float64)
        cells, cell_of = np.unique(np.floor(points / size), axis=0, return_inverse=True)
        images = np.bincount(cell_of.reshape(-1), weights, minlength=len(cells)).astype(np.float64)
        middles = np.column_stack(
            [np.bincount(cell_of.reshape(-1), weights * points[:, axis], minlength=len(cells)) for axis in (0, 1)]
        )
        if len(cells):
            found[stage] = (middles / images[:, None], images)
    return found


def _label(stage: int, xs: FloatArray, ys: FloatArray, images: FloatArray) -> Label:
    """A place just above the markers around the middle of these images."""
    x = float(np.average(xs, weights=images))
    around = np.abs(xs - x) < 15
    top = float(ys[around].min()) if around.any() else float(np.average(ys, weights=images))
    return Label(stage, min(max(x, 22.0), 338.0), max(top - 4.0, 9.0))


def _land() -> str:
    """The land as a gray PNG that lets the page's color through, so that it serves light and dark pages."""
    is_land = continent_map(CELLS_PER_DEGREE) != NO_CONTINENT
    rows = slice((90 - NORTH) * CELLS_PER_DEGREE, (90 - SOUTH) * CELLS_PER_DEGREE)
    height, width = (NORTH - SOUTH) * CELLS_PER_DEGREE // REDUCTION, 360 * CELLS_PER_DEGREE // REDUCTION
    coverage = is_land[rows].reshape(height, REDUCTION, width, REDUCTION).sum(axis=(1, 3)).astype(np.uint8)
    image = Image.fromarray(coverage, mode="P")
    image.putpalette([128, 134, 139] * ALPHA_LEVELS)
    alphas = bytes(round(72 * level / (ALPHA_LEVELS - 1)) for level in range(ALPHA_LEVELS))
    file = io.BytesIO()
    image.save(file, "PNG", transparency=alphas, optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _circle(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f},{y:.1f}a{r:.1f},{r:.1f} 0 1,0 {2 * r:.1f},0a{r:.1f},{r:.1f} 0 1,0 {-2 * r:.1f},0z"


def _diamond(x: float, y: float, r: float) -> str:
    r *= 1.2
    return f"M{x:.1f},{y - r:.1f}l{r:.1f},{r:.1f}l{-r:.1f},{r:.1f}l{-r:.1f},{-r:.1f}z"


def _triangle(x: float, y: float, r: float) -> str:
    return f"M{x:.1f},{y - 1.2 * r:.1f}l{1.2 * r:.1f},{2 * r:.1f}h{-2.4 * r:.1f}z"


def _square(x: float, y: float, r: float) -> str:
    return f"M{x - 0.9 * r:.1f},{y - 0.9 * r:.1f}h{1.8 * r:.1f}v{1.8 * r:.1f}h{-1.8 * r:.1f}z"


SHAPES: tuple[Callable[[float, float, float], str], ...] = (_circle, _diamond, _triangle, _square)
"""They differ in shape as well as in color."""
