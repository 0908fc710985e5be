"""Do the tests notice when the code is wrong? Changes one thing at a time and runs the tests of that file.

    python -m tools.mutants src/igcd/metrics src/igcd/memory --per-file 10 --seed 0 --out runs/mutants.jsonl

A mutant is the file with one change: a comparison, an operator, a number, a condition. It is killed if a test fails. A
fixed random sample of each file's mutants is tried; the same seed gives the same one. A file's tests are those of its
name (`tests/metrics/test_counts.py` for `metrics/counts.py`; all of the folder where none has it) and its doctests.
Each trial is a forked process with the heavy libraries loaded. Mutants in `--out` are not tried again, so it can be
stopped and repeated.
"""

import argparse
import ast
import copy
import doctest
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
SIZES = ("_AT_A_TIME", "CHUNK", "BYTES", "SAMPLE", "MAX_DENSE")
"""Names of constants that change how much is done at once, not what comes out."""
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Mod: ast.Mult,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Pow: ast.Mult,
}
NAME_SWAPS = {
    "min": "max",
    "max": "min",
    "argmin": "argmax",
    "argmax": "argmin",
    "any": "all",
    "all": "any",
    "sum": "max",
}


@dataclass(frozen=True)
class Mutant:
    """One changed place of a file."""

    file: str  # below src/igcd
    line: int
    change: str
    number: int  # position among all mutants of the file


def mutate(source: str) -> Iterator[tuple[int, str, str]]:
    """Every mutant of a source: line, what was changed, and the changed source."""
    tree = ast.parse(source)
    skipped = {id(part) for node in ast.walk(tree) for part in _not_code(node)}
    places = [node for node in ast.walk(tree) if id(node) not in skipped]
    for place, node in enumerate(places):
        for change in _changes(node):
            changed = copy.deepcopy(tree)
            twin = list(_walk_like(changed, skipped, tree))[place]
            words = _apply(twin, change)
            yield getattr(node, "lineno", 0), words, ast.unparse(ast.fix_missing_locations(changed))


def _walk_like(changed: ast.AST, skipped: set[int], original: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a copy that stand where the original's mutable nodes stand."""
    for mine, theirs in zip(ast.walk(changed), ast.walk(original), strict=True):
        if id(theirs) not in skipped:
            yield mine


def _not_code(node: ast.AST) -> Iterator[ast.AST]:
    """Parts whose change no test can notice: annotations, errors, chunk sizes, longer arrays, `zip(strict=True)`."""
    parts: list[ast.AST | None] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and "max(" in ast.unparse(node.left):
        parts.append(node.right if isinstance(node.right, ast.Constant) else None)  # x.max() + 1, a length
    if isinstance(node, ast.keyword) and node.arg in ("initial", "strict"):
        parts.append(node.value)
    if isinstance(node, ast.arg | ast.AnnAssign):
        parts.append(node.annotation)
    if isinstance(node, ast.FunctionDef):
        parts += [node.returns, *node.decorator_list]
    if isinstance(node, ast.Raise):
        parts.append(node)
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        parts.append(node)
    if isinstance(node, ast.ClassDef):
        parts += node.decorator_list
    if isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and any(size in target.id for size in SIZES) for target in node.targets
    ):
        parts.append(node)
    for part in parts:
        if part is not None:
            yield from ast.walk(part)


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """What can be changed at a node: the attribute, and its new value."""
    if isinstance(node, ast.Compare):
        for idx, operator in enumerate(node.ops):
            yield "ops", [*node.ops[:idx], SWAPS[type(operator)](), *node.ops[idx + 1 :]]
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        yield "op", SWAPS[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "op", ast.UAdd()
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "value", not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "value", node.value + 1
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "test", ast.UnaryOp(ast.Not(), copy.deepcopy(node.test))
    elif isinstance(node, ast.Attribute) and node.attr in NAME_SWAPS:
        yield "attr", NAME_SWAPS[node.attr]
    elif isinstance(node, ast.Name) and node.id in NAME_SWAPS and isinstance(node.ctx, ast.Load):
        yield "id", NAME_SWAPS[node.id]


def _apply(node: ast.AST, change: tuple[str, object]) -> str:
    before = ast.unparse(node).splitlines()[0]
    setattr(node, *change)
    return f"{before[:70]}  ->  {ast.unparse(ast.fix_missing_locations(node)).splitlines()[0][:70]}"


class _MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed source instead of its file."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.code = name, path, compile(source, str(path), "exec")

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As Python's import system asks for it."""
        if fullname != self.name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self.path))

    def exec_module(self, module: ModuleType) -> None:
        """Runs the changed source."""
        module.__file__ = str(self.path)
        exec(self.code, vars(module))


