import math

import torch

from igcd.functional.kmeans import nearest_centers
from igcd.functional.nearest_center import nearest_center


def test_against_a_loop():
    generator = torch.Generator().manual_seed(0)
    features, centers = torch.randn(30, 2, generator=generator), torch.randn(4, 2, generator=generator)
    rows, probs = nearest_center(features, centers, tau=0.5)
    for x, row, prob in zip(features, rows.tolist(), probs.tolist(), strict=True):
        weights = [math.exp(-float((x - center).square().sum()) / (2 * 0.5)) for center in centers]
        assert row == max(range(4), key=weights.__getitem__)
        assert math.isclose(prob, max(weights) / sum(weights), rel_tol=1e-4)


def test_it_is_the_center_k_means_assigns_wherever_the_origin_is():
    generator = torch.Generator().manual_seed(1)
    features, centers = torch.randn(5000, 3, generator=generator), torch.randn(7, 3, generator=generator)
    for shift in (0.0, 100.0):
        assert torch.equal(nearest_center(features + shift, centers + shift)[0], nearest_centers(features, centers))


def test_no_image_is_no_answer():
    rows, probs = nearest_center(torch.empty(0, 3), torch.ones(2, 3))
    assert len(rows) == len(probs) == 0


def test_on_the_sphere_it_is_a_cosine_classifier_at_a_tenth():
    """By default τ is 0.1, the temperature of the other classifiers."""
    generator = torch.Generator().manual_seed(2)
    features, centers = (torch.nn.functional.normalize(torch.randn(n, 3, generator=generator)) for n in (20, 4))
    expected = (features @ centers.T / 0.1).softmax(dim=1).max(dim=1)
    rows, probs = nearest_center(features, centers)
    assert torch.equal(rows, expected.indices)
    torch.testing.assert_close(probs, expected.values)
