"""iCaRL's choice of images to keep, and the means that its classifier compares with."""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def herding(features: Tensor, n: int) -> Tensor:
    """Positions of up to n images of one category whose running mean stays closest to its mean. (m, d) -> (min(n, m),).

    Features are L2-normalised and so is their mean μ. The k-th choice is argmin ‖μ − (f_i + Σ chosen) / k‖ over those
    not yet taken. As every f_i has length 1, that is argmax f_i · (k μ − Σ chosen); of equals the first.
    """
    features = normalize(features, dim=1)
    mean = normalize(features.mean(dim=0), dim=0)
    chosen = torch.empty(min(n, len(features)), dtype=torch.int64, device=features.device)
    taken = torch.zeros(len(features), dtype=torch.bool, device=features.device)
    missing = mean
    for k in range(len(chosen)):
        chosen[k] = (features @ missing).masked_fill(taken, -torch.inf).argmax()
        taken[chosen[k]] = True
        missing = missing + mean - features[chosen[k]]
    return chosen


def category_means(features: Tensor, rows: Tensor, *, n_categories: int) -> Tensor:
    """Normalised mean of the normalised features of each category. (n, d), (n,) -> (c, d)."""
    sums = features.new_zeros(n_categories, features.shape[1]).index_add(0, rows, normalize(features, dim=1))
    return normalize(sums, dim=1)
