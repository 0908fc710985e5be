"""How long the review page takes to show a category, measured in the browser.

    pip install playwright, and Debian's chromium (or IGCD_CHROMIUM=/path/to/it)
    python benchmarks/review_page.py [--photos 5000] [--times 12] [--json]
    python benchmarks/review_page.py --pages 100000 [--times 3]     # map, categories, what needs a look, search

A workspace with one large category and one of 40 photos is made, served and opened in Chromium. Then the two are opened
in turn by keyboard. Two figures per opening, from `performance.now()` at the key press:
- painted: the category's frame with title, actions, look-alikes and the grid is on the screen;
- pictures: every picture in sight is decoded, too.
The first opening makes the thumbnails, later ones read them. The page is to show a category in under 200 ms.
Both are times of the clock and grow when other programs keep the machine busy. So the processor time of an opening is
given, too, which they hardly change: that of the server (with the little this program needs to press the key) and that
of the browser's process for the page, until all pictures are decoded.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import CDPSession, Page, sync_playwright

sys.path.insert(
    0, str(Path(__file__).parents[1] / "tests")
)  # the sample workspace and the server are those of the tests
from review.live_page import chromium_path, served
from workspace.sample_catalog import sample_workspace

from igcd.workspace.catalog import open_catalog

KNOWN, LARGE, SMALL = 1, 2, 3  # ids of the categories


def wait_until_measured(page: Page) -> None:
    # Playwright's own waiting evaluates text inside the page, which the page's policy forbids.
    while not page.evaluate("performance.getEntriesByName('igcd:open-pictures').length"):
        page.wait_for_timeout(20)


def browser_seconds(session: CDPSession) -> float:
    """Processor time that the process of the page has used so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "ProcessTime")


def opening_ms(page: Page, session: CDPSession, key: str, category: int) -> dict[str, float]:
    """Opens a category by a key: the page's own two figures and processor time, in milliseconds."""
    page.evaluate("performance.clearMeasures()")
    server_before, browser_before = time.process_time(), browser_seconds(session)
    page.keyboard.press(key)
    page.wait_for_url(f"**/#/category/{category}")
    wait_until_measured(page)
    server, browser = time.process_time() - server_before, browser_seconds(session) - browser_before
    duration = "name => performance.getEntriesByName(name)[0].duration"
    return {
        "painted": page.evaluate(duration, "igcd:open"),
        "pictures": page.evaluate(duration, "igcd:open-pictures"),
        "server_cpu": 1000 * server,
        "browser_cpu": 1000 * browser,
    }


