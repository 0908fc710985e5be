"""The site: every page has its place, every link leads somewhere, and it can be built and read without a network."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from review.live_page import chromium_path
from tools.gather_docs import example_page, find_faults, gather, pages_of_menu, with_site_links

ROOT = Path(__file__).parents[2]


def read_menu():
    return list(pages_of_menu(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))


@pytest.fixture(scope="module")
def gathered(tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "docs"
    return out, gather(ROOT, out)


def test_every_page_has_one_place_and_every_link_leads_somewhere(gathered):
    assert find_faults(*gathered, read_menu()) == []


def test_all_that_is_written_is_on_the_site(gathered):
    _, pages = gathered
    assert len(pages) == len(set(pages))
    for file in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")]:
        assert (
            file.relative_to(ROOT / "docs") in pages
            if file.suffix == ".md"
            else Path("examples", f"{file.stem}.md") in pages
        )


def test_faults_are_found(tmp_path):
    (tmp_path / "a.md").write_text("[b](b.md) ![c](images/c.png)\n```\n[d](d.md)\n```\n")
    (tmp_path / "b.md").write_text("[a](a.md#top) [site](https://example.org)")
    pages = [Path("a.md"), Path("b.md")]
    assert find_faults(tmp_path, pages, [Path("a.md"), Path("a.md"), Path("gone.md")]) == [
        "b.md is not in the menu; add it to nav in mkdocs.yml",
        "the menu names gone.md, which is not a page; correct it",
        "a.md is in the menu twice; remove one",
        "a.md links to images/c.png, which is not a file; correct the link",
    ]


@pytest.mark.parametrize(
    ("page", "text", "on_the_site"),
    [
        ("docs/review.md", "[S](../SECURITY.md#reporting)", "[S](project/security.md#reporting)"),
        ("docs/methods/gm.md", "[c](../comparing.md)", "[c](../comparing.md)"),
        ("docs/methods/gm.md", "[r](../../REPRODUCIBILITY.md)", "[r](../project/reproducibility.md)"),
        ("REPRODUCIBILITY.md", "![p](docs/images/p.svg)", "![p](../images/p.svg)"),
        ("docs/estimator.md", "[e](../examples/embeddings.py)", "[e](examples/embeddings.md)"),
        ("docs/data.md", "[its table](../src/x.csv)", "its table (`src/x.csv`)"),
        ("docs/data.md", "[a](https://example.org) `[b](c)`", "[a](https://example.org) `[b](c)`"),
        ("docs/data.md", "```\n[a](../SECURITY.md)\n```\n", "```\n[a](../SECURITY.md)\n```\n"),
    ],
)
def test_links_are_those_of_the_site(page, text, on_the_site):
    assert with_site_links(text, Path(page)) == on_the_site


def test_an_example_is_a_page_with_its_title_and_code():
    page = example_page('"""Do it. Twice.\n\nMore.\n"""\n\nprint(1)\n', "do.py")
    assert page.startswith("# Do it. Twice\n") and "\nprint(1)\n```\n" in page


def test_the_front_page_has_four_doors():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    doors = re.findall(r"^-   \*\*(I .*)\*\*$", page, flags=re.MULTILINE)
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert doors == [next(iter(part)) for part in menu[1:]]
    assert doors == ["I have photos", "I have embeddings", "I compare methods", "I carry on the code"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it."""
    pytest.importorskip("zensical", reason="the site needs the extra `docs`")
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("docs", "examples", "tools", "src"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.npz"))
    for file in [*ROOT.glob("*.md"), ROOT / "mkdocs.yml"]:
        shutil.copy(file, folder)
    for command in (["tools.gather_docs"], ["zensical", "build", "--strict", "--clean"]):
        done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


@pytest.mark.slow
def test_the_site_is_built_strictly_and_loads_nothing_from_elsewhere(site):
    estimator = (site / "api" / "estimator.html").read_text(encoding="utf-8")
    assert all(f'id="igcd.discoverer.estimator.CategoryDiscoverer.{verb}"' in estimator for verb in ("fit", "assign"))
    assert "slate" in (site / "index.html").read_text(encoding="utf-8")  # dark mode
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)', page.read_text(encoding="utf-8")
        )
        assert not loaded, f"{page.name} loads {loaded}"


@pytest.mark.slow
def test_search_works_in_a_page_opened_as_a_file(site):
    playwright = pytest.importorskip("playwright.sync_api", reason="the site is opened by playwright")
    path = chromium_path()
    if path is None:
        pytest.skip("no chromium; install Debian's package `chromium`, or set IGCD_CHROMIUM to the program")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(offline=True)
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("/")
        box = page.get_by_placeholder("Search").first
        box.fill("rehearsal")
        page.get_by_text("results").first.wait_for(timeout=20_000)
        box.fill("rehearsal")  # the first word may come before the index
        page.locator("a[href*='comparing.html']", has_text="Choosing options").first.wait_for(timeout=20_000)
        browser.close()
