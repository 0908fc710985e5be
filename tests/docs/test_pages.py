"""What the documentation shows, works."""

import re
from pathlib import Path

import pytest

from igcd.method_registry import METHODS
from igcd.method_sections import MethodSection, TrainedSection

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_of_the_readme_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    shown = capsys.readouterr().out
    assert shown.startswith("known and new: [   0    1    2    3    4    5 1000 1001 1002")
    assert re.search(r"row 7 is a 7 and is called 100\d\n", shown)


def test_the_readme_is_short_and_says_where_igcd_is_before_it_is_used():
    assert len(README.splitlines()) <= 120
    assert README.index("![") < README.index("**Find new categories")
    first_command = re.search(r"^igcd ", README, flags=re.MULTILINE)
    assert README.index('export PATH="$PWD/.venv/bin:$PATH"') < first_command.start()


def test_the_figures_of_the_readme_are_those_that_were_measured():
    table = README.partition("## How good is it?")[2].partition("## What it is not")[0]
    figures = set(re.findall(r"\d+\.\d", table))
    measured = (ROOT / "REPRODUCIBILITY.md").read_text(encoding="utf-8")
    assert len(figures) > 10
    assert not {figure for figure in figures if not re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", measured)}


def test_what_the_pages_say_in_round_figures_is_what_was_measured():
    measured = (ROOT / "REPRODUCIBILITY.md").read_text(encoding="utf-8")
    panel = {line[0].partition(":")[0]: line for line in table_rows(measured, "### The discovery core on the panel")}
    error = {scene: panel[scene][7] for scene in ("many", "next", "few", "one", "none")}
    draws = table_rows(measured, "### A person's birds")[1:4]  # of the default encoder
    rights = [float(line[2].strip("*")) for line in draws]
    found = [int(line[5].split()[0]) for line in draws]
    right = f"{min(rights):.0f} to {max(rights):.0f}%"
    (discovery,) = re.findall(r"50,000 × 512 rows \| (\d+\.\d) s", measured)
    (off,) = re.findall(r"median of all tasks \| (\d+%)", measured)
    (ece,) = re.findall(r"ECE at most 0.05 \| (\d\.\d+)", measured)
    stated = f"by {100 * float(ece):.0f} points on average, by {100 * float(panel['many'][8]):.0f} where"
    not_for_this = " ".join((ROOT / "docs" / "not_for_this.md").read_text(encoding="utf-8").split())
    for sentence in (
        f"{right} of a batch is right before a person looks, and {min(found)} to {max(found)} of the 8 are found",
        f"off by {off} in the median over the tasks of the panel",
        f"by {error['many'].strip('%')} to {error['next']} with 20 labels",
        f"by {error['few']} with 3, by {error['one']} with one, by {error['none']} with none",
        stated,
        f"took {float(discovery):.0f} s on one core",
    ):
        assert sentence in not_for_this
    readme = " ".join(README.split())
    assert f"| {right} right |" in readme and f"| {off}; {error['many']} with 20 labels |" in readme
    assert stated in readme


def test_the_demo_has_one_golden_line():
    measured = (ROOT / "REPRODUCIBILITY.md").read_text(encoding="utf-8").partition("### The demo")[2]
    recipe = (ROOT / "src" / "igcd" / "recipes" / "demo.yaml").read_text(encoding="utf-8")
    (golden,) = re.findall(r"All at the stages (.*); (M_f .*, M_d .*)\.\n", recipe)
    alls = re.findall(r"stage \d All(?: / [\w-]+)* (\d+\.\d)", measured)
    assert golden[0] == ", ".join(alls) and golden[1] in measured


def table_rows(page, heading):
    """The cells of every row of the tables below a heading, up to the next one."""
    text = page.partition(f"{heading}\n")[2].partition("\n###")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_a_page_names_are_there(page):
    for path in re.findall(r"\btests/[\w/]+(?:\.py)?", page.read_text(encoding="utf-8")):
        assert page.name == "CHANGELOG.md" or (ROOT / path).exists(), f"{page.name} names {path}"


def test_the_options_of_every_method_that_trains_are_explained_once():
    page = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
    assert all(f"`{option}`" in page for option in set(TrainedSection.model_fields) - set(MethodSection.model_fields))


def test_the_methods_that_keep_images_are_those_the_page_names():
    page = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"(`snn_density` and `frozen_snn` spend it on .*?on exemplars)", page, flags=re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == {name for name in METHODS if METHODS[name].section().budget}


def test_every_function_on_the_page_of_maths_is_where_the_page_says():
    page = (ROOT / "docs" / "maths.md").read_text(encoding="utf-8")
    named = 0
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").replace("\\|", "/").split("|")]
        if len(cells) == 3 and ".py" in cells[2]:
            first, *others = re.findall(r"`([^`]*\.py)`", cells[2])
            beside = Path(first).parent  # where a file stands that is named without its folder
            files = [Path(first), *(Path(other) if "/" in other else beside / other for other in others)]
            source = "".join((ROOT / "src" / "igcd" / file).read_text(encoding="utf-8") for file in files)
            for name in re.findall(r"`(\w+)`", cells[1]):
                named += 1
                assert re.search(rf"^(def|class) {name}\b", source, flags=re.MULTILINE), f"{name} in {cells[2]}"
    assert named > 60


@pytest.mark.parametrize("method", METHODS)
def test_each_method_has_a_page_with_its_options(method):
    section = METHODS[method].section
    page = (ROOT / METHODS[method].page).read_text(encoding="utf-8")
    for parent in section.__mro__[1:]:
        if issubclass(parent, MethodSection) and parent not in (MethodSection, TrainedSection):
            name = parent.model_fields["name"].default
            assert f"]({name}.md)" in page, f"{method}.md does not link to {name}.md, whose options it has, too"
            page += (ROOT / METHODS[name].page).read_text(encoding="utf-8")
    options = set(section.model_fields) - set(TrainedSection.model_fields)
    assert not {option for option in options if not re.search(rf"`{option}\b", page)}