def tests_of(file: str) -> list[Path]:
    """The tests of a file below src/igcd, given as `metrics/counts`."""
    folder, _, stem = file.rpartition("/")
    named = ROOT / "tests" / folder / f"test_{stem}.py"
    return [named] if named.is_file() else sorted((ROOT / "tests" / folder).glob("test_*.py"))


def fails(file: str, source: str, *, seconds: float) -> str:
    """Runs the tests of a file with another source of it, in a child process: "killed", "survived" or "timeout"."""
    child = os.fork()
    if child == 0:
        import pytest

        os.setpgid(0, 0)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        name = f"igcd.{file.replace('/', '.')}"
        for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == "igcd"]:
            del sys.modules[loaded]  # by whoever called: the changed file must be imported
        n_failed = 1
        try:
            sys.meta_path.insert(0, _MutantFinder(name, ROOT / "src" / "igcd" / f"{file}.py", source))
            # Not pytest's doctests: it would import the file itself, past the finder.
            module = importlib.import_module(name)
            flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            n_failed = doctest.testmod(module, optionflags=flags).failed or int(
                pytest.main(["-x", "-q", "-n", "0", "--no-cov", "-p", "no:cacheprovider", *map(str, tests_of(file))])
            )
        finally:
            os._exit(min(n_failed, 1))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def sample(file: str, *, n: int, seed: int) -> list[tuple[Mutant, str]]:
    """A fixed random choice of the mutants of a file, in the order of its lines, with their sources."""
    found = list(mutate((ROOT / "src" / "igcd" / f"{file}.py").read_text(encoding="utf-8")))
    chosen = sorted(random.Random(f"{seed} {file}").sample(range(len(found)), min(n, len(found))))
    return [(Mutant(file, found[number][0], found[number][1], number), found[number][2]) for number in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description="Do the tests notice when the code is wrong?")
    parser.add_argument("paths", nargs="+", type=Path, help="files or folders below src/igcd")
    parser.add_argument("--per-file", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="after which a trial is stopped, and counts as killed"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/mutants.jsonl"))
    arguments = parser.parse_args()
    import hypothesis  # noqa: F401 - loaded once, for all children
    import sklearn.cluster  # type: ignore[import-untyped]  # noqa: F401
    import torch  # noqa: F401

    os.chdir(ROOT)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.out.read_text().splitlines() if arguments.out.is_file() else []
    tried = {(one["file"], one["number"], one["change"]): one["outcome"] for one in map(json.loads, lines)}
    files = [file for path in arguments.paths for file in ([path] if path.is_file() else sorted(path.glob("*.py")))]
    for file in files:
        name = file.resolve().relative_to(ROOT / "src" / "igcd").with_suffix("").as_posix()
        chosen = sample(name, n=arguments.per_file, seed=arguments.seed)
        if chosen and all((m.file, m.number, m.change) in tried for m, _ in chosen):
            continue
        if chosen and fails(name, file.read_text(encoding="utf-8"), seconds=arguments.seconds) != "survived":
            sys.exit(f"{name}: its tests fail as it is; correct that first")
        for mutant, source in chosen:
            key = (mutant.file, mutant.number, mutant.change)
            if key not in tried:
                tried[key] = fails(name, source, seconds=arguments.seconds)
                with arguments.out.open("a") as out:
                    out.write(json.dumps(asdict(mutant) | {"outcome": tried[key]}) + "\n")
            print(f"{tried[key]:8} {name}:{mutant.line}  {mutant.change}", flush=True)
    counts = Counter(tried.values())
    n_killed = counts["killed"] + counts["timeout"]
    share = n_killed / max(len(tried), 1)
    print(f"{n_killed} of {len(tried)} mutants killed ({share:.0%}), {counts['timeout']} by time-out")


if __name__ == "__main__":
    main()
