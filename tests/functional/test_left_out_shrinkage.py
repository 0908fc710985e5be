import pytest
import torch

from igcd.functional.gaussian import ScatterStatistics, scatter_statistics, shared_gaussians
from igcd.functional.left_out_shrinkage import CHOICES, N_FOLDS, left_out_shrinkage


def clouds(n_each, *, n_categories=12, width=30, seed=0):
    """Rows around category means, with a spread that differs from direction to direction."""
    generator = torch.Generator().manual_seed(seed)
    owners = torch.arange(n_categories).repeat(n_each)
    means = 0.6 * torch.randn(n_categories, width, generator=generator)
    rows = means[owners] + torch.randn(len(owners), width, generator=generator) * torch.linspace(0.2, 2, width)
    return rows, owners


def slow_left_out(features, owners, shrinkage, folds):
    """Image by image, by the classifier itself."""
    total = 0.0
    n_categories = int(owners.max()) + 1
    for left_out in range(N_FOLDS):
        asked = folds == left_out
        known = scatter_statistics(features[~asked], owners[~asked], n_categories=n_categories)
        n_free = int(known.counts.sum()) - n_categories
        unbiased = ScatterStatistics(
            known.means, known.counts, torch.full_like(known.sizes, 10**9), known.scatter * known.counts.sum() / n_free
        )
        gaussians = shared_gaussians(unbiased, shrinkage=shrinkage)
        for x, owner in zip(features[asked], owners[asked], strict=True):
            total += float(gaussians.log_posteriors(x[None])[0, owner])
    return total


def test_it_is_the_choice_of_the_slow_twin():
    for seed in range(4):
        features, owners = clouds(6, seed=seed)
        order = torch.randperm(len(owners), generator=torch.Generator().manual_seed(0))
        folds = torch.empty_like(owners)
        for category in range(12):
            own = [row for row in order.tolist() if owners[row] == category]
            folds[own] = torch.arange(len(own)) % N_FOLDS
        sums = [slow_left_out(features.double(), owners, choice, folds) for choice in CHOICES]
        assert left_out_shrinkage(features.double(), owners) == CHOICES[max(range(len(sums)), key=sums.__getitem__)]


def test_fewer_images_are_shrunk_more():
    few, many = (left_out_shrinkage(*clouds(n_each)) for n_each in (4, 200))
    assert few > many


def test_names_of_categories_change_nothing_and_one_image_alone_is_never_asked():
    features, owners = clouds(5)
    chosen = left_out_shrinkage(features, owners)
    assert left_out_shrinkage(features, 100 - owners.flip(0).sort().values) in CHOICES
    assert left_out_shrinkage(features, owners + 70) == chosen
    alone = torch.cat([features, torch.full((1, 30), 3.0)])
    assert left_out_shrinkage(alone, torch.cat([owners, torch.tensor([12])])) in CHOICES


@pytest.mark.parametrize("n_images", [1, 3])
def test_without_two_images_of_a_category_or_with_copies_there_is_nothing_to_choose_by(n_images):
    features = torch.eye(4).repeat(n_images, 1)
    assert left_out_shrinkage(features, torch.arange(4).repeat(n_images)) is None
