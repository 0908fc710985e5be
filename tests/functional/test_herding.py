import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional.herding import category_means, herding


def slow_herding(features, n):
    """METHODS' sentence as it stands: argmin of the distance between the mean and the running mean."""
    features = [feature / feature.norm() for feature in features]
    mean = sum(features) / len(features)
    mean = mean / mean.norm()
    chosen = []
    for k in range(1, min(n, len(features)) + 1):
        so_far = sum((features[i] for i in chosen), torch.zeros_like(mean))
        distances = {
            i: float((mean - (feature + so_far) / k).norm()) for i, feature in enumerate(features) if i not in chosen
        }
        chosen.append(min(distances, key=distances.get))
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_equals_slow_twin(seed):
    features = torch.randn(15, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 1
    for n in (1, 4, 15, 40):
        assert herding(features, n).tolist() == slow_herding(features, n)


def test_first_is_the_one_nearest_to_the_mean():
    features = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert herding(features, 1).tolist() == [1]


def test_what_is_chosen_has_a_mean_nearer_than_what_chance_gives():
    generator = torch.Generator().manual_seed(9)
    features = normalize(torch.randn(200, 8, generator=generator) + 0.5, dim=1)
    mean = normalize(features.mean(0), dim=0)

    def distance(idx):
        return float((features[idx].mean(0) - mean).norm())

    by_chance = [distance(torch.randperm(200, generator=generator)[:10]) for _ in range(50)]
    assert distance(herding(features, 10)) < min(by_chance)


def test_copies_are_each_taken_once():
    assert sorted(herding(torch.ones(5, 3), 5).tolist()) == [0, 1, 2, 3, 4]


def test_means_equal_loop():
    generator = torch.Generator().manual_seed(3)
    features = torch.randn(30, 5, generator=generator, dtype=torch.float64)
    rows = torch.arange(30) % 4
    means = category_means(features, rows, n_categories=4)
    for row in range(4):
        own = [features[i] / features[i].norm() for i in range(30) if rows[i] == row]
        mean = sum(own) / len(own)
        torch.testing.assert_close(means[row], mean / mean.norm())
