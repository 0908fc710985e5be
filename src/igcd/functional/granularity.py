"""How fine categories are, estimated from labeled rows: K, K^d and the margin between novel and known peaks.

Each labeled category is known to be one category, so labels can say at which K it comes out as one density peak, and
how much denser than similar a peak is when its category is hidden. One policy where labels are too few for that: what
they cannot say stays as it was, and is the paper's at first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch
from torch import Tensor

from igcd.errors import IgcdError
from igcd.functional.density import CANDIDATES, choose_n_neighbors
from igcd.functional.discovery import smallest_size
from igcd.functional.grouping import distinct
from igcd.functional.heights import Heights
from igcd.functional.hidden_categories import heights_by_hiding
from igcd.functional.neighbors import neighbor_graph
from igcd.functional.novelty import calibrate_margin
from igcd.functional.projection import project_together

MAX_K = max(CANDIDATES)
"""The largest K that is tried."""
MIN_LABELED = 2 * min(CANDIDATES) + 1
"""The smallest K that is tried is 3, with K^d 6: fewer than 7 rows have no six neighbors."""


@dataclass(frozen=True)
class Granularity:
    """How fine categories are. The defaults are the paper's K and K^d, and a margin from first experiments.

    The discovery core asks for none of them, but for the heights to cut its tree at and the size of the smallest
    category; it makes its own choice where they are None.
    """

    K: int = 10
    K_d: int = 20
    margin: float = 0.03
    heights: Heights | None = None
    smallest: int | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`."""
        heights = values["heights"]
        return cls(**{**values, "heights": None if heights is None else Heights.from_dict(heights)})


def estimate_k(features: Tensor, categories: Tensor, *, max_iou: float = 0.6) -> int | None:
    """The K at which labeled categories come out as one peak each; None with too few rows. (n, d), (n,)."""
    if len(features) < MIN_LABELED:
        return None
    graph = neighbor_graph(features, min(2 * MAX_K, len(features) - 1))
    return choose_n_neighbors(graph, categories, count="total", max_iou=max_iou)


def estimate_margin(
    features: Tensor, categories: Tensor, *, n_neighbors: int, n_closest: int = 5, max_iou: float = 0.6
) -> float | None:
    """The margin that separates labeled categories from hidden ones; None where too few rows have a peak. (n, d), (n,).

    Half of the rows play the unlabeled ones, so half of the `n_closest` that peaks are matched with are asked for.
    """
    if len(features) < MIN_LABELED:
        return None
    try:
        return calibrate_margin(
            features, categories, n_neighbors=n_neighbors, n_closest=max(1, n_closest // 2), max_iou=max_iou
        )
    except IgcdError:  # no peak of a known, or none of a hidden category
        return None


def estimate_granularity(
    features: Tensor,
    categories: Tensor,
    *,
    K: int | Literal["auto"] = "auto",  # noqa: N803 - as the paper calls it
    K_d: int = 20,  # noqa: N803
    margin: float | Literal["auto"] = "auto",
    n_closest: int = 5,
    max_iou: float = 0.6,
    n_kept: int | None = None,
    former: Granularity = Granularity(),  # noqa: B008 - frozen
) -> Granularity:
    """K, K^d and the margin, those that are `auto` from labeled rows; K^d is 2 K then. (n, d), (n,).

    With `n_kept`, the rows of each category that later batches are compared with, also the heights and the smallest
    size for the discovery core.

    Give as many labeled rows of each category as the set has that K is meant for: the right K grows with them, and the
    margin moves with K. `former` holds for what the rows are too few to say.
    """
    if K == "auto":
        estimated = estimate_k(features, categories, max_iou=max_iou)
        K, K_d = (former.K, former.K_d) if estimated is None else (estimated, 2 * estimated)  # noqa: N806
    if margin == "auto":
        found = estimate_margin(features, categories, n_neighbors=K, n_closest=n_closest, max_iou=max_iou)
        margin = former.margin if found is None else found
    if n_kept is None:
        return Granularity(K, K_d, margin)
    heights = heights_by_hiding(project_together(features)[0], categories, n_kept=n_kept)
    smallest = smallest_size(torch.bincount(distinct(categories)[1]))
    return Granularity(K, K_d, margin, former.heights if heights is None else heights, smallest)
