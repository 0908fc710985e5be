"""Pairs of images by rank statistics (AutoNovel, FRoST): one category where the strongest features are the same."""

import math
from typing import Literal

import torch
from torch import Tensor

from igcd.errors import IgcdError

Ranked = Literal["known", "feature"]
"""What is ranked: the similarities to known categories, or the dimensions of the feature."""

PAIR_EPSILON = 1e-7
"""Keeps the logarithm of a pair's probability finite, as in AutoNovel."""


def same_top_dimensions(features: Tensor, *, k: int = 5) -> Tensor:
    """Which pairs have the same set of the k largest feature dimensions, in any order. (n, d) -> (n, n) bool.

    Of equal values the dimension with the lower index counts as larger. No gradient flows.

    >>> same_top_dimensions(torch.tensor([[3.0, 2.0, 0.0], [5.0, 9.0, 1.0], [0.0, 1.0, 2.0]]), k=2)
    tensor([[ True,  True, False],
            [ True,  True, False],
            [False, False,  True]])
    """
    if not 1 <= k <= features.shape[1]:
        raise IgcdError(
            f"k must be at least 1 and at most the width of the features, got {k} for {features.shape[1]}; change k"
        )
    largest = features.detach().argsort(dim=1, descending=True, stable=True)[:, :k]
    _, group = torch.unique(largest.sort(dim=1).values, dim=0, return_inverse=True)
    is_same: Tensor = group[:, None] == group
    return is_same


def same_ranks(features: Tensor, known_cosines: Tensor, *, ranked: Ranked, k: int) -> Tensor:
    """Which pairs agree about what is strongest in them. (n, d), (n, c) -> (n, n) bool.

    `feature`: the same k largest dimensions, as AutoNovel and FRoST have it on 512 of them. Of 1,280 the same five are
    next to never the largest; `known` asks for the same k most similar known categories, and for dimensions where there
    are no more than k categories.

    >>> cosines = torch.tensor([[0.9, 0.1, 0.2], [0.8, 0.3, 0.7], [0.1, 0.2, 0.3]])
    >>> same_ranks(torch.eye(3), cosines, ranked="known", k=1)
    tensor([[ True,  True, False],
            [ True,  True, False],
            [False, False,  True]])
    """
    if ranked == "known" and known_cosines.shape[1] > k:
        return same_top_dimensions(known_cosines, k=k)
    return same_top_dimensions(features, k=min(k, features.shape[1]))


def pair_cross_entropy(log_probs_1: Tensor, log_probs_2: Tensor, is_same: Tensor) -> Tensor:
    """BCE of every pair on the inner product of its probabilities, AutoNovel's. (n, c), (n, c), (n, n) -> ().

    Image i is seen in its first view, image j in its second; P_ij = Σ_c p_ic q_jc is the probability that both are of
    one category. The loss is the mean over all n² pairs, an image with itself among them, of −log P where `is_same`
    and of −log(1 − P) elsewhere.

    >>> half, sure = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[1.0, 0.0]]).log()
    >>> pair_cross_entropy(sure, half, torch.tensor([[True]]))  # log 2
    tensor(0.6931)
    """
    if len(log_probs_1) == 0:
        return log_probs_1.sum()
    both = log_probs_1.exp() @ log_probs_2.exp().T
    return -(torch.where(is_same, both, 1 - both).clamp(min=0.0) + PAIR_EPSILON).log().mean()


def view_consistency(log_probs_1: Tensor, log_probs_2: Tensor) -> Tensor:
    """Mean squared difference between the probabilities of two views, AutoNovel and FRoST. (n, c), (n, c) -> ().

    >>> view_consistency(torch.tensor([[1.0, 0.0]]).log(), torch.tensor([[0.5, 0.5]]).log())
    tensor(0.2500)
    """
    if len(log_probs_1) == 0:
        return log_probs_1.sum()
    return (log_probs_1.exp() - log_probs_2.exp()).square().mean()


def ramp_up(progress: float) -> float:
    """A weight that grows with the share of training done: exp(−5 (1 − t)²), and 1 from t = 1 on.

    >>> [round(ramp_up(progress), 4) for progress in (0, 0.5, 1, 2)]
    [0.0067, 0.2865, 1.0, 1.0]
    """
    return math.exp(-5.0 * (1.0 - min(max(progress, 0.0), 1.0)) ** 2)
