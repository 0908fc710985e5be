"""Gathers the pages of the site in one folder: docs/, the pages at the root, and the examples. Checks links and menu.

    python -m tools.gather_docs --out build/docs

Pages link to each other as they lie in the repository, so that they can also be read there. Here links are rewritten
for the site. A link to a file that is no page, such as a source file, becomes its path in code letters.
"""

import argparse
import ast
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT_PAGES = ("REPRODUCIBILITY", "CONTRIBUTING", "SECURITY", "CHANGELOG", "CODE_OF_CONDUCT")
LINK = re.compile(r"(?P<bang>!?)\[(?P<text>[^\]]*)\]\((?!https?:|mailto:|#)(?P<target>[^)\s#]+)(?P<anchor>#[^)]*)?\)")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def site_path(path: Path) -> Path | None:
    """Where a file of the repository is on the site; None if it is not part of it. Both paths are relative."""
    if path.parts[0] == "docs":
        return Path(*path.parts[1:])
    if path == Path("README.md"):
        return Path("index.md")
    if path.suffix == ".md" and path.stem in PROJECT_PAGES:
        return Path("project", f"{path.stem.lower()}.md")
    if path.parts[0] == "examples" and path.suffix == ".py":
        return Path("examples", f"{path.stem}.md")
    return None


def with_site_links(text: str, page: Path) -> str:
    """The text of a page of the repository, with links that are right on the site. Code blocks stay as they are."""

    def rewritten(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / link["target"]))
        place = site_path(target)
        if place is None:
            return f"{link['text']} (`{target.as_posix()}`)" if f"`{target.name}`" != link["text"] else f"`{target}`"
        here = site_path(page)
        assert here is not None
        relative = Path(os.path.relpath(place, here.parent)).as_posix()
        return f"{link['bang']}[{link['text']}]({relative}{link['anchor'] or ''})"

    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(rewritten, part) for part in parts)


def example_page(code: str, name: str) -> str:
    """An example as a page: the first line of its docstring, then the whole file."""
    title = (ast.get_docstring(ast.parse(code)) or name).splitlines()[0].rstrip(".")
    return f"# {title}\n\n`examples/{name}`. A test runs it.\n\n```python\n{code}```\n"


def gather(root: Path, out: Path) -> list[Path]:
    """Writes the pages below `out`, which is emptied first. Returns the paths of the pages relative to it."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(root / "docs", out, ignore=shutil.ignore_patterns("*.md"))
    sources = [*root.glob("docs/**/*.md"), *root.glob("examples/*.py")]
    sources += [root / f"{name}.md" for name in PROJECT_PAGES if (root / f"{name}.md").exists()]
    pages = []
    for source in sorted(sources):
        place = site_path(source.relative_to(root))
        assert place is not None
        text = source.read_text(encoding="utf-8")
        text = example_page(text, source.name) if source.suffix == ".py" else text
        (out / place).parent.mkdir(parents=True, exist_ok=True)
        (out / place).write_text(with_site_links(text, source.relative_to(root)), encoding="utf-8")
        pages.append(place)
    return pages


def pages_of_menu(menu: object) -> Iterator[Path]:
    """The pages that the `nav` of mkdocs.yml names, in its order."""
    if isinstance(menu, str):
        yield Path(menu)
    else:
        for entry in menu.values() if isinstance(menu, dict) else menu:  # type: ignore[attr-defined]
            yield from pages_of_menu(entry)


def find_faults(out: Path, pages: Sequence[Path], menu: Sequence[Path]) -> list[str]:
    """What is wrong with gathered pages, a sentence each: pages missing from the menu or double, dead links."""
    faults = [f"{page} is not in the menu; add it to nav in mkdocs.yml" for page in sorted(set(pages) - set(menu))]
    faults += [f"the menu names {page}, which is not a page; correct it" for page in sorted(set(menu) - set(pages))]
    faults += [f"{page} is in the menu twice; remove one" for page in sorted({p for p in menu if menu.count(p) > 1})]
    for page in pages:
        text = FENCE.sub("", (out / page).read_text(encoding="utf-8"))
        for link in LINK.finditer(text):
            if not (out / page.parent / link["target"]).is_file():
                faults.append(f"{page} links to {link['target']}, which is not a file; correct the link")
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(description="Gathers the pages of the site in one folder.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs")
    out = parser.parse_args().out
    pages = gather(ROOT, out)
    menu = list(pages_of_menu(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    if faults := find_faults(out, pages, menu):
        sys.exit("\n".join(faults))
    print(f"{len(pages)} pages in {out}")


if __name__ == "__main__":
    main()
