"""How a `CategoryDiscoverer` found a category."""

from dataclasses import dataclass

from igcd.memory.category_ledger import Label


@dataclass(frozen=True)
class Discovery:
    """How a category was found. Rows are positions in the X of the call that found it."""

    id: int
    label: Label  # what the category is called now, also after it was renamed or merged
    batch: int  # 0 for fit, 1 for the first partial_fit after it ...
    peak: int  # the most typical row, the densest of the category
    members: tuple[int, ...]  # that row, then the rows closest to the mean of the category
    n_rows: int  # unlabeled rows of the call that are in it
    nearest_id: int | None  # the category most like it when it was found; None if there was none
    similarity: float | None  # cosine of the two means
