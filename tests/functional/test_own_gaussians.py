"""Gaussians with covariances of their own: scipy's densities, steps taken one at a time, and where they stop."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from igcd.functional.own_gaussians import (
    OwnGaussians,
    learned_covariances,
    log_determinants,
    sample_covariances,
    steps_before_passing,
)


def rows_of(n, n_categories, width=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    categories = torch.arange(n) % n_categories
    spread = torch.rand(n_categories, width, generator=generator, dtype=torch.float64)[categories]
    noise = torch.randn(n, width, generator=generator, dtype=torch.float64)
    return noise * spread + categories[:, None], categories


def test_likelihoods_are_those_of_scipy():
    rows, categories = rows_of(40, 3)
    means, samples = sample_covariances(rows, categories, n_categories=3)
    gaussians = OwnGaussians(means, learned_covariances(samples, step=0.1, n_steps=5))
    found = gaussians.log_likelihoods(rows) - 1.5 * np.log(2 * np.pi)
    for category in range(3):
        twin = multivariate_normal(gaussians.means[category].numpy(), gaussians.covariances[category].numpy())
        assert np.allclose(found[:, category], twin.logpdf(rows.numpy()))
    clusters, probs = gaussians.predict(rows)
    assert torch.equal(clusters, found.argmax(dim=1)) and ((probs > 1 / 3 - 1e-9) & (probs <= 1)).all()


def test_samples_are_those_of_numpy_and_one_row_has_the_identity():
    rows, categories = rows_of(30, 2)
    alone = torch.cat([rows, rows[:1]]), torch.cat([categories, torch.tensor([2])])
    means, samples = sample_covariances(*alone, n_categories=3)
    for category in range(2):
        own = rows[categories == category].numpy()
        assert np.allclose(means[category], own.mean(axis=0))
        assert np.allclose(samples[category], np.cov(own.T, bias=True))
    assert torch.equal(samples[2], torch.eye(3, dtype=torch.float64)) and torch.equal(means[2], rows[0])


def test_no_category_has_no_covariance():
    rows, categories = rows_of(4, 1)
    means, samples = sample_covariances(rows, categories, n_categories=0)
    assert means.shape == (0, 3) and samples.shape == (0, 3, 3)


def test_many_small_steps_are_the_closed_form():
    samples = sample_covariances(*rows_of(20, 2), n_categories=2)[1]
    taken = torch.eye(3, dtype=torch.float64).repeat(2, 1, 1)
    for _ in range(40):
        taken = taken + 0.02 * (samples - taken)
    assert torch.allclose(learned_covariances(samples, step=0.02, n_steps=40), taken)
    assert torch.allclose(log_determinants(taken), torch.linalg.slogdet(taken).logabsdet)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.55, 0.8, 1.0, 2.0])
def test_steps_end_before_the_determinants_pass(share):
    samples = 0.1 * sample_covariances(*rows_of(40, 2), n_categories=2)[1]

    def mean_after(t):
        return float(log_determinants(learned_covariances(samples, step=0.01, n_steps=t)).mean())

    known = torch.tensor([mean_after(int(100 * share)) - 1e-9] * 3, dtype=torch.float64)
    n_steps = steps_before_passing(samples, known, step=0.01, n_steps=100)
    passed = [t for t in range(51, 101) if mean_after(t) < float(known.mean())]
    assert n_steps == (passed[0] - 1 if passed else 100)
    assert 50 <= n_steps <= 100


def test_with_nothing_known_all_steps_are_taken():
    samples = sample_covariances(*rows_of(20, 2), n_categories=2)[1]
    assert steps_before_passing(samples, torch.empty(0), step=0.1, n_steps=7) == 7
    nothing = OwnGaussians(torch.empty(0, 3), torch.empty(0, 3, 3))
    assert nothing.log_likelihoods(torch.ones(2, 3)).shape == (2, 0)
