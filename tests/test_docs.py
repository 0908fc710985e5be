"""What the documentation shows, works."""

import re
from pathlib import Path

import pytest

from igcd.method_registry import METHODS
from igcd.method_sections import MethodSection, TrainedSection

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_example_of_the_readme_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    shown = capsys.readouterr().out
    assert shown.startswith("stage 0: ") and "2 new" in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_options_of_every_method_that_trains_are_told_once():
    page = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
    assert all(f"`{option}`" in page for option in set(TrainedSection.model_fields) - set(MethodSection.model_fields))


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
