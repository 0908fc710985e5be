"""Is an image of a known category? By its similarity to the prototypes of the known ones (Grow and Merge)."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.grouping import distinct


def similarity_to_known(queries: Tensor, prototypes: Tensor) -> Tensor:
    """Cosine of each image with the prototype most like it. (n, d), (c, d) -> (n,).

    >>> similarity_to_known(torch.tensor([[0.6, 0.8], [2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor([0.8000, 1.0000])
    """
    return (normalize(queries, dim=1) @ normalize(prototypes, dim=1).T).amax(dim=1)


def leave_one_out_similarity(features: Tensor, categories: Tensor) -> Tensor:
    """Cosine of each image with the mean of the other images of its category. (n, d), (n,) -> (m,), m <= n.

    An image that took part in a prototype is more like it than one that did not; so it is left out of its own. An image
    without others of its category has no value and is skipped.

    >>> features = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> leave_one_out_similarity(features, torch.tensor([5, 5, 7]))
    tensor([0.6000, 0.6000])
    """
    _, rows = distinct(categories)
    unit = normalize(features, dim=1)
    n_categories = int(rows.max()) + 1 if len(rows) else 0
    sums = unit.new_zeros(n_categories, unit.shape[1]).index_add(0, rows, unit)
    others = normalize(sums[rows] - unit, dim=1)
    has_company = torch.bincount(rows, minlength=n_categories)[rows] > 1
    return (unit * others).sum(dim=1)[has_company]


def novelty_threshold(features: Tensor, categories: Tensor, *, quantile: float) -> float:
    """The similarity to known prototypes below which an image counts as novel. (n, d), (n,) -> a number.

    A share of `quantile` of the known images themselves lies below it (`leave_one_out_similarity`); −1, below which
    nothing is, where no category has two images to tell it.

    >>> features = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> round(novelty_threshold(features, torch.tensor([5, 5, 7]), quantile=0.5), 4)
    0.6
    """
    similarity = leave_one_out_similarity(features, categories)
    return float(similarity.quantile(quantile)) if len(similarity) else -1.0
