"""Notebooks are in step with the examples, and their cells do what the example does."""

import json
import runpy
import sys

import pytest
from tools.write_notebooks import EXAMPLES, NOTEBOOKS, notebook, notebook_text


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_a_notebook_is_what_its_example_says(example):
    text = (NOTEBOOKS / f"{example.stem}.ipynb").read_text(encoding="utf-8")
    assert text == notebook_text(example), "run `python -m tools.write_notebooks`"


def test_there_is_no_notebook_without_an_example():
    assert {path.stem for path in NOTEBOOKS.iterdir()} == {path.stem for path in EXAMPLES.glob("*.py")}


def test_cells_print_what_the_example_prints(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["scoring.py"])
    runpy.run_path(str(EXAMPLES / "scoring.py"), run_name="__main__")
    expected = capsys.readouterr().out
    names = {}
    for cell in cells(NOTEBOOKS / "scoring.ipynb"):
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert capsys.readouterr().out == expected != ""


def test_text_then_imports_then_functions_then_the_run():
    code = '''"""Two numbers.

    python examples/add.py A B    # whole ones

It adds them.
"""

import sys

TEN = 10  # a constant

# Why this is here.
@staticmethod
def add(a, b):
    """The sum."""
    return a + b


if __name__ == "__main__":
    print(add(sys.argv[1], sys.argv[2]))
'''
    shown = ["".join(cell["source"]) for cell in notebook(code, "add.py")["cells"]]
    assert shown[0].startswith("# Two numbers\n\n    python examples/add.py A B")
    assert shown[1:] == [
        "import sys\n\nTEN = 10  # a constant",
        '# Why this is here.\n@staticmethod\ndef add(a, b):\n    """The sum."""\n    return a + b',
        'sys.argv = ["add.py", "A", "B"]  # put your own here',
        "print(add(sys.argv[1], sys.argv[2]))",
    ]
    with pytest.raises(ValueError, match=r"add\.py must end with"):
        notebook('"""Nothing."""\nprint(1)\n', "add.py")
