"""A fitted estimator, fitted once: each test has a copy of its own."""

import copy

import numpy as np
import pytest
from discoverer.easy_rows import a_start
from sklearn.datasets import load_digits

from igcd.discoverer import CategoryDiscoverer


@pytest.fixture(scope="session")
def fitted():
    rows, y, _ = a_start()
    return CategoryDiscoverer().fit(rows, y)


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted)


@pytest.fixture(scope="session")
def digits():
    """All digits, of 0 to 5 every second one labeled; the last 500 are for testing."""
    rows, truth = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))
    rows, truth = rows[order], truth[order]
    y = np.where((truth < 6) & (np.arange(len(rows)) % 2 == 0), truth, -1)
    return rows[:-500], y[:-500], truth[:-500], rows[-500:], truth[-500:]


@pytest.fixture(scope="session")
def fitted_to_digits(digits):
    """Not to be changed: it is not copied."""
    return CategoryDiscoverer().fit(*digits[:2])
