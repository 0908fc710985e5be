"""A covariance in a subspace, against the same as a whole matrix."""

import pytest
import torch

from igcd.functional.spread import Spread, noise_share

WIDTH, INSIDE = 7, 3


def random_spread(seed):
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(INSIDE, INSIDE, generator=generator, dtype=torch.float64)
    return Spread(root @ root.T, float(torch.rand((), generator=generator)), WIDTH - INSIDE)


def whole(spread):
    """The same covariance in all directions, (d, d)."""
    matrix = spread.outside * torch.eye(WIDTH, dtype=torch.float64)
    matrix[:INSIDE, :INSIDE] = spread.inside
    return matrix


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_all_of_it_is_what_the_whole_matrix_says(share):
    one, other = random_spread(0), random_spread(1)
    matrix, target = whole(one), whole(other)
    assert one.total() == pytest.approx(float(matrix.trace()))
    assert one.squares() == pytest.approx(float(matrix.square().sum()))
    round_one = matrix.trace() / WIDTH * torch.eye(WIDTH, dtype=torch.float64)
    torch.testing.assert_close(whole(one.rounder(share)), (1 - share) * matrix + share * round_one)
    torch.testing.assert_close(whole(one.toward(other, share)), (1 - share) * matrix + share * target)
    assert one.rounder(share).total() == pytest.approx(one.total())


def test_the_noise_share_is_about_the_weight_that_comes_closest_to_the_truth():
    """Covariances of 40 Gaussian rows, pulled toward a target by one weight: which weight is best on average?"""
    generator = torch.Generator().manual_seed(0)
    width, n_rows = 20, 40
    truth = torch.diag(torch.linspace(0.2, 4.0, width, dtype=torch.float64))
    target = Spread(2.1 * torch.eye(width, dtype=torch.float64))
    weights = torch.linspace(0, 1, 41, dtype=torch.float64)
    errors, said = torch.zeros(41, dtype=torch.float64), []
    for _ in range(100):
        rows = torch.randn(n_rows, width, generator=generator, dtype=torch.float64) @ truth.sqrt()
        measured = Spread(rows.T @ rows / n_rows)
        said.append(noise_share(measured, target, n_rows))
        errors += torch.stack([(measured.toward(target, float(w)).inside - truth).square().sum() for w in weights])
    best = float(weights[errors.argmin()])
    assert 0.4 < best < 0.8
    assert sum(said) / len(said) == pytest.approx(best, abs=0.1)


def test_a_target_that_is_what_was_measured_may_have_all_the_weight():
    assert noise_share(random_spread(0), random_spread(0), 5) == 1.0
