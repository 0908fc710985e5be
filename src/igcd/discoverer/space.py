"""Where rows are compared: centered, reduced to principal components, of length 1."""

from dataclasses import dataclass
from typing import Any, Self

import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.novelty import fit_projection

ROWS_AT_A_TIME = 1024


@dataclass(frozen=True)
class Space:
    """A center, and the directions that are kept; None keeps all."""

    mean: Tensor  # (d,)
    components: Tensor | None  # (c, d)

    @classmethod
    def fit(cls, X: npt.NDArray[Any], *, n_components: int | None) -> Self:  # noqa: N803 - as scikit-learn calls it
        """The space that these rows span. With fewer rows than components all are kept: later rows may need them."""
        features = torch.tensor(X)
        if n_components is None or len(X) < 2:
            return cls(torch.zeros(X.shape[1], dtype=features.dtype), None)
        if min(n_components, X.shape[1]) >= len(X):
            return cls(features.mean(dim=0), None)
        projection = fit_projection(features, n_components=n_components)
        return cls(projection.mean, projection.components)

    def compare(self, X: npt.NDArray[Any]) -> Tensor:  # noqa: N803
        """Features as they are compared. (n, d) -> (n, c), rows of length 1.

        >>> Space(torch.zeros(2), None).compare(torch.tensor([[3.0, 4.0]]).numpy())
        tensor([[0.6000, 0.8000]])
        """
        parts = []
        for start in range(0, len(X), ROWS_AT_A_TIME):
            centered = torch.tensor(X[start : start + ROWS_AT_A_TIME]) - self.mean
            parts.append(normalize(centered if self.components is None else centered @ self.components.T, dim=1))
        return torch.cat(parts)
