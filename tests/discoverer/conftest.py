"""A fitted estimator, fitted once: each test has a copy of its own."""

import copy

import pytest
from discoverer.easy_rows import a_start

from igcd.discoverer import CategoryDiscoverer


@pytest.fixture(scope="session")
def fitted():
    rows, y, _ = a_start()
    return CategoryDiscoverer().fit(rows, y)


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted)
