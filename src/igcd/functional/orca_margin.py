"""ORCA: known categories are held back while the model is unsure of the unlabeled images, and images learn in pairs."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from igcd.functional.grouping import distinct, rank_within_group

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


def pair_partners(features: Tensor, labels: Tensor, *, generator: torch.Generator) -> Tensor:
    """With whom each image of a batch forms a pair. (n, d), (m,) -> (n,) positions in the batch.

    The first m images are labeled: each gets another one of its category, any with the same chance, or itself where it
    is the only one. Each unlabeled image gets its nearest neighbor by cosine among all others, labeled or not.
    """
    n_labeled = len(labels)
    partners = torch.arange(len(features), device=features.device)
    partners[:n_labeled] = _another_of_its_category(labels, generator)
    if len(features) > 1 and n_labeled < len(features):
        unit = normalize(features.detach(), dim=1)
        similarity = unit[n_labeled:] @ unit.T
        similarity.diagonal(n_labeled).fill_(-torch.inf)
        partners[n_labeled:] = similarity.argmax(dim=1)
    return partners


def pair_attraction(log_probs: Tensor, other_view_log_probs: Tensor, partners: Tensor) -> Tensor:
    """ORCA's pair loss: BCE of partners with the truth "same". (n, c), (n, c), (n,) -> ().

    The mean of −log Σ_c p_ic q_jc, with p the prediction of an image and q that of its partner's other view, in log
    space.

    >>> sure, half = torch.tensor([[1.0, 0.0]]).log(), torch.tensor([[0.5, 0.5]]).log()
    >>> pair_attraction(sure, half, torch.tensor([0]))  # log 2
    tensor(0.6931)
    """
    if len(log_probs) == 0:
        return log_probs.sum()
    return -(log_probs + other_view_log_probs[partners]).logsumexp(dim=1).mean()


def _another_of_its_category(labels: Tensor, generator: torch.Generator) -> Tensor:
    """For each image a random other one with its label, or itself. (m,) -> (m,)."""
    _, rows = distinct(labels)
    sizes = torch.bincount(rows)[rows]
    starts = (torch.bincount(rows).cumsum(0) - torch.bincount(rows))[rows]
    by_category, rank = rows.argsort(stable=True), rank_within_group(rows)
    draws = torch.rand(len(labels), generator=generator, dtype=torch.float64).to(labels.device)
    steps = 1 + (draws * (sizes - 1)).long()  # from 1 to size - 1 places further round the category: never itself
    return by_category[starts + (rank + steps) % sizes]
