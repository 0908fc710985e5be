"""Where rows are compared: centered, reduced to principal components, of length 1, whatever their scale."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.novelty import fit_projection
from igcd.types import IntArray

ROWS_AT_A_TIME = 1024


@dataclass(frozen=True)
class Space:
    """A center, and the directions that are kept; None keeps all.

    Rows are divided by 2^exponent first. That rounds nothing, and keeps squares of large numbers from overflowing and
    those of small ones from vanishing: scale is not information.
    """

    mean: Tensor  # (d,) of the divided rows
    components: Tensor | None  # (c, d)
    exponent: int = 0

    @classmethod
    def fit(cls, X: npt.NDArray[Any], *, n_components: int | None) -> Self:  # noqa: N803 - as scikit-learn calls it
        """The space that these rows span. With fewer rows than components all are kept: later rows may need them."""
        exponent = int(_exponents(X.reshape(1, -1))[0])
        features = torch.from_numpy(np.ldexp(X, -exponent))
        if n_components is None or len(X) < 2:
            return cls(torch.zeros(X.shape[1], dtype=features.dtype), None, exponent)
        if min(n_components, X.shape[1]) >= len(X):
            return cls(features.mean(dim=0), None, exponent)
        projection = fit_projection(features, n_components=n_components)
        return cls(projection.mean, projection.components, exponent)

    def compare(self, X: npt.NDArray[Any]) -> Tensor:  # noqa: N803
        """Features as they are compared. (n, d) -> (n, c), rows of length 1.

        >>> Space(torch.zeros(2), None).compare(torch.tensor([[3.0, 4.0]]).numpy())
        tensor([[0.6000, 0.8000]])
        """
        parts = []
        for start in range(0, len(X), ROWS_AT_A_TIME):
            rows = X[start : start + ROWS_AT_A_TIME]
            larger = np.maximum(_exponents(rows) - self.exponent, 0)[:, None]  # than the rows of fit: divided by more
            mean = np.ldexp(self.mean.numpy(), -larger)
            centered = torch.from_numpy(np.ldexp(rows, -self.exponent - larger) - mean)
            parts.append(normalize(centered if self.components is None else centered @ self.components.T, dim=1))
        return torch.cat(parts)


def _exponents(X: npt.NDArray[Any]) -> IntArray:  # noqa: N803
    """For each row e with its largest number below 2^e, and at least half of that. (n, d) -> (n,)."""
    largest = np.maximum(X.max(axis=1, initial=0), -X.min(axis=1, initial=0))
    return np.asarray(np.frexp(largest)[1], dtype=np.int64)
