"""Rows of categories that are easy to tell apart."""

import numpy as np

WIDTH = 16


def blob(category, n, *, seed=0, spread=0.25):
    """n rows around a direction of their own."""
    noise = np.random.default_rng([category, seed]).normal(size=(n, WIDTH))
    return 5 * np.eye(WIDTH)[category] + spread * noise


def blobs(categories, n=30, *, seed=0):
    rows = np.concatenate([blob(category, n, seed=seed) for category in categories])
    return rows, np.repeat(categories, n)


def a_start(n=30):
    """Categories 0 to 3 with every second row labeled, 4 and 5 without a label."""
    rows, truth = blobs(range(6), n)
    return rows, np.where((truth < 4) & (np.arange(len(truth)) % 2 == 0), truth, -1), truth


def is_guess(model, label):
    """Of each row kept of a category whether nobody labeled it."""
    kept = model._kept.entries
    return kept.is_pseudo[kept.categories == model.ledger_.find(label).id].numpy()
