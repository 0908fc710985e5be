"""Clusters that share as much information with the features as possible (PIM, MIB)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from igcd.functional.counting import matched_accuracy
from igcd.types import UNLABELED

CONDITIONAL_WEIGHTS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Values of λ that `choose_conditional_weight` tries."""


def mean_entropy(log_probs: Tensor) -> Tensor:
    """H(Y | X): the mean over rows of −Σ p log p; 0 of no row. (n, c) -> ()."""
    return -(log_probs.exp() * log_probs).sum() / max(len(log_probs), 1)


def entropy_of_mean(log_probs: Tensor) -> Tensor:
    """H(Y): the entropy of the mean prediction. (n, c) -> ()."""
    log_mean = log_probs.logsumexp(dim=0).log_softmax(dim=0)
    return -(log_mean.exp() * log_mean).sum()


def information_loss(logits: Tensor, categories: Tensor, *, conditional_weight: float) -> Tensor:
    """λ H(Y | X) of the unlabeled rows − H(Y) of all + cross entropy of the labeled. (n, c), (n,) -> ().

    `categories` are −1 for unlabeled rows. Without labels and with λ = 1 it is minus the mutual information.
    """
    log_probs = logits.log_softmax(dim=1)
    is_labeled = categories != UNLABELED
    loss = conditional_weight * mean_entropy(log_probs[~is_labeled]) - entropy_of_mean(log_probs)
    return loss + cross_entropy(logits[is_labeled], categories[is_labeled]) if is_labeled.any() else loss


def maximise_information(
    rows: Tensor,
    categories: Tensor,
    centers: Tensor,
    *,
    conditional_weight: float,
    n_steps: int,
    scale: float = 25.0,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-2,
) -> Tensor:
    """Centers moved by Adam, all rows in every step; PIM's numbers. (n, d), (n,), (c, d) -> (c, d).

    Logits are `scale` x · center. The loss is `information_loss`.
    """
    moved = centers.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([moved], lr=learning_rate, weight_decay=weight_decay)
    for _ in range(n_steps):
        optimizer.zero_grad()
        information_loss(scale * rows @ moved.T, categories, conditional_weight=conditional_weight).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return moved.detach()


def choose_conditional_weight(
    rows: Tensor,
    categories: Tensor,
    centers: Tensor,
    *,
    n_steps: int,
    scale: float = 25.0,
    weights: Sequence[float] = CONDITIONAL_WEIGHTS,
) -> float:
    """The λ whose clusters, found without labels, fit the labels best under a matching. (n, d), (n,), (c, d).

    Of equally good ones the smallest; 1 where nothing is labeled.
    """
    is_labeled = categories != UNLABELED
    if not is_labeled.any():
        return 1.0
    hidden = torch.full_like(categories, UNLABELED)
    fits = []
    for weight in weights:
        moved = maximise_information(rows, hidden, centers, conditional_weight=weight, n_steps=n_steps, scale=scale)
        clusters = (rows[is_labeled] @ moved.T).argmax(dim=1)
        fits.append(matched_accuracy(clusters.numpy(), categories[is_labeled].numpy()))
    return weights[fits.index(max(fits))]
