"""Where rows are compared: brought to one scale, centered, reduced to principal components, of length 1."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.novelty import Projection, fit_projection

ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Space:
    """A power of two that brings features near 1, because scale is not information, and a projection after it."""

    exponent: int
    projection: Projection

    @classmethod
    def fit(cls, X: npt.NDArray[Any], *, n_components: int | None) -> Self:  # noqa: N803 - as scikit-learn calls it
        """The space that these rows span. With fewer rows than components all are kept: later rows may need them."""
        largest = float(np.abs(X).max(initial=0.0))
        exponent = -int(np.frexp(largest)[1]) if largest > 0 else 0
        features, width = torch.from_numpy(np.ldexp(X, exponent)), X.shape[1]
        if n_components is None or len(X) < 2:
            return cls(exponent, Projection(features.new_zeros(width), torch.eye(width, dtype=features.dtype)))
        if min(n_components, width) >= len(X):
            return cls(exponent, Projection(features.mean(dim=0), torch.eye(width, dtype=features.dtype)))
        return cls(exponent, fit_projection(features, n_components=n_components))

    def __call__(self, X: npt.NDArray[Any]) -> Tensor:  # noqa: N803
        """Features as they are compared. (n, d) -> (n, c), rows of length 1.

        >>> Space(0, Projection(torch.zeros(2), torch.eye(2)))(np.array([[3.0, 4.0]], dtype=np.float32))
        tensor([[0.6000, 0.8000]])
        """
        mean, components = self.projection.mean, self.projection.components
        parts = []
        for start in range(0, max(len(X), 1), ROWS_AT_A_TIME):
            rows = X[start : start + ROWS_AT_A_TIME]
            largest = np.abs(rows).max(axis=1, initial=0.0)
            # Rows far larger than those of fit are divided by more, or their squares would overflow.
            excess = np.maximum(np.frexp(largest)[1].astype(np.int64) + self.exponent, 0)[:, None]
            near_one = torch.from_numpy(np.ldexp(rows, self.exponent - excess) - np.ldexp(mean.numpy(), -excess))
            parts.append(normalize(near_one @ components.T, dim=1))
        return torch.cat(parts)
