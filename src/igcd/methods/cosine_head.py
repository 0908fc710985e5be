"""A parametric classifier of prototypes that grows: what the compared methods have where the paper compares with S."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from igcd.methods.projector import Projector, tail_and_projection


class CosineHead(nn.Module):
    """Cosine of a feature with one prototype per cluster; rows are normalised, so only their direction is learned.

    Row i is cluster i: ids are permanent, so rows are only ever added. A cluster that was dropped keeps its row and is
    left out by `is_open`.
    """

    is_open: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.prototypes = nn.Parameter(torch.empty(0, n_features))
        self.register_buffer("is_open", torch.empty(0, dtype=torch.bool))

    def __len__(self) -> int:
        return len(self.prototypes)

    def grow(self, prototypes: Tensor) -> None:
        """Adds clusters with these prototypes, (m, d)."""
        added = normalize(prototypes, dim=1).to(self.prototypes)
        self.prototypes = nn.Parameter(torch.cat([self.prototypes.detach(), added]))
        self.is_open = torch.cat([self.is_open, self.is_open.new_ones(len(prototypes))])

    def close(self, clusters: list[int]) -> None:
        """Leaves clusters out from now on."""
        self.is_open[clusters] = False

    def forward(self, h: Tensor) -> Tensor:
        """Cosines, (n, d) -> (n, clusters); -inf, for no image at all, where a cluster was dropped."""
        cosines = h @ normalize(self.prototypes, dim=1).T
        return cosines.masked_fill(~self.is_open, -torch.inf)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: object) -> None:
        """Takes the size of what is stored: a fresh head has no rows yet.

        One of that size is filled in place, for an optimizer may hold its prototypes already.
        """
        n_stored = len(state_dict[f"{prefix}prototypes"])
        if n_stored != len(self):
            self.prototypes = nn.Parameter(self.prototypes.new_empty(n_stored, self.prototypes.shape[1]))
            self.is_open = self.is_open.new_empty(n_stored)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def random_prototypes(n: int, n_features: int, generator: torch.Generator) -> Tensor:
    """Directions drawn at random, (n, d)."""
    return normalize(torch.randn(n, n_features, generator=generator), dim=1)


class HeadedModel(nn.Module):
    """What is trained: trunk output (n, ...) -> feature h, projection z, and cosines with the prototypes."""

    def __init__(self, tail: nn.Module, projector: Projector, head: CosineHead) -> None:
        super().__init__()
        self.tail, self.projector, self.head = tail, projector, head

    def forward(self, intermediate: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # noqa: D102
        feature, z = tail_and_projection(self.tail, self.projector, intermediate)
        h = normalize(feature, dim=1)
        return h, z, self.head(h)
