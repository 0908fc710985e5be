import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.covariance import oas
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from igcd.errors import IgcdError
from igcd.functional.gaussian import (
    FOUND,
    oas_shrinkage,
    pooled_covariance,
    scatter_statistics,
    shared_gaussians,
    shrink,
)
from igcd.functional.growing_scatter import add_means


def gen(seed):
    return torch.Generator().manual_seed(seed)


def data(n=120, n_categories=4, width=5, seed=0):
    stretch = torch.tensor([3.0, 1.0, 0.5, 2.0, 0.1], dtype=torch.float64)[:width]
    rows = torch.arange(n) % n_categories
    means = torch.randn(n_categories, width, generator=gen(seed), dtype=torch.float64)
    return means[rows] + stretch * torch.randn(n, width, generator=gen(seed + 1), dtype=torch.float64), rows


def slow_log_posteriors(features, rows, queries, shrinkage):
    categories = sorted(set(rows.tolist()))
    means = [features[rows == c].mean(0) for c in categories]
    width = features.shape[1]
    covariance = torch.zeros(width, width, dtype=torch.float64)
    for x, c in zip(features, rows.tolist(), strict=True):
        covariance += torch.outer(x - means[c], x - means[c]) / len(features)
    round_one = torch.eye(width, dtype=torch.float64) * covariance.trace() / width
    precision = torch.linalg.inv((1 - shrinkage) * covariance + shrinkage * round_one)
    unbiased = covariance * len(features) / (len(features) - len(means))
    surplus = [float((precision @ unbiased).trace()) / n for n in torch.bincount(rows).tolist()]
    found = []
    for x in queries:
        distances = [float((x - mean) @ precision @ (x - mean)) for mean in means]
        weights = [math.exp(-(distance - more) / 2) for distance, more in zip(distances, surplus, strict=True)]
        found.append([math.log(weight / sum(weights)) for weight in weights])
    return found


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
def test_log_posteriors_equal_slow_twin(shrinkage):
    features, rows = data(n=41)  # ten images of most categories, eleven of one
    gaussians = shared_gaussians(scatter_statistics(features, rows, n_categories=4), shrinkage=shrinkage)
    expected = slow_log_posteriors(features, rows, features[:9], shrinkage)
    torch.testing.assert_close(gaussians.log_posteriors(features[:9]), torch.tensor(expected, dtype=torch.float64))


def test_a_category_of_few_images_keeps_its_own():
    generator = torch.Generator().manual_seed(0)
    centers = torch.tensor([[2.0], [-2.0]]) * torch.ones(2, 200) / 200**0.5  # four deviations apart
    rows = torch.tensor([0] * 10 + [1] * 600)
    statistics = scatter_statistics(
        centers[rows] + torch.randn(len(rows), 200, generator=generator), rows, n_categories=2
    )
    truth = torch.tensor([0, 1]).repeat_interleave(1000)
    queries = centers[truth] + torch.randn(len(truth), 200, generator=generator)
    right = shared_gaussians(statistics, shrinkage=1.0).predict(queries)[0] == truth
    assert right[truth == 0].float().mean() > 0.75 and right[truth == 1].float().mean() > 0.75
    alike = replace(statistics, sizes=torch.full_like(statistics.sizes, 100))
    right = shared_gaussians(alike, shrinkage=1.0).predict(queries)[0] == truth
    assert right[truth == 0].float().mean() < 0.5  # ten are taken to say as much as six hundred


def test_the_mean_of_a_found_category_is_corrected_by_a_share():
    features, rows = data(n=40)
    labeled = scatter_statistics(features, rows, n_categories=4)
    found = features[:6].mean(dim=0, keepdim=True).repeat(2, 1)
    gaussians = shared_gaussians(add_means(labeled, found, torch.tensor([6, 0])), shrinkage=0.3)
    of_labeled = shared_gaussians(labeled, shrinkage=0.3).surplus
    assert torch.equal(gaussians.surplus[:4], of_labeled)
    expected = FOUND * float(of_labeled[0]) * int(labeled.counts[0]) / 6
    assert gaussians.surplus.tolist()[4:] == [pytest.approx(expected), 0]  # 0 where the number is not known


