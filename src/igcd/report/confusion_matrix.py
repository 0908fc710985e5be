"""The confusion table of the page: rows and columns by name, and for each cell where its photos are."""

from dataclasses import dataclass

from igcd.report.confusion import confusion_table, cross
from igcd.report.run_exploration import cluster_names, truth_names
from igcd.report.run_records import Run, StageRecord

N_ROWS = 12
N_COLUMNS = 24


@dataclass(frozen=True)
class MatrixColumn:
    """A cluster, by the name of what it stands for."""

    name: str
    is_new: bool


@dataclass(frozen=True)
class MatrixCell:
    """Images of a category in a cluster; `group` is the cluster's position among the names of all clusters."""

    n: int
    group: int
    name: str
    is_right: bool


@dataclass(frozen=True)
class MatrixRow:
    """A category; `truth` is its position among the names of all categories."""

    name: str
    truth: int
    is_new: bool
    n: int
    n_elsewhere: int
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class Matrix:
    """The categories of a stage with the most errors."""

    stage: int
    columns: tuple[MatrixColumn, ...]
    rows: tuple[MatrixRow, ...]


def confusion_matrix(run: Run, record: StageRecord, split: str) -> Matrix | None:
    """The table of one stage; None where nothing is confused, or nothing was asked."""
    crossing = cross(run.predictions, stage=record.stage, split=split)
    if crossing.is_right.all():
        return None
    table = confusion_table(crossing, n_rows=N_ROWS, n_columns=N_COLUMNS)
    names = cluster_names(run)
    group_of = {cluster: number for number, cluster in enumerate(names)}
    truth_of = {name: number for number, name in enumerate(truth_names(run))}
    known = set(record.known_clusters.values())
    clusters = [crossing.clusters[cluster] for cluster in table.clusters.tolist()]
    titles = [
        crossing.stands_for(position) or names[cluster]
        for position, cluster in zip(table.clusters.tolist(), clusters, strict=True)
    ]
    rows = []
    for at, category in enumerate(table.categories.tolist()):
        name = crossing.categories[category]
        cells = tuple(
            MatrixCell(int(table.counts[at, column]), group_of[cluster], title, bool(table.is_right[at, column]))
            for column, (cluster, title) in enumerate(zip(clusters, titles, strict=True))
        )
        n, n_elsewhere = int(crossing.n_images[category]), int(table.n_elsewhere[at])
        rows.append(MatrixRow(name, truth_of[name], name not in known, n, n_elsewhere, cells))
    columns = (
        MatrixColumn(title, cluster not in record.known_clusters)
        for cluster, title in zip(clusters, titles, strict=True)
    )
    return Matrix(record.stage, tuple(columns), tuple(rows))
