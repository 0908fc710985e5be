"""Predictions small enough to draw."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings

from igcd.types import Predictions

# The same examples in every run, and no time limit that a busy machine could break.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

Row = tuple[int, str, str, str, str, str]


def table(*rows: Row) -> Predictions:
    """Rows of (stage, split, image_id, category, cluster, group)."""
    stage, *columns = zip(*rows, strict=True)
    return Predictions(np.array(stage, dtype=np.int64), *columns)


@pytest.fixture(scope="session")
def make_table() -> Callable[..., Predictions]:
    return table


def incremental_stream(*, labeled: bool) -> list[tuple[int, str, str, str]]:
    """(stage, split, category, group) of 3 stages with 2 categories each: IGCD-l, or IGCD-u without labels."""
    categories = {0: ["ant", "bee"], 1: ["cat", "dog"], 2: ["eel", "fox"]}
    groups = {
        (0, 0): "Old",
        (1, 0): "Old" if labeled else "S-0",
        (1, 1): "New",
        (2, 0): "S-0",
        (2, 1): "Old" if labeled else "S-1",
        (2, 2): "New",
    }
    return [
        (stage, split, category, group)
        for (stage, of), group in groups.items()
        for category in categories[of]
        for split in (("test", "unlabeled") if of == stage > 0 else ("test",))
    ]


@pytest.fixture(params=[True, False], ids=["IGCD-l", "IGCD-u"])
def perfect_stream(request) -> Predictions:
    """Three images per category and split, each category in a cluster of its own that keeps its name."""
    return table(
        *(
            (stage, split, f"{split}-{category}-{i}", category, f"cluster of {category}", group)
            for stage, split, category, group in incremental_stream(labeled=request.param)
            for i in range(3)
        )
    )
