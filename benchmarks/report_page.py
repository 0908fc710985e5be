"""How large the report of a run with 5,000 photos is, and how fast its page answers.

    python benchmarks/report_page.py [--data ../shared/data/cub200_128px.npz]

The photos are real; answers, places and stages are drawn at random. Needs playwright and Chromium for the times.
"""

import argparse
import io
import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from igcd.data.images import fit
from igcd.metrics.predictions import write_predictions
from igcd.metrics.scorecard import scorecard
from igcd.records import write_bytes, write_json
from igcd.report.page import write_report
from igcd.report.picture_sheets import PER_SHEET, TILE, PlacedPicture, make_sheets, sheet_path, write_index
from igcd.types import Pixels, Predictions

N_PHOTOS, N_STAGES, N_KNOWN, N_FOUND_PER_STAGE = 5_000, 4, 100, 33
SPLITS = ("labeled", "unlabeled", "test")
STEPS = """(values) => values.map((value) => {
    const [name, text] = value;
    const control = document.getElementById("controls").elements[name];
    control.value = text;
    const start = performance.now();
    control.dispatchEvent(new Event("input", {bubbles: true}));
    return Math.round(performance.now() - start);
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(__file__).parents[2] / "shared" / "data" / "cub200_128px.npz"
    parser.add_argument("--data", type=Path, default=beside)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        write_run(out, *read_photos(parser.parse_args().data))
        page = write_report(out)
        print(f"{page.stat().st_size / 1e6:.1f} MB for {N_PHOTOS:,} photos")
        time_page(page)


def read_photos(path: Path) -> tuple[list[Pixels], list[str]]:
    data = np.load(path)
    content, ends = data["jpg_train"].tobytes(), data["off_train"]
    chosen = np.random.default_rng(0).permutation(len(ends) - 1)[:N_PHOTOS].tolist()
    photos = [np.asarray(Image.open(io.BytesIO(content[ends[i] : ends[i + 1]])).convert("RGB")) for i in chosen]
    return photos, [str(data["class_names"][data["y_train"][i]]) for i in chosen]


def write_run(out: Path, photos: list[Pixels], categories: list[str]) -> None:
    """The records of a run, as the report reads them."""
    rng = np.random.default_rng(0)
    names = sorted(set(categories))
    stage_of = rng.integers(0, N_STAGES, len(photos))
    placed = []
    for stage in range(N_STAGES):
        own = np.flatnonzero(stage_of == stage).tolist()
        for number, sheet in enumerate(make_sheets(np.stack([fit(photos[at], TILE) for at in own]))):
            write_bytes(sheet_path(out, stage, number), sheet)
        for tile, at in enumerate(own):
            image_id = f"images/{categories[at]}/{categories[at]}_{at:05d}.jpg"
            place = (stage, tile // PER_SHEET, tile % PER_SHEET, *rng.random(2).tolist())
            placed.append(PlacedPicture(image_id, SPLITS[at % 3], categories[at], *place))
    write_index(out, placed)
    rows = [
        (
            stage,
            one.split,
            one.image_id,
            one.category,
            answer(one.category, names, rng),
            group(one.category, names, stage),
        )
        for stage in range(N_STAGES)
        for one in placed
        if (one.stage == stage and one.split != "labeled") or (one.split == "test" and one.stage < stage)
    ]
    stages, *columns = zip(*rows, strict=True)
    predictions = Predictions(np.array(stages), *columns)
    write_predictions(predictions, out / "predictions.csv")
    known = {str(number): name for number, name in enumerate(names[:N_KNOWN])}
    examples = {name: thumbnails(out, photos, categories, name, 3) for name in known.values()}
    results = scorecard(predictions).to_json()
    for scores in results["stages"]:
        stage = scores["stage"]
        first = N_KNOWN + N_FOUND_PER_STAGE * (stage - 1)
        found = [
            {
                "cluster": number,
                "nearest_known": number - N_KNOWN,
                "size": 12,
                "category": names[number],
                "purity": 0.8,
                "images": thumbnails(out, photos, categories, names[number], 12),
            }
            for number in (range(first, first + N_FOUND_PER_STAGE) if stage else ())
        ]
        kept = dict.fromkeys(("replay_images", "support_images", "images", "pseudo_labeled", "bytes"), 0)
        seconds = {"learn": 0.0, "predict": 0.0}
        scores |= {"labeled_images": 1, "unlabeled_images": 1, "seconds": seconds, "kept": kept, "found": len(found)}
        record = {"stage": stage, "known_clusters": known, "discoveries": found, "examples": examples}
        write_json(out / "stages" / f"stage-{stage}.json", record)
    config = {"stream": {}, "encoder": {}, "method": {"name": "none"}, "seed": 0}
    results |= {"stream": "cub", "method": "none", "seed": 0, "seconds": {"learn": 0.0, "predict": 0.0}}
    results |= {"peak_memory_bytes": 0, "set_aside": {}, "versions": {}, "config": config}
    write_json(out / "config.json", config)
    write_json(out / "results.json", json.loads(json.dumps(results)))


def answer(category: str, names: list[str], rng: np.random.Generator) -> str:
    """Seven of ten are right."""
    return str(names.index(category) if rng.random() < 0.7 else int(rng.integers(len(names))))


def group(category: str, names: list[str], stage: int) -> str:
    return "Old" if stage == 0 or names.index(category) < N_KNOWN else "New"


def thumbnails(out: Path, photos: list[Pixels], categories: list[str], name: str, n: int) -> list[str]:
    (out / "gallery").mkdir(exist_ok=True)
    paths = []
    for at in [at for at, category in enumerate(categories) if category == name][:n]:
        paths.append(f"gallery/{at}.jpg")
        Image.fromarray(fit(photos[at], 96)).save(out / paths[-1], quality=85)
    return paths


def time_page(report: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        path = os.environ.get("IGCD_CHROMIUM") or shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(report.as_uri())
        print("slider, ms:", page.evaluate(STEPS, [["stage", str(stage)] for stage in (0, 1, 2, 3, 2, 1)]))
        print("search, ms:", page.evaluate(STEPS, [["search", "warbler"], ["search", "gull"], ["search", ""]]))
        browser.close()


if __name__ == "__main__":
    main()
