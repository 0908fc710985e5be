"""`igcd count`: how many categories are in anybody's embeddings."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from igcd.errors import IgcdError
from igcd.limits import MAX_SEED

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from igcd.functional.counting import CountEstimate

METHODS = ("density", "kmeans", "silhouette")
NO_LABEL = ("", "-1")
LABEL_COLUMNS = ("label", "category")
MAPPED_FROM = 2**28
"""Bytes from which a file of embeddings stays on disk and is read part by part."""
MAX_STARTS = 10_000
"""More would go on forever: each is a k-means of its own for every number of categories that is tried."""


def count(
    features: Annotated[
        Path,
        typer.Argument(
            help="One embedding per row, a .npy file of numbers, or a folder of `igcd embed`.",
            metavar="FEATURES.npy",
            show_default=False,
            readable=False,  # we check it: a file that cannot be read is an error like all others
        ),
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            help="One label per embedding: .npy, .csv with a column label or category, or text, a line each. "
            "Empty or -1 stands for none.",
            metavar="FILE",
            show_default=False,
            readable=False,
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="density, kmeans (needs labels) or silhouette.")] = "density",
    granularity: Annotated[
        float, typer.Option(help="density: below 0 for fewer and coarser categories, above 0 for more.", min=-5, max=5)
    ] = 0.0,
    max_categories: Annotated[
        int | None, typer.Option(help="Upper limit for kmeans and silhouette.", show_default=False)
    ] = None,
    starts: Annotated[int, typer.Option(help="Starts of each k-means, of which the best is kept.")] = 1,
    seed: Annotated[int, typer.Option(help="Random seed of what is drawn.", min=0, max=MAX_SEED)] = 0,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="density: search the neighbors of more than 100,000 embeddings on a Ray cluster (extras `ray` and "
            "`scale`) that sees the folder of FEATURES below the same path; `local` starts one here.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Workers on the Ray cluster, of one thread each.", min=1)] = 2,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Count the categories in embeddings: those that have labels, and the novel ones among the rest."""
    if method not in METHODS:
        raise IgcdError(f"--method must be one of {', '.join(METHODS)}, got {method!r}; choose one of them")
    if not 1 <= starts <= MAX_STARTS:
        raise IgcdError(f"--starts must be from 1 to {MAX_STARTS:,}, got {starts}; change it")
    embeddings = read_features(features)
    names = [""] * len(embeddings) if labels is None else read_labels(labels, n=len(embeddings))
    with _searching_on(ray, workers, features):
        estimate, n_known = estimate_from(
            embeddings,
            names,
            method=method,
            granularity=granularity,
            max_categories=max_categories,
            n_starts=starts,
            seed=seed,
        )
    n_labeled = sum(name not in NO_LABEL for name in names)
    if json:
        from json import dumps

        found = {
            "method": estimate.method,
            "n_categories": estimate.n_categories,
            "n_known": n_known,
            "n_novel": estimate.n_novel,
            "n_images": len(names),
            "n_labeled": n_labeled,
            "n_trials": estimate.n_trials,
            "details": dict(estimate.details),
        }
        typer.echo(dumps(found, indent=2, allow_nan=False))
        return
    typer.echo(f"{estimate.n_categories:,} categories, {n_known:,} with labels and {estimate.n_novel:,} novel")
    details = ", ".join(f"{name} {value:.4g}" for name, value in estimate.details.items())
    typer.echo(
        f"by {estimate.method} on {len(names):,} embeddings, {n_labeled:,} of them labeled; "
        f"numbers tried: {estimate.n_trials}; {details}"
    )


def _searching_on(ray: str | None, n_workers: int, features: Path) -> AbstractContextManager[None]:
    """Inside, neighbors are searched on a Ray cluster, if one is given."""
    if ray is None:
        return nullcontext()
    from igcd.embedding.graph_on_ray import GraphOnRay
    from igcd.embedding.workers import Cluster
    from igcd.functional.neighbors import searching_with

    folder = features if features.is_dir() else features.absolute().parent
    return searching_with(GraphOnRay(Cluster(ray, n_workers), folder))


def estimate_from(
    embeddings: "npt.NDArray[np.floating]",
    names: list[str],
    *,
    method: str,
    granularity: float,
    max_categories: int | None,
    n_starts: int,
    seed: int,
) -> "tuple[CountEstimate, int]":
    """The estimate and the number of labeled categories. (n, d), n names, empty or -1 where there is no label.

    `density` takes the steps of `CategoryDiscoverer.fit`: each content once, in an order that depends on content alone,
    the same projection, the same core. So both find as many, to the last bit of what they compute.
    """
    import numpy as np
    import torch

    from igcd.discoverer.rows import distinct_rows
    from igcd.functional.counting import check_unlabeled, count_projected, estimate_count
    from igcd.functional.projection import project_distinct

    distinct = distinct_rows(embeddings, [None if name in NO_LABEL else name for name in names])
    codes = {name: code for code, name in enumerate(_in_order({str(name) for name in distinct.labels if name}))}
    rows = np.array([codes[str(name)] if name else -1 for name in distinct.labels], dtype=np.int64)
    labels = torch.from_numpy(rows[rows >= 0])
    check_unlabeled(len(rows) - len(labels))
    if method == "density":
        _, projected = project_distinct(embeddings, distinct.first_rows)
        is_labeled = torch.from_numpy(rows >= 0)
        found = count_projected(projected, is_labeled, labels, granularity=granularity, seed=seed)
        return found, len(codes)
    labeled, unlabeled = (
        torch.from_numpy(_near_one(embeddings, distinct.first_rows[chosen])) for chosen in (rows >= 0, rows < 0)
    )
    estimate = estimate_count(
        method,  # type: ignore[arg-type]  # one of METHODS, which count() has checked
        labeled,
        labels,
        unlabeled,
        generator=torch.Generator().manual_seed(seed),
        granularity=granularity,
        max_categories=max_categories,
        n_starts=n_starts,
    )
    return estimate, len(codes)


