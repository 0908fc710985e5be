"""`igcd count` and the estimator ask the same core, so they find the same number of new categories."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from igcd import CategoryDiscoverer
from igcd.cli.count import estimate_from
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


def test_they_do_where_only_a_sample_of_the_rows_is_looked_at():
    rng = np.random.default_rng(0)
    categories = rng.integers(60, size=5_000)
    rows = (rng.normal(size=(60, 24))[categories] + 0.7 * rng.normal(size=(5_000, 24))).astype(np.float32)
    rows[1::500] = rows[::500]  # copies count once
    labels = np.where((categories < 40) & (rng.random(5_000) < 0.02), categories, -1)
    settings = {"method": "density", "granularity": 0.0, "max_categories": None, "n_starts": 1, "seed": 0}
    names = ["" if label < 0 else str(label) for label in labels.tolist()]
    (counted, n_known), model = estimate_from(rows, names, **settings), CategoryDiscoverer().fit(rows, labels)
    assert n_known == len(np.unique(labels)) - 1
    assert counted.n_novel == model.n_novel_ > 0
