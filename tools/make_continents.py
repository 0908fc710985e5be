"""Draw the grid of continents that `igcd.data.geography` ships, from Natural Earth's country borders.

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
    python tools/make_continents.py package/countries-10m.json src/igcd/data/geography/continents.npz

The input is Natural Earth 4.1.0, 1:10m, "Admin 0 – Countries" (public domain), as TopoJSON. Every cell of 0.01° gets
the continent of the land under its center, or else of the nearest land within 30 km. The rule that says which land
belongs to which continent is this file; docs/inat_igcd.md tells it in words.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import distance_transform_edt

from igcd.data.geography import CELLS_PER_DEGREE, CONTINENTS, N_COLUMNS, N_ROWS, NO_CONTINENT

MAX_KM_TO_LAND = 30.0
"""iNaturalist blurs the place of a threatened species inside a cell of 0.2°, which is about this far."""
KM_PER_DEGREE = 111.195

AFRICA, ANTARCTICA, ASIA, EUROPE, NORTH_AMERICA, OCEANIA, SOUTH_AMERICA = range(len(CONTINENTS))
NO_LAND = 255
CUT_AT_URAL, CUT_AT_SUEZ = 100, 101  # stand-ins for land that lies on two continents, resolved cell by cell

# Countries by their continent in the United Nations' M49 list; Russia, Kazakhstan and Egypt are cut below.
COUNTRIES: dict[int, str] = {
    AFRICA: "Algeria; Angola; Benin; Botswana; Br. Indian Ocean Ter.; Burkina Faso; Burundi; Cabo Verde; Cameroon; "
    "Central African Rep.; Chad; Comoros; Congo; Côte d'Ivoire; Dem. Rep. Congo; Djibouti; Eq. Guinea; Eritrea; "
    "Ethiopia; Fr. S. Antarctic Lands; Gabon; Gambia; Ghana; Guinea; Guinea-Bissau; Kenya; Lesotho; Liberia; Libya; "
    "Madagascar; Malawi; Mali; Mauritania; Mauritius; Morocco; Mozambique; Namibia; Niger; Nigeria; Rwanda; "
    "S. Sudan; Saint Helena; Senegal; Seychelles; Sierra Leone; Somalia; Somaliland; South Africa; Sudan; "
    "São Tomé and Principe; Tanzania; Togo; Tunisia; Uganda; W. Sahara; Zambia; Zimbabwe; eSwatini",
    ANTARCTICA: "Antarctica",
    ASIA: "Afghanistan; Akrotiri; Armenia; Azerbaijan; Bahrain; Baikonur; Bangladesh; Bhutan; Brunei; Cambodia; China; "
    "Cyprus; Cyprus U.N. Buffer Zone; Dhekelia; Georgia; Hong Kong; India; Indonesia; Iran; Iraq; Israel; Japan; "
    "Jordan; Kuwait; Kyrgyzstan; Laos; Lebanon; Macao; Malaysia; Maldives; Mongolia; Myanmar; N. Cyprus; Nepal; "
    "North Korea; Oman; Pakistan; Palestine; Philippines; Qatar; Saudi Arabia; Scarborough Reef; Siachen Glacier; "
    "Singapore; South Korea; Spratly Is.; Sri Lanka; Syria; Taiwan; Tajikistan; Thailand; Timor-Leste; Turkey; "
    "Turkmenistan; United Arab Emirates; Uzbekistan; Vietnam; Yemen",
    EUROPE: "Albania; Andorra; Austria; Belarus; Belgium; Bosnia and Herz.; Bulgaria; Croatia; Czechia; Denmark; "
    "Estonia; Faeroe Is.; Finland; France; Germany; Gibraltar; Greece; Guernsey; Hungary; Iceland; Ireland; "
    "Isle of Man; Italy; Jersey; Kosovo; Latvia; Liechtenstein; Lithuania; Luxembourg; Macedonia; Malta; Moldova; "
    "Monaco; Montenegro; Netherlands; Norway; Poland; Portugal; Romania; San Marino; Serbia; Slovakia; Slovenia; "
    "Spain; Sweden; Switzerland; Ukraine; United Kingdom; Vatican; Åland",
    NORTH_AMERICA: "Anguilla; Antigua and Barb.; Aruba; Bahamas; Bajo Nuevo Bank; Barbados; Belize; Bermuda; "
    "British Virgin Is.; Canada; Cayman Is.; Clipperton I.; Costa Rica; Cuba; Curaçao; Dominica; Dominican Rep.; "
    "El Salvador; Greenland; Grenada; Guatemala; Haiti; Honduras; Jamaica; Mexico; Montserrat; Nicaragua; Panama; "
    "Puerto Rico; Saint Lucia; Serranilla Bank; Sint Maarten; St-Barthélemy; St-Martin; St. Kitts and Nevis; "
    "St. Pierre and Miquelon; St. Vin. and Gren.; Trinidad and Tobago; Turks and Caicos Is.; U.S. Virgin Is.; "
    "USNB Guantanamo Bay; United States of America",
    OCEANIA: "American Samoa; Ashmore and Cartier Is.; Australia; Cook Is.; Coral Sea Is.; Fiji; Fr. Polynesia; Guam; "
    "Heard I. and McDonald Is.; Indian Ocean Ter.; Kiribati; Marshall Is.; Micronesia; N. Mariana Is.; Nauru; "
    "New Caledonia; New Zealand; Niue; Norfolk Island; Palau; Papua New Guinea; Pitcairn Is.; Samoa; Solomon Is.; "
    "Tonga; Tuvalu; U.S. Minor Outlying Is.; Vanuatu; Wallis and Futuna Is.",
    SOUTH_AMERICA: "Argentina; Bolivia; Brazil; Chile; Colombia; Ecuador; Falkland Is.; Guyana; Paraguay; Peru; "
    "S. Geo. and the Is.; Suriname; Uruguay; Venezuela",
    CUT_AT_URAL: "Russia; Kazakhstan",
    CUT_AT_SUEZ: "Egypt",
}

# Land of a country that lies on another continent than the country: polygons whose middle is in the box
# (west, south, east, north).
ELSEWHERE: dict[str, list[tuple[tuple[float, float, float, float], int]]] = {
    "Chile": [((-112, -30, -100, -20), OCEANIA)],  # Easter Island
    "Colombia": [((-83, 11, -79, 17), NORTH_AMERICA)],  # San Andrés and Providencia, off Nicaragua
    "France": [
        ((-56, 0, -50, 7), SOUTH_AMERICA),  # French Guiana
        ((-64, 13, -60, 19), NORTH_AMERICA),  # Martinique, Guadeloupe
        ((40, -25, 60, -10), AFRICA),  # Réunion, Mayotte
    ],
    "Indonesia": [  # its half of New Guinea with Raja Ampat, and the Aru Islands; the Moluccas stay in Asia
        ((129.6, -2.4, 142, 2), OCEANIA),
        ((131.3, -4.6, 142, 2), OCEANIA),
        ((133.7, -10, 142, 2), OCEANIA),
    ],
    "Netherlands": [((-70, 10, -60, 19), NORTH_AMERICA)],  # Bonaire, Saba, Sint Eustatius
    "Norway": [((0, -60, 10, -50), ANTARCTICA)],  # Bouvet Island
    "Portugal": [((-18, 29, -15, 34), AFRICA)],  # Madeira and the Selvagens; the Azores stay in Europe
    "Spain": [((-19, 27, 0, 35.95), AFRICA)],  # Canary Islands, Ceuta, Melilla
    "Turkey": [
        ((26, 40.8, 29, 42.2), EUROPE),  # Thrace, west of the Bosporus and the Dardanelles
        ((25.6, 40, 26.05, 40.3), EUROPE),  # Gökçeada, off Gallipoli
    ],
    "U.S. Minor Outlying Is.": [((-76, 18, -74, 19), NORTH_AMERICA)],  # Navassa
    "United States of America": [((-179.9, 18, -154, 29), OCEANIA)],  # Hawaii
}

# Europe's side of: the Kara Sea, the crest of the Ural mountains, the Ural river from its source to the Caspian Sea.
# South of it Russia's border with Georgia and Azerbaijan, close to the crest of the Caucasus, parts the continents.
WEST_OF_URAL = np.array(
    [
        [10, 84], [75, 84], [75, 77.5], [66, 73.5], [63, 71], [64.8, 69.25], [66.3, 68.4], [66.0, 67.7], [65.6, 67.05],
        [64.3, 66.6], [62.3, 65.8], [61.0, 65.3], [60.1, 65.0], [59.6, 64.2], [59.5, 63.0], [59.3, 62.0], [59.3, 61.2],
        [59.1, 60.5], [58.95, 59.7], [59.15, 58.9], [59.4, 58.3], [59.75, 57.9], [59.85, 57.3], [60.1, 56.9],
        [60.15, 56.5], [60.2, 56.0], [60.0, 55.5], [59.8, 55.1], [59.55, 54.8], [59.4, 54.65], [59.35, 54.2],
        [59.2, 53.88], [59.02, 53.4], [58.95, 52.72], [58.75, 52.2], [58.6, 51.75], [58.6, 51.22], [58.3, 51.18],
        [57.4, 51.12], [56.8, 51.15], [56.35, 51.38], [55.8, 51.62], [55.1, 51.74], [54.2, 51.58], [53.38, 51.5],
        [52.6, 51.43], [51.9, 51.32], [51.4, 51.19], [51.35, 50.8], [51.17, 50.2], [51.6, 49.2], [51.75, 48.55],
        [51.78, 47.8], [51.92, 47.1], [51.6, 46.8], [50.5, 46.2], [50.5, 40], [10, 40],
    ]
)  # fmt: skip

# Asia's side of the Suez Canal and the Gulf of Suez.
EAST_OF_SUEZ = np.array(
    [
        [32.31, 31.7], [32.31, 30.75], [32.3, 30.55], [32.37, 30.3], [32.57, 29.95], [32.62, 29.7], [32.85, 29.05],
        [33.35, 28.3], [33.85, 27.8], [34.2, 27.6], [36, 27.6], [36, 31.7],
    ]
)  # fmt: skip

# The middle of the Bosporus, finer than Natural Earth draws its banks; a strip along it is set on either side.
BOSPORUS = np.array(
    [
        [29.13, 41.24], [29.105, 41.2], [29.083, 41.178], [29.068, 41.152], [29.08, 41.122], [29.072, 41.108],
        [29.0605, 41.1], [29.0615, 41.0845], [29.052, 41.075], [29.049, 41.067], [29.034, 41.045], [29.01, 41.034],
        [28.998, 41.023], [28.998, 41.005], [28.99, 40.98],
    ]
)  # fmt: skip
STRIP_DEGREES = 0.05

# Islands that Natural Earth leaves out, (latitude, longitude).
SMALL_ISLANDS: dict[int, list[tuple[float, float]]] = {
    AFRICA: [(-16.6, 59.6), (-10.17, 51.1)],  # Cargados Carajos, Farquhar
    ASIA: [(20.7, 116.72)],  # Pratas
    EUROPE: [(36.148, 29.59), (35.94, -3.03), (42.39, 16.26)],  # Kastellorizo, Alborán, Palagruža
    OCEANIA: [  # Nukunonu, Suwarrow, Palmerston, Ulithi, Ashmore, Scott Reef, Coringa, Willis
        (-9.17, -171.83), (-13.25, -163.1), (-18.05, -163.17), (10.02, 139.8), (-12.26, 123.04), (-14.05, 121.77),
        (-16.97, 149.9), (-16.3, 149.97),
    ],
}  # fmt: skip

Ring = npt.NDArray[np.float64]
Grid = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Crossings:
    """Where the borders of polygons cross the middle line of each row: fills are between pairs of them."""

    row: npt.NDArray[np.int64]
    first_column: npt.NDArray[np.int64]
    end_column: npt.NDArray[np.int64]
    code: npt.NDArray[np.int64]

    def fill(self, grid: Grid, first_row: int) -> None:
        """Write the codes into rows `first_row` … of the world."""
        begin, end = np.searchsorted(self.row, [first_row, first_row + len(grid)])
        for i in range(begin, end):
            cells = grid[self.row[i] - first_row]
            start, stop = self.first_column[i], self.end_column[i]
            if start >= 0 and stop <= N_COLUMNS:
                cells[start:stop] = self.code[i]
            else:  # across the antimeridian
                cells[np.arange(start, stop) % N_COLUMNS] = self.code[i]


def country_rings(topology: dict[str, Any]) -> Iterator[tuple[str, list[Ring]]]:
    """Each polygon of each country: its outer ring and its holes, longitudes running on across the antimeridian."""
    scale, shift = (np.asarray(topology["transform"][key]) for key in ("scale", "translate"))
    arcs = [np.cumsum(arc, axis=0) * scale + shift for arc in topology["arcs"]]
    for country in topology["objects"]["countries"]["geometries"]:
        polygons = country["arcs"] if country["type"] == "MultiPolygon" else [country["arcs"]]
        for polygon in polygons:
            rings = [_ring([arcs[k] if k >= 0 else arcs[~k][::-1] for k in ring]) for ring in polygon]
            yield country["properties"]["name"], rings


def _ring(arcs: list[Ring]) -> Ring:
    points = np.concatenate([arcs[0], *(arc[1:] for arc in arcs[1:])])
    step = np.diff(points[:, 0])
    points[1:, 0] += np.cumsum(np.where(step > 180, -360, np.where(step < -180, 360, 0)))
    if abs(points[-1, 0] - points[0, 0]) > 1:  # around the south pole: close the ring below it
        points = np.concatenate([points, [[points[-1, 0], -90.01], [points[0, 0], -90.01], points[0]]])
    return points


def crossings(polygons: list[tuple[int, list[Ring]]]) -> Crossings:
    """Even-odd fill of polygons, row by row at the middle of the cells."""
    rows, longitudes, owners = [], [], []
    for owner, (_, rings) in enumerate(polygons):
        for ring in rings:
            (x0, y0), (x1, y1) = ring[:-1].T, ring[1:].T
            swap = y0 > y1
            x0, x1, y0, y1 = np.where(swap, x1, x0), np.where(swap, x0, x1), np.minimum(y0, y1), np.maximum(y0, y1)
            first = np.ceil((y0 + 90) * CELLS_PER_DEGREE - 0.5).astype(np.int64)
            end = np.ceil((y1 + 90) * CELLS_PER_DEGREE - 0.5).astype(np.int64)
            n = end - first
            edge = np.repeat(np.arange(len(n)), n)
            row = first[edge] + np.arange(len(edge)) - np.repeat(np.cumsum(n) - n, n)
            latitude = (row + 0.5) / CELLS_PER_DEGREE - 90
            longitudes.append(x0[edge] + (x1 - x0)[edge] * (latitude - y0[edge]) / (y1 - y0)[edge])
            rows.append(row)
            owners.append(np.full(len(row), owner))
    row, longitude, owner_of = np.concatenate(rows), np.concatenate(longitudes), np.concatenate(owners)
    order = np.lexsort((longitude, owner_of, row))
    column = np.ceil((longitude[order] + 180) * CELLS_PER_DEGREE - 0.5).astype(np.int64)
    code = np.asarray([code for code, _ in polygons])[owner_of[order][::2]]
    return Crossings(row[order][::2], column[::2], column[1::2], code)


def continent_of_polygon(country: str, outer: Ring) -> int:
    """The continent of one polygon of a country, or the cut that decides it."""
    longitude, latitude = (outer.min(axis=0) + outer.max(axis=0)) / 2
    for (west, south, east, north), continent in ELSEWHERE.get(country, []):
        if west <= longitude <= east and south <= latitude <= north:
            return continent
    return next(code for code, names in COUNTRIES.items() if country in names.split("; "))


def near_land(land: Grid, rows: slice, latitude: float) -> Grid:
    """The rows of a band with every cell within reach of land given to the nearest land."""
    km_per_row = KM_PER_DEGREE / CELLS_PER_DEGREE
    km_per_column = km_per_row * max(float(np.cos(np.radians(latitude))), 1e-3)
    pad = min(int(MAX_KM_TO_LAND / km_per_column) + 1, N_COLUMNS // 2)
    wrapped = np.concatenate([land[:, -pad:], land, land[:, :pad]], axis=1)
    if (wrapped == NO_LAND).all():
        return np.full_like(land[rows], NO_CONTINENT)
    km, (row, column) = distance_transform_edt(
        wrapped == NO_LAND, sampling=(km_per_row, km_per_column), return_indices=True
    )
    nearest = np.where(km <= MAX_KM_TO_LAND, wrapped[row, column], NO_CONTINENT)
    return nearest[rows, pad:-pad].astype(np.uint8)


def main() -> None:
    """Read the borders, fill the grid one degree of latitude at a time, write it as runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("countries", type=Path, help="countries-10m.json of the npm package world-atlas")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()

    topology = json.loads(arguments.countries.read_text(encoding="utf-8"))
    polygons = [(continent_of_polygon(name, rings[0]), rings) for name, rings in country_rings(topology)]
    land_runs = crossings(polygons)
    west_of_ural, east_of_suez = (crossings([(1, [np.vstack([p, p[:1]])])]) for p in (WEST_OF_URAL, EAST_OF_SUEZ))
    banks = crossings(
        [
            (continent, [np.vstack([BOSPORUS, np.add(BOSPORUS, [shift, 0])[::-1], BOSPORUS[:1]])])
            for continent, shift in ((EUROPE, -STRIP_DEGREES), (ASIA, STRIP_DEGREES))
        ]
    )
    # An island smaller than a cell has no middle line: its corners stand for it.
    corners = np.concatenate(
        [np.column_stack([ring, np.full(len(ring), code)]) for code, rings in polygons for ring in rings]
        + [[(longitude, latitude, code)] for code, points in SMALL_ISLANDS.items() for latitude, longitude in points]
    )
    corners = corners[corners[:, 1] > -90]
    corner_row = ((corners[:, 1] + 90) * CELLS_PER_DEGREE).astype(np.int64)
    by_row = np.argsort(corner_row, kind="stable")
    corner_row, corners = corner_row[by_row], corners[by_row]

    margin = int(MAX_KM_TO_LAND / KM_PER_DEGREE * CELLS_PER_DEGREE) + 1
    counts, columns, codes = [], [], []
    for first in range(0, N_ROWS, CELLS_PER_DEGREE):
        begin, end = max(first - margin, 0), min(first + CELLS_PER_DEGREE + margin, N_ROWS)
        land = np.full((end - begin, N_COLUMNS), NO_LAND, dtype=np.uint8)
        land_runs.fill(land, begin)
        here = slice(*np.searchsorted(corner_row, [begin, end]))
        row = corner_row[here] - begin
        column = ((corners[here, 0] + 180) * CELLS_PER_DEGREE).astype(np.int64) % N_COLUMNS
        is_free = land[row, column] == NO_LAND
        land[row[is_free], column[is_free]] = corners[here, 2][is_free]
        for cut, side, inside, outside in (
            (CUT_AT_URAL, west_of_ural, EUROPE, ASIA),
            (CUT_AT_SUEZ, east_of_suez, ASIA, AFRICA),
        ):
            mask = np.zeros_like(land)
            side.fill(mask, begin)
            land[(land == cut) & (mask == 1)] = inside
            land[land == cut] = outside
        middle_latitude = first / CELLS_PER_DEGREE - 90 + 0.5
        grid = near_land(land, slice(first - begin, first - begin + CELLS_PER_DEGREE), middle_latitude)
        banks.fill(grid, first)
        for cells in grid:
            starts = np.concatenate([[0], np.flatnonzero(np.diff(cells)) + 1])
            counts.append(len(starts))
            columns.append(starts)
            codes.append(cells[starts])
    np.savez_compressed(
        arguments.out,
        runs_per_row=np.asarray(counts, dtype=np.uint16),
        first_column=np.concatenate(columns).astype(np.uint16),
        continent=np.concatenate(codes),
    )
    print(f"{arguments.out}: {sum(counts):,} runs, {arguments.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
