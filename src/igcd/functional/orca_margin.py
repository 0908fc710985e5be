"""ORCA: known categories are held back while the model is unsure of the unlabeled images, and images learn in pairs."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from igcd.functional.grouping import distinct, rank_within_group
from igcd.functional.neighbors import neighbor_graph

LOGIT_SCALE = 10.0
"""ORCA multiplies cosines with this to get logits."""


def uncertainty(log_probs: Tensor) -> Tensor:
    """How unsure a model is of images on average: the mean of 1 − max p. (n, c) -> (), 0 for no image.

    >>> uncertainty(torch.tensor([[0.5, 0.5], [1.0, 0.0]]).log())
    tensor(0.2500)
    """
    if len(log_probs) == 0:
        return log_probs.new_zeros(())
    return (1 - log_probs.detach().amax(dim=1).exp()).mean()


def adaptive_margin(mean_uncertainty: float, *, largest: float = 0.5) -> float:
    """ORCA's margin m, the uncertainty over the unlabeled set in the last epoch, at most one half.

    >>> adaptive_margin(0.2), adaptive_margin(0.9)
    (0.2, 0.5)
    """
    return min(mean_uncertainty, largest)


def margin_cross_entropy(logits: Tensor, categories: Tensor, *, margin: float, scale: float = LOGIT_SCALE) -> Tensor:
    """Cross entropy with ORCA's negative margin. (n, c), (n,) -> ().

    Logits are `scale` · cosine. The logit of the true category is raised by `scale` · `margin`: it is then right too
    soon, its gradient shrinks, and known categories do not run ahead of the novel ones.

    >>> margin_cross_entropy(torch.tensor([[0.0, 5.0]]), torch.tensor([0]), margin=0.5)  # both logits are 5: log 2
    tensor(0.6931)
    """
    if len(logits) == 0:
        return logits.sum()
    raised = torch.zeros_like(logits).scatter_(1, categories[:, None], scale * margin)
    return cross_entropy(logits + raised, categories)


def another_of_its_category(labels: Tensor, *, generator: torch.Generator) -> Tensor:
    """The partner of each labeled image: any other one of its category, or itself where it is the only one.

    (m,) -> (m,) positions; every other image of a category has the same chance.

    >>> another_of_its_category(torch.tensor([7, 3, 7]), generator=torch.Generator().manual_seed(0))
    tensor([2, 1, 0])
    """
    _, rows = distinct(labels)
    sizes = torch.bincount(rows)[rows]
    starts = (torch.bincount(rows).cumsum(0) - torch.bincount(rows))[rows]
    by_category, rank = rows.argsort(stable=True), rank_within_group(rows)
    draws = torch.rand(len(labels), generator=generator, dtype=torch.float64).to(labels.device)
    steps = 1 + (draws * (sizes - 1)).long()  # from 1 to size - 1 places further round the category: never itself
    return by_category[starts + (rank + steps) % sizes]


def nearest_other(features: Tensor) -> Tensor:
    """The partner of each unlabeled image: its nearest neighbor by cosine, itself where it is alone.

    (n, d) -> (n,) positions.
    """
    if len(features) < 2:
        return torch.arange(len(features))
    return neighbor_graph(features.detach(), 1).idx[:, 0]


def pair_attraction(log_probs: Tensor, partner_log_probs: Tensor) -> Tensor:
    """ORCA's pair loss: BCE of partners with the truth "same". (n, c), (n, c) -> ().

    The mean of −log Σ_c p_ic q_ic, with p the prediction of an image and q that of its partner, in log space.

    >>> sure, half = torch.tensor([[1.0, 0.0]]).log(), torch.tensor([[0.5, 0.5]]).log()
    >>> pair_attraction(sure, half)  # log 2
    tensor(0.6931)
    """
    if len(log_probs) == 0:
        return log_probs.sum()
    return -(log_probs + partner_log_probs).logsumexp(dim=1).mean()
