"""The projector m of the contrastive losses, and a tail with one."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from igcd.encoders.backbone import mixed_precision

N_HIDDEN = 2048
N_PROJECTED = 256


class Projector(nn.Module):
    """Three layers with GELU on the feature before it is normalised, as in SimGCD. (n, d) -> (n, 256) of length 1."""

    def __init__(
        self, n_features: int, *, generator: torch.Generator, n_hidden: int = N_HIDDEN, n_projected: int = N_PROJECTED
    ) -> None:
        super().__init__()
        first, second = nn.Linear(n_features, n_hidden), nn.Linear(n_hidden, n_hidden)
        self.layers = nn.Sequential(first, nn.GELU(), second, nn.GELU(), nn.Linear(n_hidden, n_projected))
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.trunc_normal_(parameter, std=0.02, generator=generator)
            else:
                nn.init.zeros_(parameter)

    def forward(self, features: Tensor) -> Tensor:  # noqa: D102
        return normalize(self.layers(features).to(features.dtype), dim=1)


class TailAndProjector(nn.Module):
    """What is trained: trunk output (n, ...) -> feature h (n, d) and projection z (n, 256), rows of length 1."""

    def __init__(self, tail: nn.Module, projector: Projector) -> None:
        super().__init__()
        self.tail = tail
        self.projector = projector

    def forward(self, intermediate: Tensor) -> tuple[Tensor, Tensor]:  # noqa: D102
        feature, z = tail_and_projection(self.tail, self.projector, intermediate)
        return normalize(feature, dim=1), z


def tail_and_projection(tail: nn.Module, projector: Projector, intermediate: Tensor) -> tuple[Tensor, Tensor]:
    """The feature before it is normalised, and its projection. (n, ...) -> (n, d), (n, 256) of length 1.

    A projector is trained in the precision of the tail: its matrices are as large as those of a small network's tail.
    """
    feature: Tensor = tail(intermediate)
    with mixed_precision(tail, feature.device):
        return feature, projector(feature)
