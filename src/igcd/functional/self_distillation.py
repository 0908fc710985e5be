"""SimGCD: the two views of an image teach each other, and on average all clusters are predicted alike."""

import math

from torch import Tensor

from igcd.functional.losses import distillation_loss, mean_prediction_entropy


def mutual_distillation(cosines_1: Tensor, cosines_2: Tensor, *, tau: float, target_tau: float) -> Tensor:
    """Each view learns what the other one predicts at a sharper temperature. (n, c), (n, c) -> ().

    The mean of both directions; no gradient goes to a target.
    """
    to_first, to_second = (
        distillation_loss((target / target_tau).log_softmax(dim=1), (anchor / tau).log_softmax(dim=1))
        for target, anchor in ((cosines_2, cosines_1), (cosines_1, cosines_2))
    )
    return (to_first + to_second) / 2


def mean_entropy_gap(log_probs: Tensor) -> Tensor:
    """How far the mean prediction is from even, log c − H(mean). (n, c) -> (), at least 0; to be minimised.

    >>> import torch
    >>> mean_entropy_gap(torch.tensor([[1.0, 0.0], [0.0, 1.0]]).add(1e-9).log())  # on average even
    tensor(0.)
    """
    if len(log_probs) == 0:
        return log_probs.sum()
    return math.log(log_probs.shape[1]) - mean_prediction_entropy(log_probs[:0], log_probs)
