"""An iNaturalist export: from a CSV file to stages by year and continent, and a map.

    python examples/inaturalist.py observations.csv OUT ["2015-2022: Europe; 2023: Europe, Asia; 2024: Africa"]

The file needs the columns id, observed_on, latitude, longitude and scientific_name (on iNaturalist: Explore, Filters,
Download). OUT gets split.tsv, which `igcd` reads as a stream, and map.png. The stages default to the paper's.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from igcd.data.geography import NO_CONTINENT, continent_map
from igcd.data.observation_files import read_observation_file
from igcd.streams.inat_igcd import PlaceAndYearSplit, split_by_place_and_year, stage_coordinates
from igcd.streams.split import format_split
from igcd.streams.stage_rules import PlaceAndYearSpec, parse_stages
from igcd.types import FloatArray

STAGES = "2008-2016: North America, Europe; 2017: Oceania; 2018: Asia; 2019: Africa, South America"
COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")


def draw_map(places: list[FloatArray], path: Path, *, cells_per_degree: int = 4) -> None:
    """A dot per observation, a color per stage. `places` has (n, 2) degrees for each stage, latitude first."""
    land = continent_map(cells_per_degree) != NO_CONTINENT
    picture = Image.fromarray(np.where(land, 220, 255).astype(np.uint8)).convert("RGB")
    dots = ImageDraw.Draw(picture)
    for color, degrees in zip(COLORS, places, strict=False):
        for latitude, longitude in degrees.tolist():
            dots.circle(((longitude + 180) * cells_per_degree, (90 - latitude) * cells_per_degree), 3, fill=color)
    picture.save(path)


def main(file: Path, out: Path, stages: str = STAGES) -> PlaceAndYearSplit:
    """Reads the file, cuts it into stages, writes the split and the map."""
    observations = read_observation_file(file)
    built = split_by_place_and_year(observations, PlaceAndYearSpec(stages=parse_stages(stages), held_out=0.2), seed=0)
    for stage in built.stages:
        print(f"stage {stage.stage}: {stage.images} images of {stage.categories} species, {stage.new} of them new")
    for reason, n_rows in built.arrivals.skipped.items():
        print(f"left out, {reason}: {n_rows}")
    out.mkdir(parents=True, exist_ok=True)
    (out / "split.tsv").write_bytes(format_split(built.split))
    draw_map(stage_coordinates(observations, built.arrivals), out / "map.png")
    return built


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
