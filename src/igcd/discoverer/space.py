"""Where rows are compared: brought to one scale, centered, reduced to principal components, of length 1."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import normalize

from igcd.functional.mapped_tables import half_table
from igcd.functional.neighbors import EXACT_UP_TO
from igcd.functional.novelty import Projection, fit_projection
from igcd.types import IntArray

ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Space:
    """A power of two that brings features near 1, because scale is not information, and a projection after it."""

    exponent: int
    projection: Projection

    @classmethod
    def fit(cls, X: npt.NDArray[Any], *, n_components: int | None) -> Self:  # noqa: N803 - as scikit-learn calls it
        """The space that these rows span. With fewer rows than components all are kept: later rows may need them."""
        largest = max(float(X.max(initial=0.0)), -float(X.min(initial=0.0)))
        exponent = -int(np.frexp(largest)[1]) if largest > 0 else 0
        features, width = torch.from_numpy(np.ldexp(X, exponent)), X.shape[1]  # half precision stays what it is here
        dtype = torch.promote_types(features.dtype, torch.float32)
        if n_components is None or len(X) < 2:
            return cls(exponent, Projection(torch.zeros(width, dtype=dtype), torch.eye(width, dtype=dtype)))
        if min(n_components, width) >= len(X):
            return cls(exponent, Projection(features.mean(dim=0, dtype=dtype), torch.eye(width, dtype=dtype)))
        return cls(exponent, fit_projection(features, n_components=n_components))

    def __call__(
        self,
        X: npt.NDArray[Any],  # noqa: N803
        rows: IntArray | None = None,
    ) -> Tensor:
        """Features as they are compared, of all or of some rows. (n, d) -> (n, c), rows of length 1.

        Of more rows than a graph is exact for they are kept in half precision, in a file that is mapped.

        >>> Space(0, Projection(torch.zeros(2), torch.eye(2)))(np.array([[3.0, 4.0]], dtype=np.float32))
        tensor([[0.6000, 0.8000]])
        """
        mean, components = self.projection.mean, self.projection.components
        n = len(X) if rows is None else len(rows)
        width = len(components)
        compared = half_table(n, width) if n > EXACT_UP_TO else torch.empty(n, width, dtype=mean.dtype)
        for start in range(0, n, ROWS_AT_A_TIME):
            part = slice(start, start + ROWS_AT_A_TIME)
            taken = (X[part] if rows is None else X[rows[part]]).astype(mean.numpy().dtype, copy=False)
            largest = np.abs(taken).max(axis=1, initial=0.0)
            # Rows far larger than those of fit are divided by more, or their squares would overflow.
            excess = np.maximum(np.frexp(largest)[1].astype(np.int64) + self.exponent, 0)[:, None]
            near_one = torch.from_numpy(np.ldexp(taken, self.exponent - excess) - np.ldexp(mean.numpy(), -excess))
            compared[part] = normalize(near_one @ components.T, dim=1)
        return compared
