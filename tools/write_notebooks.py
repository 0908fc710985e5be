"""The examples as notebooks: a cell of text, one for the imports, one for each function, and one that runs them.

    python -m tools.write_notebooks           # writes examples/notebooks/; repeat it after changing an example

A test fails while a notebook is not what this writes.
"""

import ast
import json
import re
import shlex
import textwrap
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = EXAMPLES / "notebooks"
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def notebook(code: str, name: str) -> dict[str, Any]:
    """An example as a notebook of format 4.5. `name` is that of its file."""
    tree = ast.parse(code)
    title, _, rest = (ast.get_docstring(tree) or name).partition("\n")
    cells = [
        ("markdown", f"# {title.rstrip('.')}\n{rest}\n\nWritten from `examples/{name}` by `tools/write_notebooks.py`.")
    ]
    docstring, *body, run = tree.body
    if not isinstance(run, ast.If):
        raise ValueError(f'{name} must end with `if __name__ == "__main__":`; move it to the end')
    lines, end = code.splitlines(), docstring.end_lineno or 0
    for _, statements in groupby(body, key=lambda node: isinstance(node, DEFINITIONS) and node.name):
        begin, end = end, [*statements][-1].end_lineno or 0
        cells.append(("code", "\n".join(lines[begin:end]).strip()))  # with the comments before it
    last = textwrap.dedent("\n".join(lines[run.lineno :]))
    if "sys.argv" in last:
        command = re.search(rf"python examples/({re.escape(name)}[^\[#\n]*)", code)  # what is in brackets is left out
        arguments = shlex.split(command[1]) if command else [name]
        hint = "put your own here" if len(arguments) > 1 else "or with your own, see above"
        cells.append(("code", f"sys.argv = {json.dumps(arguments)}  # {hint}"))
    cells.append(("code", last))
    return {
        "cells": [_cell(number, kind, text) for number, (kind, text) in enumerate(cells)],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}


def notebook_text(example: Path) -> str:
    """What the notebook of an example holds."""
    return json.dumps(notebook(example.read_text(encoding="utf-8"), example.name), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    NOTEBOOKS.mkdir(exist_ok=True)
    for example in sorted(EXAMPLES.glob("*.py")):
        target = NOTEBOOKS / f"{example.stem}.ipynb"
        target.write_text(notebook_text(example), encoding="utf-8")
        print(target.relative_to(ROOT))


if __name__ == "__main__":
    main()
