"""`igcd count` and the estimator ask the same core, so they find the same number of new categories."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from igcd import CategoryDiscoverer
from igcd.functional.counting import count_by_density


@pytest.mark.parametrize("n_known", [0, 5, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_count_and_estimator_find_the_same_number(n_known, seed):
    rows, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(rows))[:900]
    rows, digits = rows[order].astype(np.float32), digits[order]
    is_labeled = (digits < n_known) & (np.arange(len(rows)) % 2 == 0)
    counted = count_by_density(
        torch.from_numpy(rows[is_labeled]), torch.from_numpy(digits[is_labeled]), torch.from_numpy(rows[~is_labeled])
    )
    model = CategoryDiscoverer().fit(rows, np.where(is_labeled, digits, -1))
    assert counted.n_novel == model.n_novel_ > 0
