"""Takes the pictures of the review page and of a report that the docs show: docs/images/review-*.png, report-*.png.

    python tools/take_screenshots.py [--out docs/images] [--keep FOLDER] [--run runs/demo]

The photos are those that docs/your_own_photos.md draws, in a workspace made as it says; the report is that of a run
(`igcd demo`), left out without one. Needs Playwright and Debian's chromium (or IGCD_CHROMIUM=/path/to/it).
"""

import argparse
import contextlib
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from igcd.workspace.adapt import current_encoder
from igcd.workspace.catalog import open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.features import encoder_of
from igcd.workspace.init import init_workspace

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the server and the path of Chromium are those of the tests
from review.live_page import chromium_path, served  # noqa: E402

SIZE, PHONE, REPORT = (1320, 790), (390, 844), (1180, 1090)


def make_workspace(folder: Path) -> Path:
    """The photos and the workspace of the guide."""
    guide = (ROOT / "docs" / "your_own_photos.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", guide, re.DOTALL)
    if code is None:
        sys.exit("docs/your_own_photos.md has no Python that draws its photos any more; correct this tool")
    with contextlib.chdir(folder):
        exec(compile(code[1], "your_own_photos.md", "exec"), {})
    workspace = folder / "field guide"
    init_workspace(workspace, folder / "photos", from_folders=True)
    with open_catalog(workspace) as catalog:
        discover(catalog, current_encoder(catalog, encoder_of(catalog)))
    return workspace


def settle(page: Page) -> None:
    """Gives pictures in sight the time to come in; those below are only loaded when somebody scrolls to them."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(600)


def category(_page: Page) -> None:
    """The first new category, as the page opens."""


def more_like_this(page: Page) -> None:
    """Two photos of it, and what is like them."""
    page.locator(".grid .tile").first.wait_for()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("f")


def the_map(page: Page) -> None:
    """The map."""
    page.keyboard.press("g")


PICTURES: dict[str, tuple[Callable[[Page], None], str, tuple[int, int]]] = {
    "review-light": (category, "light", SIZE),
    "review-dark": (more_like_this, "dark", SIZE),
    "review-map": (the_map, "light", SIZE),
    "review-phone": (category, "light", PHONE),
}


def take(browser: Browser, link: str, name: str, out: Path) -> None:
    """One of `PICTURES`."""
    act, scheme, (width, height) = PICTURES[name]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=width < 500)
    page.goto(link)
    page.locator(".grid .tile").first.wait_for()
    act(page)
    settle(page)
    save(page, out / f"{name}.png")


def take_report(browser: Browser, run: Path, out: Path) -> None:
    """The map of a run at its last stage, with the pointer on an image near its middle."""
    page = browser.new_page(viewport={"width": REPORT[0], "height": REPORT[1]}, color_scheme="light")
    page.goto(f"{(run / 'report.html').resolve().as_uri()}#explore")
    settle(page)
    frame = page.locator("#map").bounding_box()
    if frame is None:
        sys.exit(f"{run} has a report without a map; run it again with this version")
    across = frame["x"] + frame["width"] / 2
    for down in range(round(frame["y"] + frame["height"] * 0.3), REPORT[1], 6):
        page.mouse.move(across, down)
        if page.locator("#hover").is_visible():
            break
    settle(page)
    save(page, out / "report-explore.png")


def save(page: Page, file: Path) -> None:
    """What is in sight, with as few colors as a page has."""
    page.screenshot(path=file)
    page.close()
    Image.open(file).convert("RGB").quantize(256, kmeans=4).save(file, optimize=True)
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """All pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--run", type=Path, help="folder of a run with a report")
    parser.add_argument("--keep", type=Path, help="folder for photos and workspace; used again when it is there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as driver:
        folder = (args.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        workspace = folder / "field guide"
        if not workspace.exists():
            make_workspace(folder)
        with served(workspace) as link:
            browser = driver.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
            for name in PICTURES:
                take(browser, link, name, args.out)
            if args.run is not None:
                take_report(browser, args.run, args.out)
            browser.close()


if __name__ == "__main__":
    main()