def measure(n_photos: int, n_times: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        sample_workspace(Path(folder), known={"owl": 12}, novel={"large": n_photos, "small": 40}, size=64)
        with served(Path(folder) / "ws") as link, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(f"{link}#/category/{SMALL}")
            page.goto(f"{link.split('?')[0]}#/category/{SMALL}")
            wait_until_measured(page)
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            openings = []
            for _ in range(n_times):
                openings.append(opening_ms(page, session, "k", LARGE))
                opening_ms(page, session, "j", SMALL)
            n_elements = page.evaluate("document.querySelectorAll('*').length")
            browser.close()
    later = openings[1:]
    return {
        "n_photos": n_photos,
        "n_openings": n_times,
        "first": {name: round(value) for name, value in openings[0].items()},
        "later_median": {name: round(statistics.median(one[name] for one in later)) for name in openings[0]},
        "later_worst": {name: round(max(one[name] for one in later)) for name in openings[0]},
        "n_elements": n_elements,
        "load": round(os.getloadavg()[0], 1),
    }


def grow(workspace: Path, n_photos: int) -> None:
    """Adds photos without files: enough to see how the pages deal with the number.

    Half of them are in the large new category, four of ten in the known one, of which half need a look, and the others
    are unsure. All are on the map and have a date, a place and three alternatives.
    """
    rng = np.random.default_rng(0)
    with open_catalog(workspace) as catalog, catalog.transaction() as db:
        first = db.execute("SELECT MAX(id) FROM photos").fetchone()[0] + 1
        ids = range(first, first + n_photos)
        folder = db.execute("SELECT MIN(id) FROM folders").fetchone()[0]
        db.executemany(
            "INSERT INTO photos (id, content_hash, n_bytes, stage) VALUES (?, ?, 1, 0)",
            [(i, f"grown-{i}") for i in ids],
        )
        paths = [(folder, f"grown/{i % 40}/{i}.png", i) for i in ids]
        db.executemany("INSERT INTO photo_paths VALUES (?, ?, ?, 1, 1)", paths)
        share, probability = rng.random(n_photos).tolist(), rng.uniform(0.6, 1, n_photos).tolist()
        category = [LARGE if one < 0.5 else KNOWN if one < 0.9 else None for one in share]
        rows = zip(ids, category, probability, share, strict=True)
        db.executemany("INSERT INTO assignments VALUES (?, 0, ?, ?, ?, 0, 0)", rows)
        places = zip(ids, rng.random(n_photos).tolist(), rng.random(n_photos).tolist(), strict=True)
        db.executemany("INSERT INTO places VALUES (0, ?, ?, ?)", places)
        db.executemany(
            "INSERT INTO alternatives VALUES (?, ?, ?, ?)",
            [(i, place, place + 1, 0.5 - 0.2 * place) for i in ids for place in range(3)],
        )
        looks = [
            i for i, own, p in zip(ids, category, probability, strict=True) if own is None or (own == KNOWN and p < 0.8)
        ]
        db.executemany("INSERT INTO looks VALUES (?, ?)", [(i, at // 20 + 1) for at, i in enumerate(looks)])
        taken = [f"2026-{1 + i % 12:02d}-{1 + i % 28:02d}T12:00:00" for i in ids]
        where = zip(
            ids, taken, rng.uniform(-60, 70, n_photos).tolist(), rng.uniform(-180, 180, n_photos).tolist(), strict=True
        )
        db.executemany("INSERT INTO shots VALUES (?, ?, ?, ?)", where)


PAGES = {"g": "map", "q": "new category", "b": "known category", "l": "needs a look", "/": "search"}
"""The pages that `measure_pages` opens, by their keys."""


def measure_pages(n_photos: int, n_times: int) -> dict[str, object]:
    """Milliseconds until each page of a workspace of so many photos is on the screen, the first time and later."""
    with tempfile.TemporaryDirectory() as folder:
        sample_workspace(Path(folder), known={"owl": 12}, novel={"large": 40, "small": 40}, size=64)
        grow(Path(folder) / "ws", n_photos)
        with served(Path(folder) / "ws") as link, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(f"{link}#/category/{SMALL}")
            page.goto(f"{link.split('?')[0]}#/category/{SMALL}")
            wait_until_measured(page)
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            opened: dict[str, list[dict[str, float]]] = {name: [] for name in PAGES.values()}
            extra: dict[str, object] = {}
            for _ in range(n_times):
                for key, name in PAGES.items():
                    page.evaluate("performance.clearMeasures(); document.activeElement.blur()")
                    started, browser_before = time.process_time(), browser_seconds(session)
                    page.keyboard.press(key)
                    while not page.evaluate("performance.getEntriesByName('igcd:open').length"):
                        page.wait_for_timeout(20)
                    painted = page.evaluate("performance.getEntriesByName('igcd:open')[0].duration")
                    server, used = time.process_time() - started, browser_seconds(session) - browser_before
                    opened[name].append({"painted": painted, "server_cpu": 1000 * server, "browser_cpu": 1000 * used})
                    if name == "map":
                        extra = {"frame": round(page.evaluate(FRAME), 1), "webgl": page.evaluate(HAS_WEBGL)}
            browser.close()
    return {
        "n_photos": n_photos,
        "pages": {
            name: {
                "first": {figure: round(value) for figure, value in times[0].items()},
                "later_median": {
                    figure: round(statistics.median(one[figure] for one in times[1:])) for figure in times[0]
                },
            }
            for name, times in opened.items()
        },
        **extra,
        "load": round(os.getloadavg()[0], 1),
    }


HAS_WEBGL = "() => document.createElement('canvas').getContext('webgl2') !== null"
FRAME = """() => {
  const overlay = document.querySelector("canvas.map-overlay");
  const started = performance.now();
  for (let i = 0; i < 20; i++) {
    const key = i % 2 ? "ArrowLeft" : "ArrowRight";
    overlay.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
  return (performance.now() - started) / 20;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=5000)
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--pages", type=int, help="measure the map and the other pages of so many photos instead")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if chromium_path() is None:
        sys.exit("no chromium; install Debian's package `chromium`, or set IGCD_CHROMIUM to the program")
    if options.pages:
        print(json.dumps(measure_pages(options.pages, max(2, options.times)), indent=2))
        return
    figures = measure(options.photos, options.times)
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"{figures['n_photos']:,} photos, {figures['n_openings']} openings, machine load {figures['load']}")
    for name in ("first", "later_median", "later_worst"):
        one = figures[name]
        cpu = f"processor: server {one['server_cpu']} ms, browser {one['browser_cpu']} ms"
        print(f"{name:13} painted {one['painted']:4} ms, with all pictures in sight {one['pictures']:5} ms; {cpu}")


if __name__ == "__main__":
    main()
