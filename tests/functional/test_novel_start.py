"""Where novel clusters start: the split of images into known and novel, and the centers of the novel part."""

import pytest
import torch
from torch.nn.functional import normalize

from igcd.functional.kmeans import kmeans
from igcd.functional.novel_start import gap_between_groups, is_novel_part, novel_centers
from igcd.functional.prototype_novelty import similarity_to_known


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def slow_gap(values):
    """Every cut between two neighboring values, the one with the least squared distance from the group means."""
    ordered = sorted(values)
    best = None
    for n_low in range(1, len(ordered)):
        groups = ordered[:n_low], ordered[n_low:]
        within = sum((value - sum(group) / len(group)) ** 2 for group in groups for value in group)
        if best is None or within < best[0]:
            best = within, (ordered[n_low - 1] + ordered[n_low]) / 2
    return best[1]


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_equals_its_slow_twin(seed):
    values = torch.rand(17, generator=generator(seed), dtype=torch.float64)
    assert gap_between_groups(values) == pytest.approx(slow_gap(values.tolist()))


def test_the_gap_moves_with_the_values_and_ignores_their_order():
    values = torch.rand(30, generator=generator(), dtype=torch.float64)
    gap = gap_between_groups(values)
    assert gap_between_groups(3 * values - 7) == pytest.approx(3 * gap - 7)
    assert gap_between_groups(values.flip(0)) == gap


@pytest.mark.parametrize("values", [[0.25], [0.5, 0.5, 0.5]])
def test_without_two_different_values_nothing_lies_below_the_gap(values):
    assert not (torch.tensor(values) < gap_between_groups(torch.tensor(values))).any()


@pytest.fixture(scope="module")
def scene():
    """30 known categories of 6 images each, 5 novel ones of 20, and what is true of the images: -1 for a known one.

    A few images of known categories are odd, far from everything, as in every real set.
    """
    draws = generator(1)
    directions = normalize(torch.randn(35, 32, generator=draws), dim=1)
    category = torch.cat([torch.arange(30).repeat(6), torch.arange(30, 35).repeat(20)])
    spread = torch.full((len(category), 1), 0.11)
    spread[:8] = 0.6
    images = normalize(directions[category] + spread * torch.randn(len(category), 32, generator=draws), dim=1)
    return images, directions[:30], torch.where(category < 30, -1, category - 30)


def n_covered(centers, images, known, novel):
    """Novel categories that are the majority of the images which a new cluster wins."""
    clusters = (images @ torch.cat([known, normalize(centers, dim=1)]).T).argmax(dim=1) - len(known)
    majorities = [novel[clusters == new].mode().values.item() for new in range(len(centers)) if (clusters == new).any()]
    return len(set(majorities) - {-1})


def test_novel_categories_are_covered(scene):
    images, known, novel = scene
    covered = {
        start: n_covered(novel_centers(images, known, 5, start=start, generator=generator()), images, known, novel)
        for start in ("split", "all")
    }
    assert covered["split"] == 5
    assert covered["all"] < 5  # centers of odd images are less like the known categories than those of novel ones


def test_an_image_far_from_all_gets_no_cluster_of_its_own(scene):
    images, known, novel = scene
    odd = torch.cat([images, -5 * torch.eye(32)[:2]])
    centers = novel_centers(odd, known, 5, generator=generator())
    assert n_covered(centers, images, known, novel) == 5
    few = odd[-4:]  # two images and two odd ones for three clusters: there is nothing to leave out
    assert novel_centers(few, known[:0], 3, generator=generator()).shape == (3, 32)


def test_the_split_holds_the_novel_images(scene):
    images, known, novel = scene
    is_novel = is_novel_part(images, known, at_least=5)
    assert is_novel[novel >= 0].all()
    assert is_novel[novel == -1].double().mean() < 0.1


def test_the_split_is_between_more_and_less_similar_images_whatever_their_order(scene):
    images, known, _ = scene
    similarity, is_novel = similarity_to_known(images, known), is_novel_part(images, known, at_least=1)
    assert similarity[is_novel].max() < similarity[~is_novel].min()
    order = torch.randperm(len(images), generator=generator())
    assert torch.equal(is_novel_part(images[order], known, at_least=1), is_novel[order])


def test_there_are_as_many_images_as_clusters_at_least():
    images = normalize(torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.0, 1.0]]), dim=1)
    known = torch.tensor([[1.0, 0.0]])
    assert is_novel_part(images, known, at_least=1).tolist() == [False, False, False, True]
    assert is_novel_part(images, known, at_least=3).tolist() == [False, True, True, True]
    assert novel_centers(images, known, 4, generator=generator()).shape == (4, 2)


@pytest.mark.parametrize("start", ["split", "all"])
def test_without_a_known_category_it_is_k_means(start):
    images = 5 * torch.eye(4).repeat(5, 1) + torch.randn(20, 4, generator=generator(3))
    centers = novel_centers(images, images[:0], 4, start=start, generator=generator())
    assert torch.equal(centers, kmeans(images, n_clusters=4, generator=generator()).centers)
