from functools import partial

import pytest
import torch

from igcd.functional.selection import herding, select_at_random, select_by, select_by_density, select_per_category


def on_circle(degrees):
    angles = torch.deg2rad(torch.tensor(degrees, dtype=torch.float64))
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def test_density_takes_the_peak_and_its_neighbors():
    features = on_circle([60, 0, 10, 11, 14, -40])
    assert select_by_density(features, 3, n_neighbors=2).tolist() == [3, 2, 4]
    assert select_by_density(features, 99, n_neighbors=2).tolist() == [3, 2, 4, 1, 0, 5]


def test_density_is_over_ten_neighbors_unless_asked_otherwise():
    features = torch.nn.functional.normalize(torch.randn(40, 3, generator=torch.Generator().manual_seed(43)), dim=1)
    similarity = (features @ features.T).fill_diagonal_(-1).sort(dim=1, descending=True).values
    by_number = {k: int(similarity[:, :k].mean(dim=1).argmax()) for k in (9, 10, 11)}
    assert by_number[10] not in (by_number[9], by_number[11])
    assert select_by_density(features, 1).tolist() == [by_number[10]]


@pytest.mark.parametrize("n_images", [0, 1, 2, 5])
def test_small_categories_are_taken_whole(n_images):
    features = torch.randn(n_images, 3, generator=torch.Generator().manual_seed(0))
    at_random = partial(select_at_random, generator=torch.Generator().manual_seed(0))
    for select in (select_by_density, herding, at_random):
        assert sorted(select(features, 7).tolist()) == list(range(n_images))


def test_random_is_the_same_for_the_same_generator():
    features = torch.zeros(50, 2)
    first, again, other = (
        select_at_random(features, 5, generator=torch.Generator().manual_seed(seed)).tolist() for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(set(first)) == 5


@pytest.mark.parametrize("select", [select_by_density, herding])
def test_each_category_is_chosen_from_its_own_images(select):
    features = torch.randn(60, 4, generator=torch.Generator().manual_seed(2))
    categories = torch.tensor([8, 3, 5] * 20)
    chosen = select_per_category(features, categories, 4, select=select)
    assert categories[chosen].tolist() == [3] * 4 + [5] * 4 + [8] * 4
    of_three = (categories == 3).nonzero()[:, 0]
    assert chosen[:4].tolist() == of_three[select(features[of_three], 4)].tolist()


def test_ways_are_known_by_their_names():
    features = torch.nn.functional.normalize(torch.randn(30, 3, generator=torch.Generator().manual_seed(0)), dim=1)

    def by(way):
        return select_by(way, n_neighbors=4, generator=torch.Generator().manual_seed(1))(features, 5).tolist()

    assert by("herding") == herding(features, 5).tolist()
    assert by("random") == select_at_random(features, 5, generator=torch.Generator().manual_seed(1)).tolist()
    assert by("density") == select_by_density(features, 5, n_neighbors=4).tolist()
    assert len({tuple(by(way)) for way in ("herding", "random", "density")}) == 3
