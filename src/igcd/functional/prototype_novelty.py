"""Is an image of a known category? By its similarity to the prototypes of the known ones (Grow and Merge)."""

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Hiding:
    """How similar images of known categories are to the closest prototype."""

    shown: Tensor  # (m,) with the category's own prototype among them, the image itself left out of it
    hidden: Tensor  # (m,) without it, as if the category had never been met


def hide_each_category(features: Tensor, categories: Tensor) -> Hiding:
    """Every category hidden in turn. (n, d), (n,) -> (m,), (m,), m <= n.

    An image that took part in a prototype is more like it than one that did not; so it is left out of its own. An image
    without others of its category has no such prototype and is skipped.

    >>> features = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> hide_each_category(features, torch.tensor([5, 5, 7]))
    Hiding(shown=tensor([0.6000, 0.8000]), hidden=tensor([0.0000, 0.8000]))
    """
    ids, rows = distinct(categories)
    unit = normalize(features, dim=1)
    sums = unit.new_zeros(len(ids), unit.shape[1]).index_add(0, rows, unit)
    own = (unit * normalize(sums[rows] - unit, dim=1)).sum(dim=1)
    to_all = unit @ normalize(sums, dim=1).T
    hidden = to_all.scatter(1, rows[:, None], -1.0).amax(dim=1) if len(ids) else own
    has_company = torch.bincount(rows, minlength=len(ids))[rows] > 1
    return Hiding(torch.maximum(own, hidden)[has_company], hidden[has_company])


def novelty_threshold(features: Tensor, categories: Tensor) -> float:
    """The similarity to known prototypes below which an image counts as novel. (n, d), (n,) -> a number.

    Estimated from the known images: each category is hidden in turn, and the threshold with the fewest errors is taken.
    An error is a shown image below it, or a hidden one not below it. Of equally good ones the lowest; −1, below which
    nothing is, where no category has two images.

    >>> features = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.0, 1.0]])
    >>> round(novelty_threshold(features, torch.tensor([5, 5, 7, 7])), 4)  # shown 0.8 and more, hidden 0.6 and less
    0.8
    """
    found = hide_each_category(features, categories)
    if not len(found.shown):
        return -1.0
    shown, hidden = found.shown.sort().values, found.hidden.sort().values
    candidates = torch.cat([shown.new_tensor([-1.0]), shown, hidden]).sort().values
    errors = torch.searchsorted(shown, candidates) + len(hidden) - torch.searchsorted(hidden, candidates)
    return float(candidates[errors.argmin()])