def test_it_is_scikit_learns_linear_discriminant_analysis():
    features, rows = data(n=203)
    statistics = scatter_statistics(features, rows, n_categories=4)
    alike = replace(statistics, sizes=torch.full_like(statistics.sizes, 50))  # theirs does not correct for sizes
    gaussians = shared_gaussians(alike, shrinkage=0.2, prior="counts")

    class Shrunk:  # scikit-learn shrinks each category's covariance; given ours, the classifier must be the same
        def fit(self, _features):
            self.covariance_ = shrink(
                pooled_covariance(scatter_statistics(features, rows, n_categories=4)), 0.2
            ).numpy()
            return self

    theirs = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=Shrunk()).fit(
        features.numpy(), rows.numpy()
    )
    ours = gaussians.log_posteriors(features).exp().numpy()
    np.testing.assert_allclose(ours, theirs.predict_proba(features.numpy()), rtol=1e-6, atol=1e-12)
    best, probs = gaussians.predict(features)
    assert best.tolist() == ours.argmax(1).tolist()
    np.testing.assert_allclose(probs.numpy(), ours.max(1))


def test_a_linear_map_of_the_features_changes_nothing_without_shrinkage():
    features, rows = data(seed=3)
    turn = torch.randn(5, 5, generator=gen(9), dtype=torch.float64)
    both = [
        shared_gaussians(scatter_statistics(x, rows, n_categories=4), shrinkage=0.0).log_posteriors(x)
        for x in (features, features @ turn + 7)
    ]
    torch.testing.assert_close(*both)


def test_full_shrinkage_is_the_nearest_mean():
    features, rows = data(seed=4)
    statistics = scatter_statistics(features, rows, n_categories=4)
    found, _ = shared_gaussians(statistics, shrinkage=1.0).predict(features)
    assert found.tolist() == torch.cdist(features, statistics.means).argmin(1).tolist()


def test_the_oracle_approximating_shrinkage_is_scikit_learns():
    features, rows = data(n=60)
    means = scatter_statistics(features, rows, n_categories=4).means
    apart = features - means[rows]
    covariance = apart.T @ apart / len(apart)
    shrunk, amount = oas(apart.numpy(), assume_centered=True)
    assert oas_shrinkage(covariance, 60) == pytest.approx(amount)
    np.testing.assert_allclose(shrink(covariance, amount).numpy(), shrunk)
    assert oas_shrinkage(torch.eye(3, dtype=torch.float64), 10) == 1.0  # round already: shrink all the way


def test_fewer_images_than_dimensions_need_shrinkage():
    features, rows = data(n=6, n_categories=2)
    features = torch.cat([features, features + 1], dim=1)  # rank 4 of 10
    statistics = scatter_statistics(features, rows, n_categories=2)
    with pytest.raises(IgcdError, match="cannot be inverted with a shrinkage of 0"):
        shared_gaussians(statistics, shrinkage=0.0)
    assert torch.isfinite(shared_gaussians(statistics).log_posteriors(features)).all()
    with pytest.raises(IgcdError, match="between 0 and 1, got 2"):
        shared_gaussians(statistics, shrinkage=2.0)
    with pytest.raises(IgcdError, match="each of the 5 categories"):
        scatter_statistics(features, rows, n_categories=5)


def test_float32_agrees_with_float64():
    features, rows = data(n=400)
    exact = shared_gaussians(scatter_statistics(features, rows, n_categories=4)).log_posteriors(features)
    single = shared_gaussians(scatter_statistics(features.float(), rows, n_categories=4)).log_posteriors(
        features.float()
    )
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), exact, rtol=1e-3, atol=1e-3)
