"""The continent of a coordinate, offline. The rule, its source and its license: README.md beside this file."""

from functools import cache
from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt

CONTINENTS = ("Africa", "Antarctica", "Asia", "Europe", "North America", "Oceania", "South America")
NO_CONTINENT = len(CONTINENTS)
"""The code of open ocean, further than 30 km from any land, and of impossible coordinates."""

CELLS_PER_DEGREE = 100
N_ROWS, N_COLUMNS = 180 * CELLS_PER_DEGREE, 360 * CELLS_PER_DEGREE


def continent_of(latitude: npt.ArrayLike, longitude: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """The continent of each coordinate as a code into `CONTINENTS`, or `NO_CONTINENT`. (n,), (n,) -> (n,).

    Coordinates that are no place on Earth (NaN, latitude 95, longitude 200) have no continent.

    >>> [CONTINENTS[code] for code in continent_of([48.86, 4.92, 21.31], [2.35, -52.31, -157.86])]
    ['Europe', 'South America', 'Oceania']
    >>> continent_of([30.0], [-40.0]) == NO_CONTINENT
    array([ True])
    """
    latitude, longitude = np.broadcast_arrays(np.asarray(latitude, np.float64), np.asarray(longitude, np.float64))
    is_place = is_coordinate(latitude, longitude)
    row = np.clip(np.where(is_place, latitude + 90, 0) * CELLS_PER_DEGREE, 0, N_ROWS - 1).astype(np.int64)
    column = np.where(is_place, longitude + 180, 0) * CELLS_PER_DEGREE
    cell = row * N_COLUMNS + column.astype(np.int64) % N_COLUMNS
    first_cell, continent = _runs()
    found = continent[np.searchsorted(first_cell, cell, side="right") - 1]
    return np.where(is_place, found, np.uint8(NO_CONTINENT))


def is_coordinate(latitude: npt.NDArray[np.float64], longitude: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Where latitude and longitude are a place on Earth. (n,), (n,) -> (n,); NaN is not a place.

    >>> is_coordinate(np.array([0.0, 95.0, np.nan]), np.array([180.0, 0.0, 0.0])).tolist()
    [True, False, False]
    """
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(latitude) <= 90) & (np.abs(longitude) <= 180))


def continent_map(cells_per_degree: int) -> npt.NDArray[np.uint8]:
    """The world as an image of continent codes, north up, (180 · cells, 360 · cells): the background of a map."""
    step = 1 / cells_per_degree
    latitude = 90 - step * (np.arange(180 * cells_per_degree) + 0.5)
    longitude = -180 + step * (np.arange(360 * cells_per_degree) + 0.5)
    return continent_of(latitude[:, None], longitude[None, :])


@cache
def _runs() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """The shipped grid: runs of equal cells, row by row from the south pole, from west to east."""
    with as_file(files(__package__) / "continents.npz") as path, np.load(path, allow_pickle=False) as grid:
        row = np.repeat(np.arange(N_ROWS, dtype=np.int64), grid["runs_per_row"])
        return row * N_COLUMNS + grid["first_column"], grid["continent"]
