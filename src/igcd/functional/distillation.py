"""Feature distillation: the new model should see an image as the previous one saw it."""

from typing import Literal

from torch import Tensor
from torch.linalg import vector_norm
from torch.nn.functional import normalize

Distance = Literal["length", "squared"]
"""`length`: ‖f_old − f‖, FRoST's. `squared`: ‖f_old − f‖², Happy's."""


def feature_distillation(features: Tensor, old_features: Tensor, *, distance: Distance = "length") -> Tensor:
    """Mean distance between normalised features of the model and of its frozen predecessor. (n, d), (n, d) -> ().

    No gradient goes to the old features. Where both agree, as in the first step, the gradient is 0 and not a NaN.

    >>> import torch
    >>> here, there = torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> feature_distillation(here, there), feature_distillation(here, there, distance="squared")
    (tensor(1.4142), tensor(2.))
    """
    if len(features) == 0:
        return features.sum()
    apart = normalize(features, dim=1) - normalize(old_features.detach(), dim=1)
    if distance == "squared":
        return apart.square().sum(dim=1).mean()
    lengths: Tensor = vector_norm(apart, dim=1)
    return lengths.mean()
