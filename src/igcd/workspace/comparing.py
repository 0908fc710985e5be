"""How photos of a workspace are compared outside a discovery: in the space that their labels whiten."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from igcd.functional.gaussian import scatter_statistics
from igcd.functional.grouping import distinct
from igcd.functional.growing_scatter import no_statistics
from igcd.functional.projection import N_COMPONENTS, Projection, fit_projection_of_all
from igcd.functional.whitening import Whitening, fit_whitening
from igcd.types import UNLABELED, IntArray
from igcd.workspace.feature_store import Features


@dataclass(frozen=True)
class Comparison:
    """Features to rows of length 1 whose product says how alike two photos are."""

    projection: Projection
    whitening: Whitening

    def __call__(self, features: Features) -> Tensor:
        """(n, d) -> (n, c), rows of length 1."""
        return self.whitening(self.projection.of_array(features))


def fit_comparison(features: Features, labels: IntArray, *, seed: int = 0) -> Comparison:
    """The space for photos like these, of which some have a category, -1 for none. (n, d), (n,)."""
    projection = fit_projection_of_all(features, n_components=N_COMPONENTS)
    h = projection.of_array(features)
    is_labeled = torch.from_numpy(labels != UNLABELED)
    ids, owners = distinct(torch.from_numpy(np.ascontiguousarray(labels))[is_labeled])
    known = scatter_statistics(h[is_labeled], owners, n_categories=len(ids)) if len(ids) else no_statistics(h.shape[1])
    return Comparison(projection, fit_whitening(h, known, generator=torch.Generator().manual_seed(seed)))
