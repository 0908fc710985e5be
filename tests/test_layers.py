"""Data flows one way: a layer imports only from the layers before it."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "igcd"

ORDER = [
    "types",
    "errors",
    "limits",
    "allocation",
    "hidden",
    "records",
    "array_files",
    "tensor_files",
    "functional",
    "memory",
    "discoverer",
    "data",
    "streams",
]
ORDER += [
    "encoders",
    "training",
    "methods",
    "metrics",
    "report",
    "method_sections",
    "method_registry",
    "config",
    "assembly",
    "run_folder",
    "run_pictures",
    "runner",
]
ORDER += ["comparison", "workspace", "embedding", "review", "cli"]


def layer_of(path: Path) -> str:
    name = path.relative_to(SRC).parts[0].removesuffix(".py")
    return "cli" if name.startswith("cli") else name


def imports(path: Path) -> set[str]:
    """The layers a file imports from, also inside functions and under TYPE_CHECKING."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer; write it out"
            names = [node.module or ""]
            if node.module == "igcd":
                names = [f"igcd.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("igcd.")}
    return {"cli" if name.startswith("cli") else name for name in found} - {"__version__"}


FILES = sorted(path for path in SRC.rglob("*.py") if path != SRC / "__init__.py")


def test_every_layer_has_its_place():
    assert {layer_of(path) for path in FILES} <= set(ORDER) | {"__main__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_no_arrow_points_back(path):
    layer = layer_of(path)
    if layer == "__main__":
        return
    allowed = {*ORDER[: ORDER.index(layer) + 1]}
    assert imports(path) <= allowed, f"{path.relative_to(SRC)} imports from a later layer"


def test_the_walk_sees_a_backward_arrow(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f():\n    from igcd.metrics import accuracy\n    import igcd.report.page\n")
    assert imports(wrong) == {"metrics", "report"}


def test_tests_mirror_the_packages():
    """A package's tests are in the folder of its name; tests of pages, tools and benchmarks have theirs."""
    packages = {path.parent.name for path in SRC.glob("*/__init__.py")}
    others = {path.name for path in SRC.parents[1].iterdir() if path.name in ("benchmarks", "docs", "tools")}
    folders = {path.name for path in Path(__file__).parent.iterdir() if any(path.glob("test_*.py"))}
    assert folders == packages | others
