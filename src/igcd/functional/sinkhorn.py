"""Targets of equal size: rows go to columns as their scores ask for, and every column gets as much as another."""

import math

import torch
from torch import Tensor

from igcd.errors import IgcdError


def sinkhorn(scores: Tensor, *, epsilon: float = 0.05, n_rounds: int = 3) -> Tensor:
    """Soft assignments by Sinkhorn and Knopp, as UNO's targets. (n, c) -> (n, c), rows sum to 1.

    exp(scores / ε), whose columns and then rows are scaled to equal sums, `n_rounds` times over. The smaller ε, the
    closer to one column per row. Columns end with sums of about n / c, exactly so after many rounds.

    >>> sinkhorn(torch.tensor([[0.9, 0.1], [0.8, 0.1], [0.7, 0.2]])).sum(dim=0)  # all rows would choose the first
    tensor([1.4824, 1.5176])
    """
    if epsilon <= 0 or n_rounds < 1:
        raise IgcdError(
            f"sinkhorn needs an epsilon above 0 and one round at least, got {epsilon} and {n_rounds}; raise them"
        )
    log_shares = scores / epsilon
    if scores.numel() == 0:
        return log_shares
    log_size = math.log(scores.shape[0] / scores.shape[1])
    for _ in range(n_rounds):
        log_shares = log_shares - torch.logsumexp(log_shares, dim=0, keepdim=True) + log_size
        log_shares = log_shares.log_softmax(dim=1)
    return log_shares.exp()


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean over rows of −Σ target log softmax(logits); 0 of no row. (n, c), (n, c) -> ()."""
    return -(targets * logits.log_softmax(dim=1)).sum() / max(len(logits), 1)