def _in_order(names: set[str]) -> list[str]:
    """Names in the order in which `CategoryDiscoverer` numbers categories: whole numbers as numbers, others as texts.

    >>> _in_order({"10", "9", "-3"}), _in_order({"10", "9", "fox"})
    (['-3', '9', '10'], ['10', '9', 'fox'])
    """
    is_whole = all(name.removeprefix("-").isdecimal() for name in names)
    return sorted(names, key=lambda name: (int(name), name)) if is_whole else sorted(names)


def read_features(path: Path) -> "npt.NDArray[np.floating]":
    """A table of numbers from a .npy file, (n, d). Very many rows in half precision stay as they are, mapped."""
    import numpy as np

    from igcd.embedding.shards import features_path
    from igcd.functional.neighbors import EXACT_UP_TO

    path = features_path(path)
    table = _read_npy(path, "embeddings")
    if table.ndim != 2 or table.shape[1] == 0:
        raise IgcdError(
            f"{path} must hold a table with one embedding per row, got an array of shape {table.shape}; reshape it"
        )
    if not (np.issubdtype(table.dtype, np.integer) or np.issubdtype(table.dtype, np.floating)):
        raise IgcdError(f"{path} must hold numbers, got {table.dtype}; save the embeddings as float32")
    keeps_half = table.dtype == np.float16 and len(table) > EXACT_UP_TO  # twice the memory would be a lot there
    dtype = np.float32 if table.dtype in (np.float16, np.float32) else np.float64  # as `CategoryDiscoverer` has them
    numbers = table if keeps_half else table.astype(dtype, copy=False)
    finite = np.isfinite(numbers).all(axis=1)
    if not finite.all():
        raise IgcdError(
            f"{path}, row {int(finite.argmin())} (from 0): expected finite numbers, got others; "
            "check what it was encoded from"
        )
    return np.asarray(numbers)


def _near_one(
    embeddings: "npt.NDArray[np.floating]", rows: "npt.NDArray[np.int64]"
) -> "npt.NDArray[np.float16 | np.float32]":
    """Some rows, brought to a largest number near 1 in the whole table: scale is not information. (n, d), (m,).

    By a power of two, which rounds nothing: large numbers would overflow where they are squared, small ones vanish.
    Half precision stays as it is; its squares do not overflow.
    """
    import numpy as np

    if embeddings.dtype == np.float16:
        return np.asarray(embeddings[rows], dtype=np.float16)
    _, exponent = np.frexp(max(embeddings.max(initial=0), -embeddings.min(initial=0)))
    return np.asarray(np.ldexp(embeddings[rows], -exponent), dtype=np.float32)


def read_labels(path: Path, *, n: int) -> list[str]:
    """One label per embedding, as text; empty or -1 where there is none."""
    if path.suffix == ".npy":
        names = _labels_from_npy(path)
    elif path.suffix == ".csv":
        names = _labels_from_csv(path)
    else:
        names = [line.strip() for line in _read_text(path).split("\n")]
        if names[-1] == "":  # what stands behind the last line break is no line
            names.pop()
    if len(names) != n:
        raise IgcdError(f"{path} must hold one label for each of the {n} embeddings, got {len(names)}; align them")
    return names


def _labels_from_npy(path: Path) -> list[str]:
    from igcd.array_files import DamagedArrayError, values_of

    labels = _read_npy(path, "labels")
    if labels.ndim != 1 or labels.dtype.kind not in "iuU":
        raise IgcdError(
            f"{path} must hold one whole number or one name per embedding, got {labels.dtype} of shape {labels.shape}; "
            "save the labels as integers"
        )
    try:
        return [str(label).strip() for label in values_of(labels)]
    except DamagedArrayError as error:
        raise IgcdError(f"{path} cannot be read as .npy ({error}); save the labels as integers") from None


def _labels_from_csv(path: Path) -> list[str]:
    import csv
    import io

    try:
        header, *rows = csv.reader(io.StringIO(_read_text(path)), strict=True)
    except ValueError:
        raise IgcdError(f"{path} is empty; write a header and one line per embedding") from None
    except csv.Error as error:
        raise IgcdError(f"{path} is not a CSV file ({error}); correct it") from None
    columns = [column for column, name in enumerate(header) if name.strip().lower() in LABEL_COLUMNS]
    if len(columns) != 1:
        raise IgcdError(
            f"{path}, line 1: expected one column named {' or '.join(LABEL_COLUMNS)}, got {', '.join(header)}; "
            "rename the column of the labels"
        )
    names = []
    for line, row in enumerate(rows, start=2):
        row = row or [""]  # the reader gives an empty line back as nothing, in a file of one column it is no label
        if len(row) != len(header):
            raise IgcdError(f"{path}, line {line}: expected {len(header)} values, got {len(row)}; correct it")
        names.append(row[columns[0]].strip())
    return names


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise IgcdError(f"expected a file of labels, {path} is not a file; check the path")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise IgcdError(f"{path} is not UTF-8 text; save it as UTF-8, or as .npy") from None


def _read_npy(path: Path, what: str) -> "npt.NDArray[np.generic]":
    from igcd.array_files import DamagedArrayError, read_npy

    if not path.is_file():
        raise IgcdError(f"expected a .npy file of {what}, {path} is not a file; check the path")
    try:
        return read_npy(path, mapped=path.stat().st_size >= MAPPED_FROM)
    except DamagedArrayError as error:
        raise IgcdError(
            f"{path} cannot be read as .npy ({error}); save the {what} as numbers with numpy.save"
        ) from None
