"""Build iNatIGCD from a synthetic annotation file of iNat2021's size and layout: seconds and peak memory.

    python benchmarks/inat2021.py [--images 2686843] [--folder DIR] [--compare]

Writes train.json (1.08 GB) and val.json into the folder (a temporary one unless given), then reads them and builds
IGCD-l in a process of its own. `--compare` also times other ways to read the same file, where their packages are
installed (msgspec, orjson, ijson).
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

N_TRAIN, N_VAL, N_CATEGORIES = 2_686_843, 100_000, 10_000
SHARES = {"North America": 0.55, "Europe": 0.2, "Oceania": 0.07, "Asia": 0.08, "South America": 0.06, "Africa": 0.04}
"""Invented: they set how many images fall into stages, not how long the reading takes."""


def write_annotations(path: Path, split: str, n_images: int, rng: np.random.Generator) -> None:
    from igcd.data.geography import CONTINENTS, continent_of

    latitude = np.degrees(np.arcsin(rng.uniform(-0.85, 0.97, 400_000)))
    longitude = rng.uniform(-180, 180, len(latitude))
    names = np.asarray([*CONTINENTS, "none"])[continent_of(latitude, longitude)]
    pools = [np.flatnonzero(names == name) for name in SHARES]
    home = rng.choice(len(pools), N_CATEGORIES, p=list(SHARES.values()))
    categories = [
        {
            "image_dir_name": f"{i:05d}_Animalia_Arthropoda_Insecta_Order{i // 400:02d}_Family{i // 20:03d}_"
            f"Genus{i // 3:04d}_epithet{i:05d}",
            "id": i,
            "name": f"Genus{i // 3:04d} epithet{i:05d}",
            "common_name": f"Species No. {i}",
            "supercategory": "Insects",
            "kingdom": "Animalia",
            "phylum": "Arthropoda",
            "class": "Insecta",
            "order": f"Order{i // 400:02d}",
            "family": f"Family{i // 20:03d}",
            "genus": f"Genus{i // 3:04d}",
            "specific_epithet": f"epithet{i:05d}",
        }
        for i in range(N_CATEGORIES)
    ]
    with path.open("w", encoding="utf-8") as file:
        file.write('{"info": {"year": 2021, "version": "synthetic"}, "images": [')
        for i in range(n_images):
            category = i % N_CATEGORIES
            pool = pools[home[category] if rng.random() < 0.8 else rng.integers(len(pools))]
            place = pool[rng.integers(len(pool))]
            day = np.datetime64("2008-01-01") + int(4380 * rng.random() ** 0.4)
            record = {
                "id": i,
                "width": 500,
                "height": 375,
                "file_name": f"{split}/{categories[category]['image_dir_name']}/{i:08x}-7a3c-4f1e-9a55-{i:012x}.jpg",
                "license": 0,
                "rights_holder": f"Observer {i % 60_000}",
                "date": f"{day} {i % 24:02d}:{i % 60:02d}:00+00:00" if i % 500 else None,
                "latitude": round(float(latitude[place]), 5) if i % 300 else None,
                "longitude": round(float(longitude[place]), 5) if i % 300 else None,
                "location_uncertainty": i % 1000,
            }
            file.write((", " if i else "") + json.dumps(record))
        file.write('], "categories": ')
        json.dump(categories, file)
        file.write(', "annotations": [')
        for i in range(n_images):
            file.write((", " if i else "") + json.dumps({"id": i, "image_id": i, "category_id": i % N_CATEGORIES}))
        file.write('], "licenses": []}')


def build(folder: Path) -> None:
    from igcd.data.inat2021 import read_inat2021
    from igcd.streams.inat_igcd import split_by_place_and_year
    from igcd.streams.split import write_split
    from igcd.streams.stage_rules import PlaceAndYearSpec

    start = time.perf_counter()
    observations = read_inat2021(folder / "train.json", folder / "val.json")
    read = time.perf_counter()
    built = split_by_place_and_year(observations, PlaceAndYearSpec(), seed=0)
    cut = time.perf_counter()
    write_split(built.split, folder / "split.tsv")
    print(f"read {read - start:.1f} s, cut into stages {cut - read:.1f} s, written {time.perf_counter() - cut:.1f} s")
    for stage in built.stages:
        print(f"  stage {stage.stage}: {stage.images:,} images, {stage.categories:,} categories, {stage.new:,} new")


def continents() -> None:
    from igcd.data.geography import continent_of

    rng = np.random.default_rng(0)
    latitude, longitude = np.degrees(np.arcsin(rng.uniform(-1, 1, N_TRAIN))), rng.uniform(-180, 180, N_TRAIN)
    start = time.perf_counter()
    continent_of(latitude, longitude)
    print(
        f"continents of {N_TRAIN:,} points of the Earth: {time.perf_counter() - start:.2f} s, loading the grid included"
    )


def stdlib_stream(path: Path) -> None:
    from igcd.data.inat2021 import read_annotations

    read_annotations(path, is_test=False)


def stdlib_whole(path: Path) -> None:
    with path.open(encoding="utf-8") as file:
        json.load(file)


def with_orjson(path: Path) -> None:
    import orjson

    orjson.loads(path.read_bytes())


def with_msgspec(path: Path) -> None:
    import msgspec

    image = msgspec.defstruct(
        "Image",
        [
            ("id", int),
            ("file_name", str),
            ("date", str | None),
            ("latitude", float | None),
            ("longitude", float | None),
        ],
    )
    annotation = msgspec.defstruct("Annotation", [("image_id", int), ("category_id", int)])
    document = msgspec.defstruct(
        "Document", [("images", list[image]), ("annotations", list[annotation]), ("categories", list[dict])]
    )  # type: ignore[valid-type]
    msgspec.json.decode(path.read_bytes(), type=document)


def with_ijson(path: Path) -> None:
    import ijson

    for section in ("images", "annotations"):
        with path.open("rb") as file:
            for _ in ijson.items(file, f"{section}.item", use_float=True):
                pass


def measured(title: str, work: Callable[[Path], None], path: Path) -> None:
    """Runs in a process of its own, so that the peak is its own."""
    start = time.perf_counter()
    process = multiprocessing.get_context("spawn").Process(target=_report, args=(title, work, path))
    process.start()
    process.join()
    print(f"{title}: {time.perf_counter() - start:.1f} s with start of the process, exit code {process.exitcode}")


def _report(title: str, work: Callable[[Path], None], path: Path) -> None:
    work(path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"{title}: {time.process_time():.1f} s of one core, peak memory {peak:.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=N_TRAIN)
    parser.add_argument("--folder", type=Path, help="keep the files here and use them again")
    parser.add_argument("--compare", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for split, n_images, seed in (("train", arguments.images, 0), ("val", min(N_VAL, arguments.images), 1)):
            if not (folder / f"{split}.json").exists():
                write_annotations(folder / f"{split}.json", split, n_images, np.random.default_rng(seed))
        print(f"train.json: {(folder / 'train.json').stat().st_size / 1e9:.2f} GB")
        continents()
        measured("igcd build", build, folder)
        if arguments.compare:
            measured("record by record (ours)", stdlib_stream, folder / "train.json")
            measured("json.load", stdlib_whole, folder / "train.json")
            for package, work in (("msgspec", with_msgspec), ("orjson", with_orjson), ("ijson", with_ijson)):
                if find_spec(package):
                    measured(package, work, folder / "train.json")


if __name__ == "__main__":
    main()
