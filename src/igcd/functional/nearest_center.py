"""The nearest of some centers as a classifier: how k-means answers for images it has not clustered."""

import torch
from torch import Tensor

_ROWS_AT_A_TIME = 4096


def nearest_center(features: Tensor, centers: Tensor, *, tau: float = 0.1) -> tuple[Tensor, Tensor]:
    """The nearest center of each image and its probability. (n, d), (k, d) -> (n,), (n,).

    Probabilities are softmax(−‖x − c‖² / 2τ): on features of length 1 and centers of length 1 those of a cosine
    classifier at the temperature τ, and the nearest center is always the most probable one.

    >>> nearest_center(torch.tensor([[0.0], [9.0]]), torch.tensor([[10.0], [0.0]]))
    (tensor([1, 0]), tensor([1., 1.]))
    """
    rows = torch.empty(len(features), dtype=torch.int64, device=features.device)
    probs = torch.empty(len(features), device=features.device)
    shift = centers.mean(dim=0)  # features far from the origin would lose their digits in the products
    moved = centers - shift
    for start in range(0, len(features), _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        closeness = (features[part] - shift) @ moved.T - moved.square().sum(dim=1) / 2
        best = (closeness / tau).softmax(dim=1).max(dim=1)
        probs[part], rows[part] = best.values, closeness.argmax(dim=1)
    return rows, probs
