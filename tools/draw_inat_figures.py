"""Draw docs/images/inat_stages.png: the continents as `igcd.data.geography` knows them, colored by iNatIGCD's stages.

python tools/draw_inat_figures.py docs/images
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from igcd.data.geography import CONTINENTS, continent_of
from igcd.streams.stage_rules import PAPER_STAGES

STAGE_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")
OTHER_COLOR, OCEAN_COLOR = "#bbbbbb", "#ffffff"

# title, (west, east, south, north), places to mark as name -> (latitude, longitude)
CLOSE_UPS: tuple[tuple[str, tuple[float, float, float, float], dict[str, tuple[float, float]]], ...] = (
    (
        "Bosporus",
        (28.85, 29.2, 40.92, 41.26),
        {"Sultanahmet": (41.006, 28.976), "Üsküdar": (41.024, 29.015), "Kandilli": (41.0745, 29.059)},
    ),
    (
        "Ural mountains and river, Caucasus",
        (36, 70, 39, 63),
        {"Tbilisi": (41.72, 44.83), "Yekaterinburg": (56.84, 60.61), "Oral": (51.23, 51.37)},
    ),
    ("Suez and Cyprus", (29, 37, 27, 37), {"Cairo": (30.04, 31.24), "Nicosia": (35.19, 33.38)}),
    (
        "Macaronesia",
        (-32, -5, 26, 42),
        {"Ponta Delgada": (37.74, -25.68), "Funchal": (32.67, -16.92), "Las Palmas": (28.12, -15.44)},
    ),
)


def draw(axes: Axes, extent: tuple[float, float, float, float], n_columns: int) -> None:
    """One map of the part of the world between these degrees."""
    west, east, south, north = extent
    n_rows = round(n_columns * (north - south) / (east - west))
    longitude = west + (np.arange(n_columns) + 0.5) * (east - west) / n_columns
    latitude = north - (np.arange(n_rows) + 0.5) * (north - south) / n_rows
    stage_of = [
        next((index for index, rule in enumerate(PAPER_STAGES) if name in rule.continents), len(PAPER_STAGES))
        for name in CONTINENTS
    ]
    codes = np.asarray([*stage_of, len(PAPER_STAGES) + 1])[continent_of(latitude[:, None], longitude[None, :])]
    colors = ListedColormap([*STAGE_COLORS, OTHER_COLOR, OCEAN_COLOR])
    axes.imshow(codes, cmap=colors, vmin=0, vmax=len(STAGE_COLORS) + 1, extent=extent, interpolation="nearest")
    axes.set_aspect(1 / np.cos(np.radians((south + north) / 2)) if north - south < 90 else 1)
    axes.tick_params(labelsize=7)


def main() -> None:
    """Write the figure into the folder given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    mpl.use("Agg")
    figure = plt.figure(figsize=(10, 8), layout="constrained")
    grid = figure.add_gridspec(2, 4, height_ratios=(1.75, 1))
    world = figure.add_subplot(grid[0, :])
    draw(world, (-180, 180, -90, 90), 1800)
    labels = [
        f"stage {index}: {' and '.join(rule.continents)}, {'–'.join(str(year) for year in dict.fromkeys(rule.years))}"
        for index, rule in enumerate(PAPER_STAGES)
    ]
    patches = [Patch(color=color, label=label) for color, label in zip(STAGE_COLORS, labels, strict=True)]
    handles = [*patches, Patch(color=OTHER_COLOR, label="no stage: Antarctica")]
    world.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=3, fontsize=8, frameon=False)
    world.set_title("Land, and sea within 30 km of it, by the stage its observations arrive at", fontsize=10)
    for column, (title, extent, places) in enumerate(CLOSE_UPS):
        axes = figure.add_subplot(grid[1, column])
        draw(axes, extent, 500)
        axes.set_title(title, fontsize=9)
        for name, (latitude, longitude) in places.items():
            axes.plot(longitude, latitude, "o", markersize=3, color="black")
            axes.annotate(name, (longitude, latitude), xytext=(4, 3), textcoords="offset points", fontsize=7)
    figure.savefig(folder / "inat_stages.png", dpi=110)


if __name__ == "__main__":
    main()
