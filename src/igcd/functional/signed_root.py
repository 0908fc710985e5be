"""Root of each entry: it makes features of a network more like rows of a Gaussian."""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def signed_root(features: Tensor) -> Tensor:
    """The square root of the size of each entry, with its sign, rows of length 1 again. (n, d) -> (n, d).

    A pooled feature is a mean of responses that are mostly 0 and sometimes large: it is skewed, and a few large entries
    decide about distances. Roots even that out, so that Gaussians fit (Tukey's ladder of powers, which Yang, Liu and
    Xu, 2021, take for categories of few images).

    >>> signed_root(torch.tensor([[0.16, 0.0, -0.09]]))
    tensor([[ 0.8000,  0.0000, -0.6000]])
    """
    return normalize(torch.sign(features) * features.abs().sqrt(), dim=1)
